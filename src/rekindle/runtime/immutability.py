"""Immutable values and types: user code cannot change such a value, so emitting or capturing it needs no copy (I13)."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import msgspec

from rekindle.common.typeinfo import TypeInformation

ATOMS: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, Decimal, Fraction, date, datetime, time, timedelta, UUID}
)
# Fields of frozen classes; None for a class that is not known to be immutable.
_FIELDS: dict[type, tuple[str, ...] | None] = {}


def is_immutable(value: Any) -> bool:
    """Whether neither the value nor anything in it can change.

    >>> is_immutable((1, "a")), is_immutable((1, ["a"]))
    (True, False)
    """
    kind = type(value)
    if kind in ATOMS:
        return True
    if kind is tuple or kind is frozenset:
        return all(map(is_immutable, value))
    if kind not in _FIELDS:
        _FIELDS[kind] = _fields_of_frozen(kind)
    names = _FIELDS[kind]
    return names is not None and all(is_immutable(getattr(value, name)) for name in names)


def all_immutable(values: Iterable[Any]) -> bool:
    """Whether `is_immutable` holds for each of many values; quick for atoms, and for tuples of them.

    >>> all_immutable([(1, "a"), None, 2.5]), all_immutable([(1, "a"), (1, ["a"])])
    (True, False)
    """
    level = values if isinstance(values, list) else list(values)
    while True:
        kinds = set(map(type, level))
        deeper = kinds - ATOMS
        if not deeper:
            return True
        if deeper == {tuple} == kinds and ATOMS.issuperset(map(type, chain.from_iterable(level))):
            return True  # the fast path for the most frequent case
        inside: list[Iterable[Any]] = []
        for kind in deeper:
            own: list[Any] = level if kinds == {kind} else [value for value in level if type(value) is kind]
            if kind is tuple or kind is frozenset:
                inside.append(chain.from_iterable(own))
                continue
            if kind not in _FIELDS:
                _FIELDS[kind] = _fields_of_frozen(kind)
            names = _FIELDS[kind]
            if names is None:
                return False
            inside.extend(map(attrgetter(name), own) for name in names)
        level = list(chain.from_iterable(inside))


def _fields_of_frozen(kind: type) -> tuple[str, ...] | None:
    if issubclass(kind, enum.Enum):
        return ()
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__ if kind.__struct_config__.frozen else None
    if dataclasses.is_dataclass(kind):
        frozen: bool = kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        return tuple(field.name for field in dataclasses.fields(kind)) if frozen else None
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    return None


def type_is_immutable(type_info: TypeInformation | None) -> bool:
    """Whether values of a type are immutable; rows are not, although they are sent as tuples.

    >>> from rekindle.common.typeinfo import Types
    >>> type_is_immutable(Types.LONG()), type_is_immutable(Types.ROW_NAMED(["a"], [int])), type_is_immutable(None)
    (True, False, False)
    """
    return type_info is not None and type_info.shaper() is None and hint_is_immutable(type_info.python_type())


def hint_is_immutable(hint: Any) -> bool:
    """Whether values of a declared type are immutable.

    >>> hint_is_immutable(tuple[str, int | None]), hint_is_immutable(tuple[str, list[int]]), hint_is_immutable(None)
    (True, False, False)
    """
    if hint is None:
        return False  # undeclared
    if hint in ATOMS:
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union, tuple) and arguments:
        return all(argument in (Ellipsis, type(None)) or hint_is_immutable(argument) for argument in arguments)
    if not isinstance(hint, type):
        return False
    if issubclass(hint, enum.Enum):
        return True
    frozen = (
        hint.__struct_config__.frozen
        if issubclass(hint, msgspec.Struct)
        else dataclasses.is_dataclass(hint) and hint.__dataclass_params__.frozen  # type: ignore[attr-defined]
    )
    return bool(frozen) and all(map(hint_is_immutable, typing.get_type_hints(hint).values()))
