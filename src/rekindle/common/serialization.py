"""Conversions between records and the bytes that connectors read and write."""

from __future__ import annotations

import csv
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import Any, BinaryIO

import msgspec

from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.java_text import java_text
from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.common.types import Row
from rekindle.errors import SerializationError

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowDataBulkWriterFactory",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(RefusesJavaNames, ABC):
    """Turns records into the bytes of messages. Extend it for a format of your own.

    A schema is pickled and sent to the slots: parts that cannot be pickled, such as a connection, are made in `open`.

    >>> class Reversed(SerializationSchema):
    ...     def serialize(self, element):
    ...         return element[::-1].encode()
    >>> Reversed().serialize("abc")
    b'cba'
    """

    def open(self, context: Any = None) -> None:
        """Prepare for the first record: called once in each subtask, before `serialize`."""

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """Return the bytes of a record; raise `SerializationError` when the record does not fit."""


class DeserializationSchema(RefusesJavaNames, ABC):
    """Turns the bytes of messages into records. Extend it for a format of your own.

    A schema is pickled and sent to the slots: parts that cannot be pickled, such as a connection, are made in `open`.

    >>> class Numbers(DeserializationSchema):
    ...     def deserialize(self, message):
    ...         return int(message) if message.isdigit() else None
    >>> Numbers().deserialize_all([b"1", b"two", b"3"])
    [1, None, 3]
    """

    def open(self, context: Any = None) -> None:
        """Prepare for the first message: called once in each subtask, before `deserialize`."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the record of a message, or None to skip it; raise `SerializationError` when it cannot be read."""

    def deserialize_all(self, messages: Sequence[bytes]) -> list[Any]:
        """Return one record, or None, for each message, in order. A source calls this with many messages at once."""
        deserialize = self.deserialize
        return [deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None when it is not known."""
        return None


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings in one character set.

    >>> SimpleStringSchema().deserialize(SimpleStringSchema().serialize("größer"))
    'größer'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        "".encode(charset)  # an unknown character set fails here, not in a slot
        self._charset = charset

    def serialize(self, element: str) -> bytes:
        """Return the string's bytes."""
        if not isinstance(element, str):
            raise SerializationError(f"SimpleStringSchema writes str, not {type(element).__name__}: {element!r:.100}.")
        try:
            return element.encode(self._charset)
        except UnicodeEncodeError as error:
            raise SerializationError(f"{element!r:.100} has no form in {self._charset}: {error.reason}.") from None

    def deserialize(self, message: bytes) -> str:
        """Return the string of these bytes."""
        try:
            return message.decode(self._charset)
        except UnicodeDecodeError as error:
            raise SerializationError(
                f"The message {message!r:.100} is not text in {self._charset}: {error.reason} at byte {error.start}; "
                "name its character set with SimpleStringSchema(charset)."
            ) from None

    def get_produced_type(self) -> TypeInformation:
        """Return the type of strings."""
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are.

    >>> ByteArraySchema().deserialize(b"as it is")
    b'as it is'
    """

    def serialize(self, element: bytes | bytearray | memoryview) -> bytes:
        """Return the bytes."""
        if not isinstance(element, bytes | bytearray | memoryview):
            raise SerializationError(f"ByteArraySchema writes bytes, not {type(element).__name__}: {element!r:.100}.")
        return bytes(element)

    def deserialize(self, message: bytes) -> bytes:
        """Return the bytes."""
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of bytes."""
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Takes one field of a row or tuple, which must be bytes; for message keys.

    >>> RowFieldExtractorSchema(0).serialize((b"key", b"value"))
    b'key'
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"Field index must be non-negative, got {field_index}.")
        self._field_index = field_index

    def serialize(self, element: Sequence[Any] | None) -> bytes:
        """The field's bytes; of a row or a field that is None, none."""
        value = None if element is None else element[self._field_index]
        if value is None:
            return b""
        if not isinstance(value, bytes | bytearray):
            raise TypeError(f"Field {self._field_index} must be bytes but is a {type(value).__name__}: {value!r}.")
        return bytes(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowFieldExtractorSchema) and self._field_index == other._field_index

    def __hash__(self) -> int:
        return hash(self._field_index)


class Encoder(RefusesJavaNames):
    """Encodes records as the bytes of a file.

    A sink asks for the encoder for its stream's type, which matters to `simple_string_encoder`.

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

    def for_stream_type(self, type_info: TypeInformation | None) -> Encoder:
        """The encoder for records of a stream with this declared type, or with none."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """One line per record: Java's text of a record of a declared type, as in PyFlink, else the result of `str`.

        >>> Encoder.simple_string_encoder().for_stream_type(Types.TUPLE([str, bool])).encode(("a", True))
        b'(a,true)\\n'
        """
        "".encode(charset_name)
        return _StringEncoder(charset_name, None)

    @staticmethod
    def json_lines_encoder() -> Encoder:
        """One JSON value per line: rows with names, dataclasses, named tuples and structs as objects.

        NaN and infinities are written as `NaN`, `Infinity` and `-Infinity`, as Python's own `json` writes them.

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


class _StringEncoder(Encoder):
    """One line per record."""

    def __init__(self, charset: str, type_info: TypeInformation | None) -> None:
        self._charset = charset
        text = java_text(type_info)
        super().__init__(lambda element: f"{text(element)}\n".encode(charset))

    def for_stream_type(self, type_info: TypeInformation | None) -> Encoder:
        """Lines with Java's text of records of this type."""
        return _StringEncoder(self._charset, type_info)


def _json_object(value: Any) -> Any:
    if isinstance(value, Row):
        return list(value) if value._names is None else value.as_dict()
    raise SerializationError(f"A {type(value).__name__} has no JSON: {value!r}; map it to a Row, dict or dataclass.")


_encode_json = msgspec.json.Encoder(enc_hook=_json_object).encode


def _json_line(element: Any) -> bytes:
    if isinstance(element, tuple) and hasattr(element, "_asdict"):
        element = element._asdict()
    line = _encode_json(element)
    if b"null" in line:  # msgspec writes NaN as null
        plain = msgspec.to_builtins(element, enc_hook=_json_object)
        if _has_non_finite(plain):
            line = json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()
    return line + b"\n"


def _has_non_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_non_finite, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_non_finite, value))


class _CsvLine:
    """Encodes one record as a line of values."""

    def __init__(self, header: list[str] | None, delimiter: str, quote: str, charset: str) -> None:
        self._header = header
        # With this end of lines, cells with a carriage return in them are quoted, too.
        self._settings = {"delimiter": delimiter, "quotechar": quote, "lineterminator": "\r\n"}
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
        text = self._line.getvalue()[:-2]
        self._line.seek(0)
        self._line.truncate()
        return f"{text}\n".encode(self._charset)

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


class RowDataBulkWriterFactory(BulkWriterFactory):
    """Makes writers of rows with declared columns."""

    @abstractmethod
    def get_row_type(self) -> Any:
        """Return the `RowType` of the rows."""
