"""The registry of classes that the tagged codec may write and read; it builds no other class from data."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from rekindle.errors import SerializationError

T = TypeVar("T")
ClassT = TypeVar("ClassT", bound=type)


class ValueType(NamedTuple):
    """A value type of Rekindle itself (Row, Instant, ...): the parts that are written, and how to rebuild the value."""

    name: str
    to_parts: Callable[[Any], Sequence[Any]]
    from_parts: Callable[[Sequence[Any]], Any]


#: The users' registered classes by `module:qualname`.
registered_classes: dict[str, type] = {}
value_types_by_class: dict[type, ValueType] = {}
value_types_by_name: dict[str, ValueType] = {}


def class_name(cls: type) -> str:
    """The name that the tagged codec writes for a class.

    >>> class_name(ValueError)
    'builtins:ValueError'
    """
    return f"{cls.__module__}:{cls.__qualname__}"


def register_type(cls: ClassT) -> ClassT:
    """Register a dataclass, NamedTuple, `msgspec.Struct` or Enum for the tagged codec; works as a decorator.

    >>> @register_type
    ... class Colour(enum.Enum):
    ...     RED = 1
    >>> registered_classes[class_name(Colour)] is Colour
    True
    """
    if not is_registrable(cls):
        raise SerializationError(
            f"{class_name(cls)} is neither a dataclass, a NamedTuple, a msgspec.Struct nor an Enum: "
            "make it one of these to store it without pickle."
        )
    registered_classes[class_name(cls)] = cls
    return cls


def register_value_type(
    name: str, cls: type[T], to_parts: Callable[[T], Sequence[Any]], from_parts: Callable[[Sequence[Any]], T]
) -> None:
    """Register a value type of Rekindle: `to_parts` gives the parts to write, `from_parts` rebuilds the value."""
    value_type = ValueType(name, to_parts, from_parts)
    value_types_by_class[cls] = value_type
    value_types_by_name[name] = value_type


def is_registrable(cls: type) -> bool:
    """Whether the class and the fields of an instance of `cls` describe it completely."""
    return (
        issubclass(cls, enum.Enum | msgspec.Struct)
        or is_dataclass(cls)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )


def field_names(cls: type) -> Sequence[str]:
    """The field names of a registrable class that is not an Enum."""
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    if is_dataclass(cls):
        return [field.name for field in fields(cls)]
    names: Sequence[str] = cls._fields  # type: ignore[attr-defined]
    return names
