"""File formats: lines of text, JSON, CSV, Parquet, Arrow, and the base classes for other formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.datastream.connectors.files.lines import LineReader, decode_lines
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.connectors.files.streams import checked_charset, has_newline_bytes, is_compressed
from rekindle.datastream.validation import declared_type


class RecordReader(Protocol):
    """Reads the records of one split."""

    #: The exact position of the next record, in the format's own unit.
    offset: int

    def read(self, max_records: int) -> list[Any]:
        """Return the next records, at most `max_records`; an empty list at the end of the split."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class FileFormat(ABC):
    """The interface between a FileSource and a format."""

    @abstractmethod
    def open(self, split: FileSplit) -> RecordReader:
        """Return a reader of the split, from its `offset` on, or from its beginning if `offset` is None."""

    def is_splittable(self, path: str) -> bool:
        """Return whether ranges of the file can be read independently."""
        return False

    def get_produced_type(self, path: str | None) -> TypeInformation | None:
        """Return the records' type, or None if it is not known. `path` is the first file, if there is one."""
        return None


class StreamFormat(FileFormat):
    """Reads a file's records one after the other. Decompresses .gz, .gzip, .bz2 and .xz files.

    For your own format, extend it with `open(split)`. Files are not split unless `is_splittable` returns True.
    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Return a format of text lines, without their line ends.

        >>> StreamFormat.text_line_format().get_produced_type(None)
        String
        """
        return TextLineFormat(charset_name)

    @staticmethod
    def json_lines_format(type_info: Any = None) -> StreamFormat:
        """Return a format of one JSON value per line. Empty lines are skipped.

        Records have the given type (a row, a tuple, a class with fields), or else are Python's dicts, lists, strings
        and numbers.

        >>> StreamFormat.json_lines_format(Types.ROW_NAMED(["word"], [str])).get_produced_type(None)
        Row<word: String>
        """
        from rekindle.datastream.connectors.files.json_format import JsonLinesFormat

        return JsonLinesFormat(declared_type("StreamFormat.json_lines_format()", type_info))

    @staticmethod
    def csv_format(
        type_info: Any = None,
        *,
        header: bool = False,
        delimiter: str = ",",
        quote: str = '"',
        charset_name: str = "UTF-8",
        null_literal: str = "",
        multi_line: bool = False,
    ) -> StreamFormat:
        """Return a format of comma-separated values.

        With a row, tuple or class type, each field is converted, and a field equal to `null_literal` becomes None.
        Without a type, records are dicts of strings if the files have a header, else lists of strings.
        `multi_line` allows records over several lines; each file is then read as one split.

        >>> StreamFormat.csv_format(tuple[str, int], delimiter=";").get_produced_type(None)
        Tuple<String, Long>
        """
        from rekindle.datastream.connectors.files.csv_format import CsvDialect, CsvFormat

        dialect = CsvDialect(delimiter, quote, header, null_literal, multi_line)
        where = "StreamFormat.csv_format()"
        return CsvFormat(declared_type(where, type_info), dialect, checked_charset(where, charset_name))


class BulkFormat(FileFormat):
    """Reads a file's records in batches of columns.

    Records are rows, unless another type is given. Its fields must have the names of the columns.
    """

    @staticmethod
    def parquet_format(type_info: Any = None, columns: Sequence[str] | None = None) -> BulkFormat:
        """Return a format of Parquet files. `columns` limits the columns. Subtasks may share a file by row groups.

        >>> BulkFormat.parquet_format(tuple[str, int]).is_splittable("words.parquet")
        True
        """
        from rekindle.datastream.connectors.files.columnar import ParquetFormat

        return ParquetFormat(declared_type("BulkFormat.parquet_format()", type_info), columns)

    @staticmethod
    def arrow_format(type_info: Any = None, columns: Sequence[str] | None = None) -> BulkFormat:
        """Return a format of Arrow IPC files (also known as Feather). `columns` limits the columns.

        >>> BulkFormat.arrow_format(tuple[str, int]).get_produced_type(None)
        Tuple<String, Long>
        """
        from rekindle.datastream.connectors.files.columnar import ArrowFormat

        return ArrowFormat(declared_type("BulkFormat.arrow_format()", type_info), columns)


class TextLineFormat(StreamFormat):
    """Reads lines of text."""

    def __init__(self, charset: str) -> None:
        self._charset = checked_charset("StreamFormat.text_line_format()", charset)

    def open(self, split: FileSplit) -> RecordReader:
        """Return a reader of lines."""
        return _TextLines(split, self._charset)

    def is_splittable(self, path: str) -> bool:
        """Return False for compressed files and for character sets without newline bytes."""
        return has_newline_bytes(self._charset) and not is_compressed(path)

    def get_produced_type(self, path: str | None) -> TypeInformation:
        """Return the type of strings."""
        return Types.STRING()


class _TextLines:
    def __init__(self, split: FileSplit, charset: str) -> None:
        self._split = split
        self._charset = charset
        self._lines = LineReader(split, charset)
        self.offset = self._lines.offset

    def read(self, max_records: int) -> list[str]:
        begin = self._lines.offset
        lines = self._lines.take(max_records)
        if not lines:
            return []
        decoded = decode_lines(lines, self._split, begin, self._charset)
        self.offset = self._lines.offset
        return decoded

    def close(self) -> None:
        self._lines.close()
