"""The order in which windows of one time fire: by the keys' canonical bytes (I1)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from rekindle.runtime.keys import canonical_bytes

# Types whose values Python orders as their canonical bytes are ordered: sorting them takes no encoding.
_ORDERED_ALIKE: Final = ({str}, {int})


def in_order(keys: Collection[Any]) -> list[Any]:
    """Keys in the order in which their timers fire.

    >>> in_order([3, 1, 2]), in_order(["b", "a"]), in_order([1, "a", 0.5])
    ([1, 2, 3], ['a', 'b'], [1, 0.5, 'a'])
    """
    if len(keys) > 1 and set(map(type, keys)) in _ORDERED_ALIKE:
        return sorted(keys)
    return sorted(keys, key=canonical_bytes)
