"""Lists as keys: PyFlink accepts them. Here a key can be looked up in a dict, so a list becomes a tuple.

Only a selector that may return a list pays for the look at its keys: a list is in the record, or the selector makes it.
"""

from __future__ import annotations

import dis
import operator
from types import CodeType
from typing import Any

from rekindle.common.type_system.classes import PythonTypeInfo
from rekindle.common.type_system.fields import fields_of
from rekindle.common.typeinfo import BasicTypeInfo, ListTypeInfo, MapTypeInfo, TypeInformation
from rekindle.datastream.functions import KeySelector

_LIST_INSTRUCTIONS = frozenset({"BUILD_LIST", "LIST_EXTEND", "LIST_APPEND"})
_LIST_NAMES = frozenset({"list", "sorted", "split", "rsplit", "splitlines", "tolist"})
_LOADS_OF_OTHERS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"})
#: Functions that never return a list, by name and by value: selectors call them often.
_NO_LISTS: tuple[Any, ...] = (str, int, float, bool, bytes, len, hash, abs, round, repr, ord, chr, divmod, frozenset)
_NO_LIST_NAMES = frozenset(function.__name__ for function in _NO_LISTS)
#: A record whose type is nested deeper may hold anything.
_DEEPEST = 20


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
        key = self._select(value)
        try:
            hash(key)  # quicker than to look at its type
        except TypeError:
            return _as_tuple(key)
        return key


def _as_tuple(key: Any) -> Any:
    if type(key) is list or type(key) is tuple:
        return tuple([_as_tuple(part) for part in key])
    return key


def may_return_list(
    selector: Any, key_type: TypeInformation | None, record_type: TypeInformation | None = None
) -> bool:
    """Whether a key may be a list: its type says so, the record's type allows it, or the selector's code makes one.

    >>> from rekindle.common.typeinfo import Types
    >>> pair = Types.TUPLE([Types.STRING(), Types.INT()])
    >>> may_return_list(lambda pair: [pair[0]], None, pair), may_return_list(lambda pair: pair[0], None, pair)
    (True, False)
    >>> may_return_list(lambda record: record[0], None)
    True
    """
    if isinstance(key_type, ListTypeInfo):
        return key_type.python_type() is not bytes
    if key_type is not None and not key_type.pickle_reason():
        return False
    return _may_hold_list(record_type) or _may_make_list(selector)


def _may_hold_list(record_type: TypeInformation | None, depth: int = 0) -> bool:
    if record_type is None or record_type.pickle_reason() or depth > _DEEPEST:
        return True
    match record_type:
        case BasicTypeInfo():
            return False
        case ListTypeInfo():
            return record_type.python_type() is not bytes
        case MapTypeInfo():
            return True  # its values() are made by the selector
    try:
        fields = fields_of(record_type)
    except Exception:  # a hint that only a type checker understands
        return True
    if fields is None:  # a date, or a hint such as list[int] | str
        return isinstance(record_type, PythonTypeInfo)
    return any(_may_hold_list(part, depth + 1) for _, part in fields)


def _may_make_list(selector: Any) -> bool:
    """Whether the code of a selector makes a list, or calls what may return one."""
    function = selector.get_key if isinstance(selector, KeySelector) else selector
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, CodeType):
        takes_parts = isinstance(function, operator.itemgetter | operator.attrgetter)
        return not takes_parts and function not in _NO_LISTS
    if not _LIST_NAMES.isdisjoint(code.co_names):
        return True
    instructions = list(dis.get_instructions(code))
    if any(instruction.opname in _LIST_INSTRUCTIONS for instruction in instructions):
        return True
    others = {each.argval for each in instructions if each.opname in _LOADS_OF_OTHERS} - _NO_LIST_NAMES
    return bool(others) and any(instruction.opname.startswith("CALL") for instruction in instructions)
