"""Lists as keys: PyFlink accepts them. Here a key is looked up in a dict, so a list becomes a tuple.

Hot loops look a key up as it is and call `hashable_key` only when the lookup raises TypeError: other keys cost nothing.
"""

from __future__ import annotations

from typing import Any

from rekindle.errors import InvalidKeyError


def hashable_key(key: Any) -> Any:
    """Return the key with tuples in place of lists; refuse one that is still not hashable.

    >>> hashable_key(["a", (1, [2])]), hashable_key("a")
    (('a', (1, (2,))), 'a')
    """
    key = _as_tuple(key)
    try:
        hash(key)
    except TypeError as error:
        raise InvalidKeyError(f"A key must be hashable, for example a tuple instead of a dict ({error}).") from error
    return key


def _as_tuple(key: Any) -> Any:
    if type(key) is list or type(key) is tuple:
        return tuple([_as_tuple(part) for part in key])
    return key
