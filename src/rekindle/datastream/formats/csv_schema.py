"""`CsvSchema`: the columns of a CSV file and the characters between them, as Jackson's schema describes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from rekindle.common.data_types import ArrayType, DataType, DataTypes, NumericType, RowField, RowType
from rekindle.datastream.formats.csv_lines import CsvLineFormat
from rekindle.errors import GraphError


@dataclass(frozen=True)
class CsvColumn:
    """A column: its name and type, and the text between the elements of an array."""

    name: str
    data_type: DataType
    separator: str = ";"


@dataclass(frozen=True)
class CsvSchema:
    """The columns of a CSV file.

    >>> schema = CsvSchema.builder().add_string_column("word").add_number_column("count").build()
    >>> len(schema), schema
    (2, [CsvSchema: columns=["word","count"], header? false])
    """

    columns: tuple[CsvColumn, ...]
    form: CsvLineFormat = field(default_factory=CsvLineFormat)
    use_header: bool = False
    strict_headers: bool = False
    skip_first_data_row: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Return a builder of a schema."""
        return CsvSchemaBuilder()

    @property
    def row_type(self) -> RowType:
        """The type of the rows."""
        return RowType([RowField(column.name, column.data_type) for column in self.columns])

    def size(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __str__(self) -> str:
        names = ",".join(f'"{column.name}"' for column in self.columns)
        return f"[CsvSchema: columns=[{names}], header? {str(self.use_header).lower()}]"

    __repr__ = __str__


class CsvSchemaBuilder:
    """Builds a `CsvSchema`, column by column."""

    def __init__(self) -> None:
        self._columns: list[CsvColumn] = []
        self._form = CsvLineFormat()
        self._flags: dict[str, bool] = {}

    def build(self) -> CsvSchema:
        """Return the schema."""
        marks = [mark for mark in (self._form.delimiter, self._form.quote, self._form.escape) if mark is not None]
        if len(set(marks)) != len(marks):
            raise GraphError(f"Separator, quote and escape character of CSV must differ: {' '.join(marks)}.")
        return CsvSchema(tuple(self._columns), self._form, **self._flags)

    # -- columns ------------------------------------------------------------------------------------------------------

    def add_array_column(
        self, name: str, separator: str = ";", element_type: DataType | None = None
    ) -> CsvSchemaBuilder:
        """Add a column of arrays, of text unless another type is given, with this text between the elements."""
        return self._add(CsvColumn(name, ArrayType(element_type or DataTypes.STRING()), separator))

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of true and false."""
        return self._add(CsvColumn(name, DataTypes.BOOLEAN()))

    def add_number_column(self, name: str, number_type: DataType | None = None) -> CsvSchemaBuilder:
        """Add a column of numbers: of BIGINT, unless another type is given."""
        if number_type is not None and not isinstance(number_type, NumericType):
            raise GraphError(f"add_number_column('{name}') takes a type of numbers, not {number_type!r}.")
        return self._add(CsvColumn(name, number_type or DataTypes.BIGINT()))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of text."""
        return self._add(CsvColumn(name, DataTypes.STRING()))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        for column in schema.columns:
            self._add(column)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        self._columns.clear()
        return self

    def size(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def _add(self, column: CsvColumn) -> CsvSchemaBuilder:
        if any(column.name == known.name for known in self._columns):
            raise GraphError(f"The CSV schema has the column '{column.name}' already.")
        self._columns.append(column)
        return self

    # -- characters ---------------------------------------------------------------------------------------------------

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the character between columns; `,` by default."""
        return self._with(delimiter=_character("Column separator", char))

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the text between the elements of all arrays that were added so far."""
        return self._with_separators(range(len(self._columns)), separator)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Let each cell of an array be one element."""
        return self._with_separators(range(len(self._columns)), "")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Let each cell of this column be one element."""
        if not 0 <= index < len(self._columns):
            raise GraphError(f"The CSV schema has no column {index}: it has {len(self._columns)}.")
        return self._with_separators([index], "")

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Use no escape character, which is the default."""
        return self._with(escape=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the character that takes the meaning of the next one."""
        return self._with(escape=_character("Escape char", char))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the end of written lines. Lines that are read end with `\\n` or `\\r\\n`."""
        return self._with(line_end=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text that stands for None; none by default."""
        return self._with(null_literal=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Read and write without quotes."""
        return self._with(quote=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the character around cells with special characters; `"` by default."""
        return self._with(quote=_character("Quote char", char))

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Set whether lines that begin with `#` are skipped."""
        return self._with(allow_comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Refused: a row has no place for cells without a column."""
        raise GraphError("set_any_property_name() is not here: a row has no place for cells without a column.")

    # -- header -------------------------------------------------------------------------------------------------------

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Set whether the first line after the header, if there is one, is skipped."""
        self._flags["skip_first_data_row"] = skip
        return self

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Set whether the header must have the names of the columns, in their order."""
        self._flags["strict_headers"] = strict
        return self

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Set whether the first line of a file is its header."""
        self._flags["use_header"] = use
        return self

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._form = replace(self._form, **changes)
        return self

    def _with_separators(self, places: Any, separator: str) -> CsvSchemaBuilder:
        for place in places:
            self._columns[place] = replace(self._columns[place], separator=separator)
        return self


def _character(what: str, char: str) -> str:
    if not isinstance(char, str) or len(char) != 1:
        raise ValueError(f"{what} must be a single char, got {char}")
    return char
