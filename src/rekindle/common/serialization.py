"""Between records and the bytes that connectors read and write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from rekindle.common.typeinfo import TypeInformation, Types

__all__ = [
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
        """Whether this record says that there will be no more."""
        return False


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings in one character set.

    >>> SimpleStringSchema().deserialize(SimpleStringSchema().serialize("größer"))
    'größer'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        "".encode(charset)  # an unknown character set fails here and not in a slot
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
    """Writes one record into a file.

    >>> Encoder.simple_string_encoder().encode(("a", 1))
    b"('a', 1)\\n"
    """

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode

    def encode(self, element: Any) -> bytes:
        """The bytes that a record adds to a file."""
        return self._encode(element)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """One line per record: what `str` makes of it."""
        "".encode(charset_name)
        return Encoder(lambda element: f"{element}\n".encode(charset_name))
