"""Types of Python classes and hints: dataclasses, named tuples, structs, enums, and other type hints."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from rekindle.common.type_system.hint_schemas import schema_of_hint
from rekindle.common.type_system.inspection import Inspection, inspect_hint
from rekindle.common.type_system.type_information import TypeInformation
from rekindle.serde.type_schema import TypeSchema


class PythonTypeInfo(TypeInformation):
    """A type hint that has no Flink name, such as `tuple[int, ...]`, `set[str]`, `int | str` or `Literal["a"]`.

    >>> PythonTypeInfo(set[str])
    Set<String>
    """

    def __init__(self, hint: Any) -> None:
        self._hint = hint

    @cached_property
    def _inspection(self) -> Inspection:
        return inspect_hint(self._hint)

    def __getstate__(self) -> dict[str, Any]:
        # The inspection is not pickled: the process that unpickles the type inspects again.
        return {"_hint": self._hint}

    def python_type(self) -> Any | None:
        return None if self._inspection.pickle_reason is not None else self._hint

    def pickle_reason(self) -> str | None:
        return self._inspection.pickle_reason

    def fingerprint(self) -> str:
        return self._inspection.fingerprint

    def schema(self) -> TypeSchema:
        return TypeSchema("Tagged") if self.pickle_reason() is not None else schema_of_hint(self._hint)

    def __repr__(self) -> str:
        return self._inspection.name


class ClassTypeInfo(PythonTypeInfo):
    """Instances of one class, described by its fields."""

    kind = "Class"

    def get_class(self) -> type:
        """The class."""
        cls: type = self._hint
        return cls

    def exact_class(self) -> type | None:
        return self.get_class()

    def __repr__(self) -> str:
        return f"{self.kind}<{self.get_class().__name__}>"


class DataclassTypeInfo(ClassTypeInfo):
    """Instances of a dataclass; its annotations are its types.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Order:
    ...     id: int
    >>> DataclassTypeInfo(Order)
    Dataclass<Order>
    """

    kind = "Dataclass"


class NamedTupleTypeInfo(ClassTypeInfo):
    """Instances of a `typing.NamedTuple`."""

    kind = "NamedTuple"


class StructTypeInfo(ClassTypeInfo):
    """Instances of a `msgspec.Struct`: the fastest way for records to travel.

    >>> import msgspec
    >>> class Point(msgspec.Struct, array_like=True):
    ...     x: float
    ...     y: float
    >>> StructTypeInfo(Point).describe()
    'Struct<Point> (msgpack)'
    """

    kind = "Struct"


class EnumTypeInfo(ClassTypeInfo):
    """Members of an Enum whose values are all strings or all ints."""

    kind = "Enum"

    def exact_class(self) -> None:
        return None
