"""`Schema`: the columns of a table."""

from __future__ import annotations

from typing import Any, NoReturn

from rekindle.common.data_types import DataType, RowField, RowType
from rekindle.errors import GraphError
from rekindle.table.sql_types import parse_type

__all__ = ["Schema"]


class Schema:
    """The columns of a table, in order.

    >>> from rekindle.common.data_types import DataTypes
    >>> Schema.new_builder().column("word", DataTypes.STRING()).column("count", "BIGINT").build()
    (
      `word` STRING,
      `count` BIGINT
    )
    """

    def __init__(self, row_type: RowType) -> None:
        """Do not call directly: use `new_builder`."""
        self.row_type = row_type

    @staticmethod
    def new_builder() -> Schema.Builder:
        """Return a builder of a schema."""
        return Schema.Builder()

    def get_column_names(self) -> list[str]:
        """Return the names of the columns."""
        return self.row_type.field_names()

    def get_column_data_types(self) -> list[DataType]:
        """Return the types of the columns."""
        return self.row_type.field_types()

    def __str__(self) -> str:
        columns = ",\n".join(f"  `{field.name}` {field.data_type.sql()}" for field in self.row_type)
        return f"(\n{columns}\n)"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.row_type == other.row_type

    def __hash__(self) -> int:
        return hash(str(self))

    class Builder:
        """Builds a `Schema`, column by column."""

        def __init__(self) -> None:
            self._fields: list[RowField] = []

        def column(self, column_name: str, data_type: DataType | str) -> Schema.Builder:
            """Add a column, whose type may be written as in SQL."""
            if any(column_name == field.name for field in self._fields):
                raise GraphError(f"The schema has the column '{column_name}' already.")
            declared = parse_type(data_type) if isinstance(data_type, str) else data_type
            self._fields.append(RowField(column_name, declared))
            return self

        def from_row_data_type(self, data_type: DataType) -> Schema.Builder:
            """Add the columns of a row type."""
            if not isinstance(data_type, RowType):
                raise GraphError(f"from_row_data_type() takes DataTypes.ROW(...), not {data_type!r}.")
            return self.from_fields(data_type.field_names(), data_type.field_types())

        def from_fields(self, field_names: list[str], field_data_types: list[DataType]) -> Schema.Builder:
            """Add columns of these names and types."""
            for name, data_type in zip(field_names, field_data_types, strict=True):
                self.column(name, data_type)
            return self

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Add the columns of another schema."""
            return self.from_row_data_type(unresolved_schema.row_type)

        def column_by_expression(self, *arguments: Any) -> NoReturn:
            """Refused: compute the column in a query."""
            raise GraphError("column_by_expression() is not here: compute the column with select() or in SQL.")

        def column_by_metadata(self, *arguments: Any) -> NoReturn:
            """Refused: there are no columns of metadata."""
            raise GraphError("column_by_metadata() is not here: a stream's table has the fields of its records only.")

        def watermark(self, *arguments: Any) -> NoReturn:
            """Refused: assign watermarks in the DataStream."""
            raise GraphError(
                "watermark() of a schema is not here: queries read bounded tables. Assign timestamps and watermarks in "
                "the DataStream with assign_timestamps_and_watermarks()."
            )

        def primary_key(self, *arguments: Any) -> NoReturn:
            """Refused: tables have no keys."""
            raise GraphError("primary_key() is not here: tables have no keys.")

        def build(self) -> Schema:
            """Return the schema."""
            return Schema(RowType(self._fields))
