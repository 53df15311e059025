"""Reader of comma-separated values."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rekindle.common.type_system.fields import RecordMaker, fields_of, record_maker
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.files.formats import RecordReader, StreamFormat
from rekindle.datastream.connectors.files.lines import LineReader, decode_lines
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.connectors.files.streams import has_newline_bytes, is_compressed
from rekindle.errors import ConnectorError, GraphError

_HEADER_BLOCK_BYTES = 1 << 16
# Python's parser refuses cells above 128 KiB by default; this is the largest limit that it accepts.
_LARGEST_CELL = 2**31 - 1


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false", "1", "0"):
        raise ValueError(f"{text!r} is neither true nor false")
    return lowered in ("true", "1")


_CONVERTERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: int,
    float: float,
    bool: _boolean,
    Decimal: Decimal,
    dt.date: dt.date.fromisoformat,
    dt.time: dt.time.fromisoformat,
    dt.datetime: dt.datetime.fromisoformat,
    int | str: int,  # Types.BIG_INT
}


@dataclass(frozen=True)
class CsvDialect:
    """The delimiter, quote and other settings of a CSV file."""

    delimiter: str = ","
    quote: str = '"'
    header: bool = False
    null_literal: str = ""
    multi_line: bool = False

    def __post_init__(self) -> None:
        for name, value in (("delimiter", self.delimiter), ("quote", self.quote)):
            if not isinstance(value, str) or len(value) != 1 or value in "\r\n":
                raise GraphError(f"The CSV format takes one character as its {name}, not {value!r}.")

    def reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Parse lines into records."""
        csv.field_size_limit(max(_LARGEST_CELL, csv.field_size_limit()))  # a setting of the whole process
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True)


class CsvFormat(StreamFormat):
    """Reads comma-separated values, with or without a header."""

    def __init__(self, type_info: TypeInformation | None, dialect: CsvDialect, charset: str) -> None:
        self._type_info = type_info
        self._dialect = dialect
        self._charset = charset
        if type_info is not None:
            _columns(type_info)  # refuses a type without columns here, not in a slot

    def open(self, split: FileSplit) -> RecordReader:
        """Return a reader of records."""
        return _CsvRecords(split, self._type_info, self._dialect, self._charset)

    def is_splittable(self, path: str) -> bool:
        """Return False for compressed files, records over several lines, and charsets without newline bytes."""
        return not self._dialect.multi_line and has_newline_bytes(self._charset) and not is_compressed(path)

    def get_produced_type(self, path: str | None) -> TypeInformation | None:
        """Return the declared type."""
        return self._type_info


class _CsvRecords:
    def __init__(self, split: FileSplit, type_info: TypeInformation | None, dialect: CsvDialect, charset: str) -> None:
        self._split = split
        self._dialect = dialect
        self._charset = charset
        self._lines = LineReader(split, charset)
        try:
            header = self._read_header() if dialect.header else None
            self._make = _plain_maker(header) if type_info is None else _typed_maker(type_info, header, dialect, split)
            if dialect.header and self._lines.offset == 0:
                self._raw(1)
        except BaseException:
            self._lines.close()
            raise
        self.offset = self._lines.offset

    def read(self, max_records: int) -> list[Any]:
        while True:
            begin = self._lines.offset
            values = self._raw(max_records)
            if values is None:
                return []
            try:
                records = self._make(filter(None, values))
            except (ValueError, ArithmeticError, TypeError):
                raise self._record_error(values, begin) from None
            self.offset = self._lines.offset
            if records:
                return records

    def close(self) -> None:
        self._lines.close()

    def _read_header(self) -> list[str]:
        whole = FileSplit(self._split.path, self._split.changed_ns, self._split.size, 0, self._split.size)
        reader = LineReader(whole, self._charset, _HEADER_BLOCK_BYTES)
        try:
            return next(self._dialect.reader(decode_lines(reader.take(1), whole, 0, self._charset)), [])
        finally:
            reader.close()

    def _raw(self, max_records: int) -> list[list[str]] | None:
        """Return the next records as lists of strings, or None at the end."""
        begin = self._lines.offset
        try:
            if self._dialect.multi_line:
                return self._multi_line_records(max_records)
            lines = self._lines.take(max_records)
            if not lines:
                return None
            records = list(self._dialect.reader(decode_lines(lines, self._split, begin, self._charset)))
            if len(records) == len(lines):
                return records
        except csv.Error as error:
            raise ConnectorError(
                f"{self._split.path}: the text from offset {begin} on is not CSV: {error}.{self._hint()}"
            ) from error
        raise ConnectorError(
            f"{self._split.path}: a record somewhere after offset {begin} reaches over several lines.{self._hint()}"
        )

    def _hint(self) -> str:
        return "" if self._dialect.multi_line else " If quoted values may contain newlines, set multi_line=True."

    def _multi_line_records(self, max_records: int) -> list[list[str]] | None:
        records: list[list[str]] = []
        reader = self._dialect.reader(self._single_lines())
        while len(records) < max_records:
            record = next(reader, None)
            if record is None:
                break
            records.append(record)
        return records or None

    def _single_lines(self) -> Iterator[str]:
        """Yield lines one at a time, so that the offset stays at the end of the last parsed record."""
        begin = self._lines.offset
        while lines := self._lines.take(1):
            yield decode_lines(lines, self._split, begin, self._charset, keep_returns=True)[0] + "\n"
            begin = self._lines.offset

    def _record_error(self, values: list[list[str]], begin: int) -> ConnectorError:
        """Return the error of the first record that does not fit its type."""
        for record in filter(None, values):
            try:
                self._make([record])
            except (ValueError, ArithmeticError, TypeError) as error:
                return ConnectorError(
                    f"{self._split.path}: a record after offset {begin} does not fit its type: {error}. "
                    f"It is {record!r}."
                )
        raise AssertionError("a batch of records failed to convert, but each of its records converts")


def _columns(type_info: TypeInformation) -> list[tuple[str, Callable[[str], Any]]]:
    fields = fields_of(type_info)
    if fields is None:
        raise GraphError(f"The CSV format takes a type with fields, such as Types.ROW_NAMED, not {type_info!r}.")
    columns = []
    for name, part in fields:
        convert = _CONVERTERS.get(part.python_type())
        if convert is None:
            raise GraphError(f"The CSV format cannot read field '{name}': a CSV cell cannot hold the type {part!r}.")
        columns.append((name, convert))
    return columns


def _plain_maker(header: list[str] | None) -> RecordMaker:
    if header is None:
        return lambda rows: list(map(list, rows))
    return lambda rows: [dict(zip(header, values, strict=True)) for values in rows]


def _typed_maker(
    type_info: TypeInformation, header: list[str] | None, dialect: CsvDialect, split: FileSplit
) -> RecordMaker:
    """Return a function that converts column by column, which is several times as fast as value by value."""
    columns = _columns(type_info)
    converts = [convert for _, convert in columns]
    make, null, width = record_maker(type_info), dialect.null_literal, len(columns)
    places: Sequence[int] = range(width)
    if header is not None:
        missing = [name for name, _ in columns if name not in header]
        if missing:
            raise ConnectorError(f"{split.path} has no column '{missing[0]}': its header is {', '.join(header)}.")
        places = [header.index(name) for name, _ in columns]
        width = len(header)

    def make_records(rows: Iterable[Sequence[str]]) -> list[Any]:
        rows = list(rows)
        found = set(map(len, rows))
        if found - {width}:
            raise ValueError(f"there are {(found - {width}).pop()} values where {width} are expected")
        if not rows:
            return []
        cells = list(zip(*rows, strict=True))
        return make(
            zip(
                *(_converted(cells[at], convert, null) for at, convert in zip(places, converts, strict=True)),
                strict=True,
            )
        )

    return make_records


def _converted(cells: Sequence[str], convert: Callable[[str], Any], null: str) -> Sequence[Any]:
    if null in cells:
        return [None if cell == null else convert(cell) for cell in cells]
    return cells if convert is str else list(map(convert, cells))
