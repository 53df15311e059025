"""Files of CSV under PyFlink's names: `CsvReaderFormat` reads them, `CsvBulkWriters` writes them."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO

from rekindle.common.data_types import RowType
from rekindle.common.serialization import BulkWriter, RowDataBulkWriterFactory
from rekindle.common.type_system.fields import record_maker
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.files.formats import RecordReader, StreamFormat
from rekindle.datastream.connectors.files.lines import LineReader, decode_lines
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.formats.csv_columns import column_readers, column_writers
from rekindle.datastream.formats.csv_lines import cell_quoter
from rekindle.datastream.formats.csv_schema import CsvSchema
from rekindle.datastream.formats.fieldwise import each_field, values_reader
from rekindle.datastream.formats.mismatch import Mismatch, shown
from rekindle.errors import ConnectorError, GraphError, SerializationError

_CHARSET = "utf-8"
_LARGEST_CELL = 2**31 - 1


class CsvReaderFormat(StreamFormat):
    """Reads files of CSV as rows. Quoted cells may have line ends in them, so each file is read as one split.

    >>> schema = CsvSchema.builder().add_string_column("word").add_number_column("count").build()
    >>> CsvReaderFormat.for_schema(schema).get_produced_type(None)
    Row<word: String, count: Long>
    """

    def __init__(self, schema: CsvSchema) -> None:
        """Do not call directly: use `for_schema`."""
        column_readers(schema)  # refuses types that no cell can hold
        self._schema = schema

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Return the format of files with these columns."""
        return CsvReaderFormat(_checked("CsvReaderFormat.for_schema()", schema))

    def open(self, split: FileSplit) -> RecordReader:
        """Return a reader of rows."""
        return _CsvRows(split, self._schema)

    def get_produced_type(self, path: str | None) -> TypeInformation:
        """Return the type of the rows."""
        return self._schema.row_type.to_type_info()


class _CsvRows:
    def __init__(self, split: FileSplit, schema: CsvSchema) -> None:
        csv.field_size_limit(max(_LARGEST_CELL, csv.field_size_limit()))  # a setting of the whole process
        self._path = split.path
        self._split = split
        self._schema = schema
        self._form = schema.form
        self._specials = tuple(filter(None, (schema.form.quote, schema.form.escape)))
        self._lines = LineReader(split, _CHARSET)
        self._convert = each_field([column.name for column in schema.columns], column_readers(schema))
        self._make = record_maker(schema.row_type.to_type_info())
        if self._lines.offset == 0:
            try:
                self._skip_head()
            except BaseException:
                self._lines.close()
                raise
        self.offset = self._lines.offset

    def read(self, max_records: int) -> list[Any]:
        while True:
            begin = self._lines.offset
            lines = self._take(max_records)
            if not lines:
                return []
            rows = list(self._rows(lines, begin))
            self.offset = self._lines.offset
            if rows:
                return self._make(rows)

    def close(self) -> None:
        self._lines.close()

    def _skip_head(self) -> None:
        if self._schema.use_header:
            header = next(self._cells(self._take(1), 0), [])
            names = [column.name for column in self._schema.columns]
            if self._schema.strict_headers and header != names:
                raise ConnectorError(f"{self._path} has the header {', '.join(header)} instead of {', '.join(names)}.")
        if self._schema.skip_first_data_row:
            next(self._cells(self._take(1), self._lines.offset), None)

    def _take(self, count: int) -> deque[str]:
        begin = self._lines.offset
        lines = self._lines.take(count)
        if not lines:
            return deque()
        return deque(decode_lines(lines, self._split, begin, _CHARSET, keep_returns=True))

    def _rows(self, lines: deque[str], begin: int) -> Iterator[list[Any]]:
        width = len(self._schema.columns)
        for cells in self._cells(lines, begin):
            try:
                if len(cells) != width:
                    raise Mismatch(f"has {len(cells)} values where {width} are expected")
                yield self._convert(cells)
            except Mismatch as mismatch:
                raise ConnectorError(
                    f"{self._path}: a record after offset {begin} does not fit its type: {mismatch}. "
                    f"It is {shown(repr(cells))}."
                ) from None

    def _cells(self, lines: deque[str], begin: int) -> Iterator[list[str]]:
        """Yield the cells of the records that begin in these lines. The last one may reach beyond them."""
        form = self._form
        while lines:
            line = lines.popleft()
            bare = line.removesuffix("\r")
            if not bare or (form.allow_comments and bare.startswith("#")):
                continue
            if not any(special in line for special in self._specials) and "\r" not in bare:
                yield bare.split(form.delimiter)
                continue
            try:
                yield next(self._parser(self._from(line, lines)))
            except (csv.Error, StopIteration) as error:
                raise ConnectorError(
                    f"{self._path}: the text from offset {begin} on is not CSV: {error or 'a quote does not end'}."
                ) from None

    def _from(self, line: str, lines: deque[str]) -> Iterator[str]:
        """Yield a line and those after it, as far as the record reaches."""
        yield f"{line}\n"
        while lines or (more := self._take(1)):
            yield f"{(lines or more).popleft()}\n"

    def _parser(self, lines: Iterator[str]) -> Iterator[list[str]]:
        form = self._form
        quoting: Any = csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE
        return csv.reader(
            lines,
            delimiter=form.delimiter,
            quotechar=form.quote,
            escapechar=form.escape,
            quoting=quoting,
            strict=True,
        )


class CsvBulkWriters:
    """Writers of CSV files with the columns of a schema.

    >>> schema = CsvSchema.builder().add_string_column("word").build()
    >>> factory = CsvBulkWriters.for_schema(schema)
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> RowDataBulkWriterFactory:
        """Return a writer factory for rows with these columns."""
        return _CsvWriterFactory(_checked("CsvBulkWriters.for_schema()", schema))


class _CsvWriterFactory(RowDataBulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        column_writers(schema)  # refuses types that no cell can hold
        self._schema = schema

    def get_row_type(self) -> RowType:
        return self._schema.row_type

    def create(self, file: BinaryIO) -> BulkWriter:
        return _CsvWriter(self._schema, file)


class _CsvWriter(BulkWriter):
    def __init__(self, schema: CsvSchema, file: BinaryIO) -> None:
        self._file = file
        self._form = schema.form
        names, _, self._values = values_reader(schema.row_type.to_type_info())
        self._convert = each_field(names, column_writers(schema))
        if schema.use_header:
            file.write(self._line(list(map(cell_quoter(schema.form), names))))

    def add_elements(self, elements: list[Any]) -> None:
        null = self._form.null_literal or ""
        lines = []
        for element in elements:
            try:
                cells = self._convert(self._values(element))
                lines.append(self._line([null if cell is None else cell for cell in cells]))
            except (Mismatch, UnicodeEncodeError) as error:
                raise SerializationError(
                    f"The record cannot be written as CSV: {error}; the record is {shown(repr(element))}."
                ) from None
        self._file.write(b"".join(lines))

    def finish(self) -> None:
        pass

    def _line(self, cells: list[str]) -> bytes:
        return f"{self._form.delimiter.join(cells)}{self._form.line_end}".encode(_CHARSET)


def _checked(where: str, schema: Any) -> CsvSchema:
    if not isinstance(schema, CsvSchema):
        raise GraphError(f"{where} takes a CsvSchema, such as CsvSchema.builder()...build(), not {schema!r}.")
    if not schema.columns:
        raise GraphError(f"{where}: the schema has no columns.")
    return schema
