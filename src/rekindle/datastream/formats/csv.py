"""Messages and files in CSV. Messages are read and written as Flink's `CsvRowDeserializationSchema` and
`CsvRowSerializationSchema` do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rekindle.common.serialization import DeserializationSchema, SerializationSchema
from rekindle.common.type_system.fields import record_maker
from rekindle.common.typeinfo import TypeInformation, infer_type_info
from rekindle.datastream.formats.csv_cells import cell_columns, cell_reader, cell_writer
from rekindle.datastream.formats.csv_files import CsvBulkWriters, CsvReaderFormat
from rekindle.datastream.formats.csv_lines import CsvLineFormat, cell_quoter, line_splitter
from rekindle.datastream.formats.csv_schema import CsvSchema, CsvSchemaBuilder
from rekindle.datastream.formats.fieldwise import each_field, values_reader
from rekindle.datastream.formats.mismatch import Mismatch, shown, shown_bytes
from rekindle.datastream.formats.shipped import Shipped
from rekindle.errors import GraphError, SerializationError

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


class CsvRowDeserializationSchema(Shipped, DeserializationSchema):
    """Reads a message with one line of CSV as a row; the cells are the fields in order.

    >>> from rekindle.common import Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
    >>> CsvRowDeserializationSchema.Builder(row_type).build().deserialize(b'"ann, bob",5')
    Row(user='ann, bob', amount=5)
    """

    def __init__(self, type_info: TypeInformation, form: CsvLineFormat, ignore_parse_errors: bool) -> None:
        self._type_info = type_info
        self._form = form
        self._ignore_parse_errors = ignore_parse_errors

    def open(self, context: Any = None) -> None:
        """Build the readers of the cells."""
        columns = cell_columns(self._type_info)
        readers = [cell_reader(part, self._form, self._ignore_parse_errors) for _, part in columns]
        convert = each_field([name for name, _ in columns], readers)
        self._built = (line_splitter(self._form), len(columns), convert, record_maker(self._type_info))

    def deserialize(self, message: bytes) -> Any:
        """Return the record of a message; None, which skips it, for comments and for errors that are ignored."""
        if self._built is None:
            self.open()
        try:
            return self._read(message)
        except (Mismatch, UnicodeDecodeError) as error:
            if self._ignore_parse_errors:
                return None
            problem = error if isinstance(error, Mismatch) else f"it is not UTF-8 at byte {error.start}"
            raise SerializationError(
                f"The CSV message does not fit its type: {problem}; the message is {shown_bytes(message)}."
            ) from None

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return self._type_info

    def _read(self, message: bytes | None) -> Any:
        if message is None:  # a deletion in Kafka is a message without a value
            return None
        split, arity, convert, make = self._built
        cells = split(message.decode())
        if cells is None:
            return None
        if len(cells) != arity:
            if not self._ignore_parse_errors or len(cells) > arity:
                raise Mismatch(f"has {len(cells)} values where {arity} are expected")
            cells += [None] * (arity - len(cells))
        return make([convert(cells)])[0]

    class Builder:
        """Builds a `CsvRowDeserializationSchema`."""

        def __init__(self, type_info: Any) -> None:
            self._type_info = _type_with_columns(type_info)
            self._form = CsvLineFormat()
            self._ignore_parse_errors = False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the character between the fields; `,` by default."""
            self._form = replace(self._form, delimiter=_character("set_field_delimiter", delimiter))
            return self

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether messages that begin with `#` are skipped."""
            self._form = replace(self._form, allow_comments=allow_comments)
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text between the elements of an array or a nested row; `;` by default."""
            self._form = replace(self._form, array_delimiter=_array_delimiter(delimiter))
            return self

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the character around fields with special characters; `"` by default."""
            self._form = replace(self._form, quote=_character("set_quote_character", c))
            return self

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the character that takes the meaning of the next one; none by default."""
            self._form = replace(self._form, escape=_character("set_escape_character", c))
            return self

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text that stands for None; none by default."""
            self._form = replace(self._form, null_literal=_null_literal(null_literal))
            return self

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether fields that do not fit or are missing are None, and lines that are no CSV are skipped."""
            self._ignore_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """Return the schema."""
            return CsvRowDeserializationSchema(self._type_info, _distinct(self._form), self._ignore_parse_errors)


class CsvRowSerializationSchema(Shipped, SerializationSchema):
    """Writes a row as one line of CSV.

    >>> from rekindle.common import Row, Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
    >>> CsvRowSerializationSchema.Builder(row_type).build().serialize(Row("ann, bob", 5))
    b'"ann, bob",5\\n'
    """

    def __init__(self, type_info: TypeInformation, form: CsvLineFormat) -> None:
        self._type_info = type_info
        self._form = form

    def open(self, context: Any = None) -> None:
        """Build the writers of the cells."""
        names, parts, read = values_reader(self._type_info)
        quote = cell_quoter(self._form)
        convert = each_field(names, [cell_writer(part, self._form, quote) for part in parts])
        self._built = (read, convert)

    def serialize(self, element: Any) -> bytes:
        """Return the line of a record."""
        if self._built is None:
            self.open()
        read, convert = self._built
        null = self._form.null_literal or ""
        try:
            cells = convert(read(element))
            line = self._form.delimiter.join([null if cell is None else cell for cell in cells])
            return f"{line}{self._form.line_end}".encode()
        except (Mismatch, UnicodeEncodeError) as error:
            raise SerializationError(
                f"The record cannot be written as CSV: {error}; the record is {shown(repr(element))}."
            ) from None

    class Builder:
        """Builds a `CsvRowSerializationSchema`."""

        def __init__(self, type_info: Any) -> None:
            self._type_info = _type_with_columns(type_info)
            self._form = CsvLineFormat()

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the character between the fields; `,` by default."""
            self._form = replace(self._form, delimiter=_character("set_field_delimiter", c))
            return self

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the end of the line: a newline by default, a carriage return, both, or nothing."""
            if delimiter not in ("\n", "\r", "\r\n", ""):
                raise ValueError(f"set_line_delimiter takes '\\n', '\\r', '\\r\\n' or '', not {delimiter!r}.")
            self._form = replace(self._form, line_end=delimiter)
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the text between the elements of an array or a nested row; `;` by default."""
            self._form = replace(self._form, array_delimiter=_array_delimiter(delimiter))
            return self

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Write without quotes. A delimiter in a field then needs an escape character; a line end is refused."""
            self._form = replace(self._form, quote=None)
            return self

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the character around fields with special characters; `"` by default."""
            self._form = replace(self._form, quote=_character("set_quote_character", c))
            return self

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the character that takes the meaning of the next one; none by default."""
            self._form = replace(self._form, escape=_character("set_escape_character", c))
            return self

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the text that is written for None; nothing by default."""
            self._form = replace(self._form, null_literal=_null_literal(s))
            return self

        def build(self) -> CsvRowSerializationSchema:
            """Return the schema."""
            return CsvRowSerializationSchema(self._type_info, _distinct(self._form))


def _type_with_columns(type_info: Any) -> TypeInformation:
    if type_info is None:
        raise TypeError("A CSV schema needs a type with fields, such as Types.ROW_NAMED([...], [...]), not None.")
    declared = infer_type_info(type_info)
    cell_columns(declared)
    return declared


def _character(method: str, value: str) -> str:
    if not isinstance(value, str) or len(value) != 1 or value in "\r\n":
        raise ValueError(f"{method} takes one character, not {value!r}.")
    return value


def _array_delimiter(value: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"set_array_element_delimiter takes a text, not {value!r}.")
    return value


def _null_literal(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"set_null_literal takes a text, not {value!r}.")
    return value


def _distinct(form: CsvLineFormat) -> CsvLineFormat:
    marks = [mark for mark in (form.delimiter, form.quote, form.escape) if mark is not None]
    if len(set(marks)) != len(marks):
        raise GraphError(f"Delimiter, quote and escape character of CSV must differ: {' '.join(marks)}.")
    return form
