"""Types with parts: rows, tuples, lists, arrays, maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.common.type_system.basic import BasicType, BasicTypeInfo
from rekindle.common.type_system.converters import (
    list_converter,
    map_converter,
    row_from_wire,
    row_shaper,
    row_to_wire,
    row_values,
    tuple_converter,
    values_converter,
)
from rekindle.common.type_system.type_information import (
    Converter,
    TypeInformation,
    coerce,
    first_pickle_reason,
    nullable,
    nullable_schema,
)
from rekindle.common.types import ROW_KINDS, Row, make_row, names_by_position
from rekindle.errors import TypeMismatchError
from rekindle.serde.type_schema import FieldSchema, TypeSchema

_BYTE = BasicTypeInfo(BasicType.BYTE)


class _Composite(TypeInformation):
    """A type whose parts have types."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = [coerce(part) for part in parts]

    def pickle_reason(self) -> str | None:
        return first_pickle_reason(self._parts)

    def python_type(self) -> Any | None:
        return None if self.pickle_reason() is not None else self._wire_type([nullable(part) for part in self._parts])

    def _wire_type(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _name(self) -> str:
        raise NotImplementedError

    def schema(self) -> TypeSchema:
        if self.pickle_reason() is not None:
            return TypeSchema("Tagged")
        return TypeSchema(self._name(), parts=tuple(map(nullable_schema, self._parts)))

    def fingerprint(self) -> str:
        return f"{self._name()}<{','.join(part.fingerprint() for part in self._parts)}>"

    def __repr__(self) -> str:
        return f"{self._name()}<{', '.join(map(repr, self._parts))}>"

    def __str__(self) -> str:
        return f"{self._name()}TypeInfo<{', '.join(map(str, self._parts))}>"


class TupleTypeInfo(_Composite):
    """Tuples of a fixed length.

    >>> TupleTypeInfo([str, int])
    Tuple<String, Long>
    """

    def __init__(self, field_types: Sequence[Any]) -> None:
        super().__init__(field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return self._parts

    def _wire_type(self, parts: list[Any]) -> Any:
        return tuple[tuple(parts)]  # type: ignore[misc]

    def _name(self) -> str:
        return "Tuple"

    def __str__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self._parts))})"

    def _shape(self) -> Converter | None:
        return tuple_converter([part._shape() for part in self._parts])

    def _fit(self, wrap: bool) -> Converter | None:
        return tuple_converter([part._fit(wrap) for part in self._parts])

    def to_wire(self) -> Converter | None:
        return tuple_converter([part.to_wire() for part in self._parts])

    def from_wire(self) -> Converter | None:
        return tuple_converter([part.from_wire() for part in self._parts])

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """The fields, each in its internal form."""
        if obj is None:
            return None
        if not isinstance(obj, list | tuple | Row):
            raise TypeMismatchError(f"{obj!r} is not a tuple of the type {self!r}.")
        return tuple(part.to_internal_type(value) for part, value in zip(self._parts, obj, strict=True))

    def from_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """The tuple whose fields have these internal forms."""
        if obj is None:
            return None
        return tuple(part.from_internal_type(value) for part, value in zip(self._parts, obj, strict=True))


class RowTypeInfo(_Composite):
    """Rows; fields without names are called f0, f1, ... As in PyFlink, row types with equal field types are equal.

    >>> RowTypeInfo([str, int], ["name", "age"])
    Row<name: String, age: Long>
    """

    def __init__(self, field_types: Sequence[Any], field_names: Sequence[str] | None = None) -> None:
        super().__init__(field_types)
        if field_names is not None and len(field_names) != len(self._parts):
            raise TypeMismatchError(
                f"A row type needs as many names as types: {list(field_names)} for {len(self._parts)} types."
            )
        if field_names is not None and len(set(field_names)) != len(field_names):
            raise TypeMismatchError(f"The field names of a row type must differ: {list(field_names)}.")
        self._field_names = None if field_names is None else list(field_names)
        self._aliases: dict[str, tuple[str, ...]] = {}

    def get_field_names(self) -> list[str]:
        """The names of the fields; f0, f1, ... when none were given."""
        return self._field_names or names_by_position(len(self._parts))

    def get_field_index(self, field_name: str) -> int:
        """The position of a field; -1 when the type has no names."""
        return -1 if self._field_names is None else self._field_names.index(field_name)

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return self._parts

    def _wire_type(self, parts: list[Any]) -> Any:
        return tuple[(int, *parts)]  # type: ignore[valid-type]

    def _shape(self) -> Converter:
        return row_shaper(self.get_field_names(), values_converter([part._shape() for part in self._parts]))

    def _fit(self, wrap: bool) -> Converter | None:
        fit = values_converter([part._fit(wrap) for part in self._parts])
        return None if fit is None else row_shaper(self.get_field_names(), fit)

    def to_wire(self) -> Converter:
        return row_to_wire(self.get_field_names(), values_converter([part.to_wire() for part in self._parts]))

    def from_wire(self) -> Converter:
        return row_from_wire(self.get_field_names(), values_converter([part.from_wire() for part in self._parts]))

    def _name(self) -> str:
        return "Row"

    def _identity(self) -> Any:
        return tuple(self._parts)

    def with_aliases(self, **former_names: str | tuple[str, ...]) -> RowTypeInfo:
        """The same type with former names of fields, under which older checkpoints know them.

        >>> RowTypeInfo([int, float], ["id", "amount"]).with_aliases(amount="price")
        Row<id: Long, amount: Double>
        """
        unknown = [name for name in former_names if name not in (self._field_names or ())]
        if unknown:
            raise TypeMismatchError(f"{self!r} has no field {unknown[0]!r}: write new_name='former_name'.")
        renamed = RowTypeInfo(self._parts, self._field_names)
        renamed._aliases = {
            name: (former,) if isinstance(former, str) else tuple(former) for name, former in former_names.items()
        }
        return renamed

    def schema(self) -> TypeSchema:
        if self.pickle_reason() is not None:
            return TypeSchema("Tagged")
        fields = tuple(
            FieldSchema(name, nullable_schema(part), aliases=self._aliases.get(name, ()))
            for name, part in zip(self.get_field_names(), self._parts, strict=True)
        )
        return TypeSchema("Row", fields=fields, positional=self._field_names is None)

    def fingerprint(self) -> str:
        if self._field_names is None:
            return super().fingerprint()
        named = zip(self._field_names, self._parts, strict=True)
        return f"Row<{','.join(f'{name}:{part.fingerprint()}' for name, part in named)}>"

    def __repr__(self) -> str:
        if self._field_names is None:
            return super().__repr__()
        named = zip(self._field_names, self._parts, strict=True)
        return f"Row<{', '.join(f'{name}: {part!r}' for name, part in named)}>"

    def __str__(self) -> str:
        if self._field_names is None:
            return f"RowTypeInfo({', '.join(map(str, self._parts))})"
        named = zip(self._field_names, self._parts, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {part}' for name, part in named)})"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """The row's kind, then its fields, each in its internal form."""
        if obj is None:
            return None
        kind, values = row_values(obj, self.get_field_names())
        return kind, *(part.to_internal_type(value) for part, value in zip(self._parts, values, strict=True))

    def from_internal_type(self, obj: Any) -> Row | None:
        """The row whose kind and fields have these internal forms."""
        if obj is None:
            return None
        kind, *values = obj
        converted = [part.from_internal_type(value) for part, value in zip(self._parts, values, strict=True)]
        return make_row(self.get_field_names(), converted, ROW_KINDS[kind])


class ListTypeInfo(_Composite):
    """Lists of one element type.

    >>> ListTypeInfo(int)
    List<Long>
    """

    def __init__(self, element_type: Any) -> None:
        super().__init__([element_type])

    @property
    def elem_type(self) -> TypeInformation:
        """The type of the elements."""
        return self._parts[0]

    def _wire_type(self, parts: list[Any]) -> Any:
        return list[parts[0]]  # type: ignore[valid-type]

    def _name(self) -> str:
        return "List"

    def _shape(self) -> Converter | None:
        return list_converter(self._parts[0]._shape())

    def _fit(self, wrap: bool) -> Converter | None:
        return list_converter(self._parts[0]._fit(wrap))

    def to_wire(self) -> Converter | None:
        return list_converter(self._parts[0].to_wire())

    def from_wire(self) -> Converter | None:
        return list_converter(self._parts[0].from_wire())


class ObjectArrayTypeInfo(ListTypeInfo):
    """Arrays of any element type: lists in Python."""

    def _name(self) -> str:
        return "ObjectArray"


class BasicArrayTypeInfo(ListTypeInfo):
    """Arrays of boxed basic types: lists in Python."""

    def __init__(self, element_type: Any) -> None:
        super().__init__(element_type)
        _require_basic(self, self._parts[0], _BASIC_ELEMENTS)

    def _name(self) -> str:
        return "BasicArray"


class PrimitiveArrayTypeInfo(ListTypeInfo):
    """Arrays of primitives: lists in Python, and `bytes` when the elements are bytes.

    >>> PrimitiveArrayTypeInfo(BasicTypeInfo.BYTE_TYPE_INFO()).python_type()
    <class 'bytes'>
    """

    def __init__(self, element_type: Any) -> None:
        super().__init__(element_type)
        _require_basic(self, self._parts[0], _PRIMITIVES)

    def _wire_type(self, parts: list[Any]) -> Any:
        return bytes if self._parts[0] == _BYTE else super()._wire_type(parts)

    def _fit(self, wrap: bool) -> Converter | None:
        return None if self._parts[0] == _BYTE else super()._fit(wrap)

    def schema(self) -> TypeSchema:
        return TypeSchema("Bytes") if self._parts[0] == _BYTE else super().schema()

    def _name(self) -> str:
        return "PrimitiveArray"


class MapTypeInfo(_Composite):
    """Dicts of one key type and one value type.

    >>> MapTypeInfo(str, int)
    Map<String, Long>
    """

    def __init__(self, key_type_info: Any, value_type_info: Any) -> None:
        super().__init__([key_type_info, value_type_info])

    def _wire_type(self, parts: list[Any]) -> Any:
        return dict[parts[0], parts[1]]  # type: ignore[valid-type]

    def _name(self) -> str:
        return "Map"

    def _shape(self) -> Converter | None:
        return map_converter(self._parts[0]._shape(), self._parts[1]._shape())

    def _fit(self, wrap: bool) -> Converter | None:
        return map_converter(self._parts[0]._fit(wrap), self._parts[1]._fit(wrap))

    def to_wire(self) -> Converter | None:
        return map_converter(self._parts[0].to_wire(), self._parts[1].to_wire())

    def from_wire(self) -> Converter | None:
        return map_converter(self._parts[0].from_wire(), self._parts[1].from_wire())


class ExternalTypeInfo(TypeInformation):
    """Another type under the name that Flink's Table API gives it."""

    def __init__(self, type_info: Any) -> None:
        self._type_info = coerce(type_info)

    def python_type(self) -> Any | None:
        return self._type_info.python_type()

    def _shape(self) -> Converter | None:
        return self._type_info._shape()

    def _fit(self, wrap: bool) -> Converter | None:
        return self._type_info._fit(wrap)

    def to_wire(self) -> Converter | None:
        return self._type_info.to_wire()

    def from_wire(self) -> Converter | None:
        return self._type_info.from_wire()

    def exact_class(self) -> type | None:
        return self._type_info.exact_class()

    def pickle_reason(self) -> str | None:
        return self._type_info.pickle_reason()

    def schema(self) -> TypeSchema:
        return self._type_info.schema()

    def fingerprint(self) -> str:
        return self._type_info.fingerprint()

    def __repr__(self) -> str:
        return f"External<{self._type_info!r}>"

    def __str__(self) -> str:
        return f"ExternalTypeInfo<{self._type_info}>"


_PRIMITIVES = frozenset(
    {
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    }
)
_BASIC_ELEMENTS = _PRIMITIVES | {BasicType.STRING}


def _require_basic(array: ListTypeInfo, element: TypeInformation, allowed: frozenset[BasicType]) -> None:
    if not isinstance(element, BasicTypeInfo) or element._basic_type not in allowed:
        names = ", ".join(sorted(basic.value for basic in allowed))
        raise TypeMismatchError(f"{array._name()} cannot hold {element!r}: its elements are one of {names}.")
