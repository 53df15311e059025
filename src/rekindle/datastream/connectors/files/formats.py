"""How records are read from files: lines of text, JSON or CSV, tables of Parquet or Arrow, or a format of one's own."""

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

    #: Where the record after the last one that was handed out begins, in the format's own unit: the exact position.
    offset: int

    def read(self, max_records: int) -> list[Any]:
        """The next records, at most so many; empty at the end of the split."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class FileFormat(ABC):
    """What a FileSource needs of a format."""

    @abstractmethod
    def open(self, split: FileSplit) -> RecordReader:
        """A reader of the split, from its `offset` on, or from its beginning if that is None."""

    def is_splittable(self, path: str) -> bool:
        """Whether parts of the file can be read on their own."""
        return False

    def get_produced_type(self, path: str | None) -> TypeInformation | None:
        """The type of the records, perhaps from the first file; None if it is not known."""
        return None


class StreamFormat(FileFormat):
    """Reads a file's records one after the other, unpacking .gz, .gzip, .bz2 and .xz on the way.

    Extend it with `open(split)` for a format of your own; it is not split unless `is_splittable` says so.
    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Lines of text, without their ends.

        >>> StreamFormat.text_line_format().get_produced_type(None)
        String
        """
        return TextLineFormat(charset_name)

    @staticmethod
    def json_lines_format(type_info: Any = None) -> StreamFormat:
        """A JSON value per line: of the type, if one is given (a row, a tuple, a class with fields), else as Python
        has it (dicts, lists, strings, numbers). Empty lines are skipped.

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
        """Records of a row, tuple or class type, each field converted; without a type dicts of strings where the files
        have a header, else lists of strings. A field equal to `null_literal` is None where a type is given.

        Records over several lines need `multi_line`, which reads each file whole.

        >>> StreamFormat.csv_format(tuple[str, int], delimiter=";").get_produced_type(None)
        Tuple<String, Long>
        """
        from rekindle.datastream.connectors.files.csv_format import CsvDialect, CsvFormat

        dialect = CsvDialect(delimiter, quote, header, null_literal, multi_line)
        where = "StreamFormat.csv_format()"
        return CsvFormat(declared_type(where, type_info), dialect, checked_charset(where, charset_name))


class BulkFormat(FileFormat):
    """Reads a file's records in batches of columns.

    Records are rows, unless another type with the columns' names as fields is given.
    """

    @staticmethod
    def parquet_format(type_info: Any = None, columns: Sequence[str] | None = None) -> BulkFormat:
        """Parquet; `columns` reads only these. A large file is read by its row groups, on several subtasks.

        >>> BulkFormat.parquet_format(tuple[str, int]).is_splittable("words.parquet")
        True
        """
        from rekindle.datastream.connectors.files.columnar import ParquetFormat

        return ParquetFormat(declared_type("BulkFormat.parquet_format()", type_info), columns)

    @staticmethod
    def arrow_format(type_info: Any = None, columns: Sequence[str] | None = None) -> BulkFormat:
        """Arrow IPC files (also known as Feather).

        >>> BulkFormat.arrow_format(tuple[str, int]).get_produced_type(None)
        Tuple<String, Long>
        """
        from rekindle.datastream.connectors.files.columnar import ArrowFormat

        return ArrowFormat(declared_type("BulkFormat.arrow_format()", type_info), columns)


class TextLineFormat(StreamFormat):
    """Lines of text."""

    def __init__(self, charset: str) -> None:
        self._charset = checked_charset("StreamFormat.text_line_format()", charset)

    def open(self, split: FileSplit) -> RecordReader:
        """Reads lines."""
        return _TextLines(split, self._charset)

    def is_splittable(self, path: str) -> bool:
        """Unless it is packed, or in a character set whose newlines cannot be found from the middle."""
        return has_newline_bytes(self._charset) and not is_compressed(path)

    def get_produced_type(self, path: str | None) -> TypeInformation:
        """Strings."""
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
