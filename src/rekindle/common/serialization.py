"""Conversions between records and the bytes that connectors read and write."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import Any, BinaryIO

import msgspec

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.common.types import Row
from rekindle.errors import SerializationError

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Turns a record into bytes."""

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """The bytes of a record."""


class DeserializationSchema(ABC):
    """Turns bytes into a record."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The record of these bytes."""

    def get_produced_type(self) -> TypeInformation:
        """The type of the records."""
        return Types.PICKLED_BYTE_ARRAY()

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether this record marks the end of the stream."""
        return False


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings in one character set.

    >>> SimpleStringSchema().deserialize(SimpleStringSchema().serialize("größer"))
    'größer'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        "".encode(charset)  # an unknown character set fails here, not in a slot
        self._charset = charset

    def serialize(self, element: str) -> bytes:
        """The string's bytes."""
        return element.encode(self._charset)

    def deserialize(self, message: bytes) -> str:
        """The string of these bytes."""
        return message.decode(self._charset)

    def get_produced_type(self) -> TypeInformation:
        """Strings."""
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, element: bytes) -> bytes:
        """The bytes."""
        return bytes(element)

    def deserialize(self, message: bytes) -> bytes:
        """The bytes."""
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        """Bytes."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Takes one field of a row or tuple, which must be bytes; for message keys.

    >>> RowFieldExtractorSchema(0).serialize((b"key", b"value"))
    b'key'
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"The field index must not be negative: {field_index}.")
        self._field_index = field_index

    def serialize(self, element: Sequence[Any]) -> bytes:
        """The field's bytes."""
        value = element[self._field_index]
        if not isinstance(value, bytes | bytearray):
            raise TypeError(f"Field {self._field_index} must be bytes but is a {type(value).__name__}: {value!r}.")
        return bytes(value)


class Encoder:
    """Encodes records as the bytes of a file.

    >>> Encoder.simple_string_encoder().encode(("a", 1))
    b"('a', 1)\\n"
    """

    def __init__(self, encode: Callable[[Any], bytes], header: bytes = b"") -> None:
        self._encode = encode
        #: The bytes at the beginning of each file.
        self.header = header

    def encode(self, element: Any) -> bytes:
        """The bytes that a record adds to a file."""
        return self._encode(element)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """One line per record: the result of `str`."""
        "".encode(charset_name)
        return Encoder(lambda element: f"{element}\n".encode(charset_name))

    @staticmethod
    def json_lines_encoder() -> Encoder:
        """One JSON value per line: rows with names, dataclasses, named tuples and structs as objects.

        >>> Encoder.json_lines_encoder().encode(Row(word="to", count=2))
        b'{"word":"to","count":2}\\n'
        """
        return Encoder(_json_line)

    @staticmethod
    def csv_encoder(
        header: Sequence[str] | None = None, *, delimiter: str = ",", quote: str = '"', charset_name: str = "UTF-8"
    ) -> Encoder:
        """One line of values per record: a row, a tuple or list, a dataclass, a named tuple, or a dict.

        The header, if given, is the first line of every file. A dict's values are written in the header's order; None
        is an empty value.

        >>> Encoder.csv_encoder().encode(("to, or not", None, 2))
        b'"to, or not",,2\\n'
        """
        "".encode(charset_name)
        line = _CsvLine(list(header) if header is not None else None, delimiter, quote, charset_name)
        return Encoder(line, header=line(tuple(header)) if header is not None else b"")


def _json_object(value: Any) -> Any:
    if isinstance(value, Row):
        return list(value) if value._names is None else value.as_dict()
    raise SerializationError(f"A {type(value).__name__} has no JSON: {value!r}; map it to a Row, dict or dataclass.")


_encode_json = msgspec.json.Encoder(enc_hook=_json_object).encode


def _json_line(element: Any) -> bytes:
    if isinstance(element, tuple) and hasattr(element, "_asdict"):
        element = element._asdict()
    return _encode_json(element) + b"\n"


class _CsvLine:
    """Encodes one record as a line of values."""

    def __init__(self, header: list[str] | None, delimiter: str, quote: str, charset: str) -> None:
        self._header = header
        self._settings = {"delimiter": delimiter, "quotechar": quote, "lineterminator": "\n"}
        self._charset = charset
        self._open()

    def _open(self) -> None:
        self._line = io.StringIO(newline="")
        self._write = csv.writer(self._line, **self._settings).writerow  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        return {"_header": self._header, "_settings": self._settings, "_charset": self._charset}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __call__(self, element: Any) -> bytes:
        self._write(self._values(element))
        text = self._line.getvalue()
        self._line.seek(0)
        self._line.truncate()
        return text.encode(self._charset)

    def _values(self, element: Any) -> Any:
        if isinstance(element, Row | tuple | list):
            return element
        if isinstance(element, dict):
            if self._header is None:
                raise SerializationError("A dict needs a header to be written as CSV: csv_encoder(header=[...]).")
            return [element.get(name) for name in self._header]
        if isinstance(element, msgspec.Struct) or is_dataclass(element):
            fields = msgspec.structs.fields(element) if isinstance(element, msgspec.Struct) else fields_of(element)
            return [getattr(element, field.name) for field in fields]
        return (element,)


class BulkWriter(ABC):
    """Writes records into one file that is readable only after `finish`, such as a columnar file."""

    @abstractmethod
    def add_elements(self, elements: list[Any]) -> None:
        """Write these records."""

    @abstractmethod
    def finish(self) -> None:
        """Write the end of the file; the caller closes the file."""


class BulkWriterFactory(ABC):
    """Makes a `BulkWriter` for each file."""

    @abstractmethod
    def create(self, file: BinaryIO) -> BulkWriter:
        """A writer into this open, empty file."""
