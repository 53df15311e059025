"""Types of tables with parts: arrays, maps, multisets, rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rekindle.common.data_types.atomic import DataType
from rekindle.common.typeinfo import RowTypeInfo, TypeInformation, Types
from rekindle.errors import GraphError


class ArrayType(DataType):
    """Lists of one type."""

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = _checked("ARRAY", element_type)

    def sql_name(self) -> str:
        return f"ARRAY<{self.element_type.sql()}>"

    def spark_name(self) -> str:
        return f"ARRAY<{self.element_type.spark_name()}>"

    def to_type_info(self) -> TypeInformation:
        return Types.LIST(self.element_type.to_type_info())

    def _arguments(self) -> tuple[Any, ...]:
        return (self.element_type,)


class MapType(DataType):
    """Dicts of one key type and one value type."""

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.key_type = _checked("MAP", key_type)
        self.value_type = _checked("MAP", value_type)

    def sql_name(self) -> str:
        return f"MAP<{self.key_type.sql()}, {self.value_type.sql()}>"

    def spark_name(self) -> str:
        return f"MAP<{self.key_type.spark_name()}, {self.value_type.spark_name()}>"

    def to_type_info(self) -> TypeInformation:
        return Types.MAP(self.key_type.to_type_info(), self.value_type.to_type_info())

    def _arguments(self) -> tuple[Any, ...]:
        return (self.key_type, self.value_type)


class MultisetType(DataType):
    """Values of one type with how often each occurs."""

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = _checked("MULTISET", element_type)

    def sql_name(self) -> str:
        return f"MULTISET<{self.element_type.sql()}>"

    def spark_name(self) -> str:
        return f"MAP<{self.element_type.spark_name()}, INT>"

    def to_type_info(self) -> TypeInformation:
        return Types.MAP(self.element_type.to_type_info(), Types.INT())

    def _arguments(self) -> tuple[Any, ...]:
        return (self.element_type,)


class RowField:
    """A column: its name, its type, and a description."""

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise GraphError(f"A column's name is a text, not {name!r}.")
        self.name = name
        self.data_type = _checked(f"The column '{name}'", data_type)
        self.description = "..." if description is None else description

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type!r}, {self.description})"

    def __str__(self) -> str:
        return f"RowField({self.name}, {self.data_type})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(str(self))


class RowType(DataType):
    """Rows with named columns.

    >>> from rekindle.common.data_types import DataTypes
    >>> row = RowType([RowField("word", DataTypes.STRING()), RowField("count", DataTypes.BIGINT())])
    >>> row.sql(), row.to_type_info()
    ('ROW<`word` STRING, `count` BIGINT>', Row<word: String, count: Long>)
    """

    def __init__(self, fields: Iterable[RowField] | None = None, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.fields: list[RowField] = list(fields or ())
        if not all(isinstance(field, RowField) for field in self.fields):
            raise GraphError("A ROW has columns made with DataTypes.FIELD(name, type).")
        self.names = [field.name for field in self.fields]

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """Add a column, given as a field or as its name and type."""
        if isinstance(field, str):
            if data_type is None:
                raise ValueError(f"Give the type of the column '{field}'.")
            field = RowField(field, data_type)
        self.fields.append(field)
        self.names.append(field.name)
        return self

    def field_names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.names)

    def field_types(self) -> list[DataType]:
        """Return the types of the columns."""
        return [field.data_type for field in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, key: str | int | slice) -> RowField | RowType:
        if isinstance(key, slice):
            return RowType(self.fields[key])
        if isinstance(key, int):
            return self.fields[key]
        for field in self.fields:
            if field.name == key:
                return field
        raise KeyError(f"There is no column '{key}': there are {', '.join(self.names)}.")

    def sql_name(self) -> str:
        return f"ROW<{', '.join(f'`{field.name}` {field.data_type.sql()}' for field in self.fields)}>"

    def spark_name(self) -> str:
        return f"STRUCT<{', '.join(f'`{field.name}`: {field.data_type.spark_name()}' for field in self.fields)}>"

    def to_type_info(self) -> RowTypeInfo:
        return Types.ROW_NAMED(self.names, [field.data_type.to_type_info() for field in self.fields])

    def __repr__(self) -> str:
        return f"RowType({', '.join(map(str, self.fields))})"


def _checked(where: str, data_type: Any) -> DataType:
    if not isinstance(data_type, DataType):
        raise GraphError(f"{where} takes a type of DataTypes, such as DataTypes.STRING(), not {data_type!r}.")
    return data_type
