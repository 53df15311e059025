"""Infers the `TypeInformation` of a type hint, a class or a type."""

from __future__ import annotations

import datetime as dt
import enum
import types
import typing
from collections.abc import Callable
from dataclasses import is_dataclass
from decimal import Decimal
from typing import Any

import msgspec

from rekindle.common.time import Instant
from rekindle.common.type_system.basic import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    InstantTypeInfo,
    PickledBytesTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from rekindle.common.type_system.classes import (
    DataclassTypeInfo,
    EnumTypeInfo,
    NamedTupleTypeInfo,
    PythonTypeInfo,
    StructTypeInfo,
)
from rekindle.common.type_system.composite import ListTypeInfo, MapTypeInfo, PrimitiveArrayTypeInfo, TupleTypeInfo
from rekindle.common.type_system.inspection import is_custom_class
from rekindle.common.type_system.type_hint import TypeHint
from rekindle.common.type_system.type_information import TypeInformation
from rekindle.common.types import Row
from rekindle.errors import TypeMismatchError

_SIMPLE: dict[Any, Callable[[], TypeInformation]] = {
    None: PickledBytesTypeInfo,
    types.NoneType: PickledBytesTypeInfo,
    Any: PickledBytesTypeInfo,
    object: PickledBytesTypeInfo,
    str: lambda: BasicTypeInfo(BasicType.STRING),
    int: lambda: BasicTypeInfo(BasicType.LONG),
    float: lambda: BasicTypeInfo(BasicType.DOUBLE),
    bool: lambda: BasicTypeInfo(BasicType.BOOLEAN),
    bytes: lambda: PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)),
    Decimal: lambda: BasicTypeInfo(BasicType.BIG_DEC),
    dt.datetime: TimestampTypeInfo,
    dt.date: DateTypeInfo,
    dt.time: TimeTypeInfo,
    Instant: lambda: InstantTypeInfo(BasicType.INSTANT),
}


def infer_type_info(hint: Any) -> TypeInformation:
    """The `TypeInformation` for a type hint; the whole API accepts the same hints wherever it takes a type.

    >>> infer_type_info(tuple[str, int])
    Tuple<String, Long>
    >>> infer_type_info(dict[str, list[float]])
    Map<String, List<Double>>
    >>> infer_type_info(None)
    Pickled

    :raises TypeMismatchError: when `hint` is no type, or a class that says nothing about its fields.
    """
    if isinstance(hint, TypeInformation):
        return hint
    if isinstance(hint, TypeHint):
        return hint.get_type_info()
    try:
        simple = _SIMPLE.get(hint)
    except TypeError:  # not hashable, so not a type
        raise _no_type(hint) from None
    if simple is not None:
        return simple()
    return _from_construct(hint) if typing.get_origin(hint) is not None else _from_class(hint)


def _from_construct(hint: Any) -> TypeInformation:
    """Hints in brackets: list[int], Optional[str], Annotated[int, ...]."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return infer_type_info(arguments[0])
    if origin in (typing.Union, types.UnionType):
        alternatives = [argument for argument in arguments if argument is not types.NoneType]
        return infer_type_info(alternatives[0]) if len(alternatives) == 1 else PythonTypeInfo(hint)
    if origin is list:
        return ListTypeInfo(arguments[0])
    if origin is dict:
        return MapTypeInfo(*arguments)
    if origin is tuple and Ellipsis not in arguments:
        return TupleTypeInfo(arguments)
    return PythonTypeInfo(hint)


def _from_class(hint: Any) -> TypeInformation:
    if isinstance(hint, typing.NewType):
        return infer_type_info(hint.__supertype__)
    if not isinstance(hint, type):
        raise _no_type(hint)
    if issubclass(hint, enum.Enum):
        return EnumTypeInfo(hint)
    if issubclass(hint, msgspec.Struct):
        return StructTypeInfo(hint)
    if is_dataclass(hint):
        return DataclassTypeInfo(hint)
    if issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return NamedTupleTypeInfo(hint)
    if issubclass(hint, Row):
        raise TypeMismatchError("Row alone does not say which fields it has: use Types.ROW([...]) or Types.ROW_NAMED.")
    if is_custom_class(hint):
        raise TypeMismatchError(
            f"{hint.__module__}.{hint.__qualname__} does not say which fields it has: make it a dataclass, "
            "a NamedTuple or a msgspec.Struct, or leave the type out (its instances are then pickled)."
        )
    return PythonTypeInfo(hint)


def _no_type(hint: Any) -> TypeMismatchError:
    name = getattr(hint, "__qualname__", "")
    if callable(hint) and name.startswith("Types."):
        return TypeMismatchError(f"{name} is a function: write {name}().")
    return TypeMismatchError(
        f"{hint!r} is no type: use Types.STRING() and the like, a Python type such as str or list[int], "
        "a dataclass, a NamedTuple, a msgspec.Struct or an Enum."
    )
