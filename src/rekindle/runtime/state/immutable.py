"""Immutable values: user code cannot change them after a cut, so capturing them needs no copy (I13)."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import msgspec

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
