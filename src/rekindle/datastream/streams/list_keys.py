"""Lists as keys: PyFlink accepts them. Here a key can be looked up in a dict, so a list becomes a tuple.

Only a selector that may return a list pays for the look at its keys.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from rekindle.common.typeinfo import ListTypeInfo, TypeInformation
from rekindle.datastream.functions import KeySelector

_LIST_INSTRUCTIONS = frozenset({"BUILD_LIST", "LIST_EXTEND", "LIST_APPEND"})
_LIST_NAMES = frozenset({"list", "sorted", "split", "rsplit", "splitlines", "tolist"})


class ListKeySelector(KeySelector):
    """Gives keys that are lists, or contain lists, as tuples.

    >>> ListKeySelector(lambda pair: [pair[0], [1]]).get_key(("a", 2))
    ('a', (1,))
    """

    def __init__(self, selector: Any) -> None:
        self._selector = selector
        self._select = selector.get_key if isinstance(selector, KeySelector) else selector

    def __reduce__(self) -> tuple[Any, ...]:
        return ListKeySelector, (self._selector,)

    def get_key(self, value: Any) -> Any:
        """The user's key, with tuples in place of lists."""
        return _as_tuple(self._select(value))


def _as_tuple(key: Any) -> Any:
    if type(key) is list or type(key) is tuple:
        return tuple([_as_tuple(part) for part in key])
    return key


def may_return_list(selector: Any, key_type: TypeInformation | None) -> bool:
    """Whether a key may be a list: its type says so, or the selector's code makes one.

    >>> may_return_list(lambda pair: [pair[0]], None), may_return_list(lambda pair: pair[0], None)
    (True, False)
    """
    if isinstance(key_type, ListTypeInfo):
        return key_type.python_type() is not bytes
    if key_type is not None and not key_type.pickle_reason():
        return False
    function = selector.get_key if isinstance(selector, KeySelector) else selector
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return isinstance(code, CodeType) and (
        not _LIST_NAMES.isdisjoint(code.co_names)
        or any(instruction.opname in _LIST_INSTRUCTIONS for instruction in dis.get_instructions(code))
    )
