"""The codec of a user's own serializer: its output lies as bytes in msgpack."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Protocol

import msgspec

from rekindle.errors import SerializationError
from rekindle.serde.chunk_codecs import Buffer
from rekindle.serde.state_value_codecs import ValueCodec
from rekindle.serde.type_schema import TypeSchema

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(bytes).decode
_decode_all = msgspec.msgpack.Decoder(list[bytes | None]).decode


class Serializer(Protocol):
    """The part of `rekindle.common.TypeSerializer` that the codec uses."""

    @property
    def version(self) -> int:
        """The version of what it writes."""

    @property
    def former_names(self) -> tuple[str, ...]:
        """Former names of its class."""

    def serialize(self, element: Any, stream: BytesIO, /) -> None:
        """Writes a value."""

    def deserialize(self, stream: BytesIO, /) -> Any:
        """Reads a value."""

    def deserialize_version(self, stream: BytesIO, version: int, /) -> Any:
        """Reads a value that another version wrote."""

    def can_read(self, version: int, /) -> bool:
        """Whether it reads what that version wrote."""


class SerializerCodec:
    """Implements `ValueCodec` with a serializer. `declared` is the codec of the state's type without it."""

    name = "serializer"

    def __init__(self, serializer: Serializer, declared: ValueCodec) -> None:
        self.serializer = serializer
        self.declared = declared
        name = type(serializer).__qualname__.rpartition("<locals>.")[2]
        #: Name and version, by which a later program knows what it wrote.
        self.schema = TypeSchema("Serializer", name, version=serializer.version, aliases=serializer.former_names)

    def encode(self, value: Any) -> bytes:
        """Encode one value."""
        return _encode(self._written(value))

    def encode_all(self, values: list[Any]) -> bytes:
        """Encode values as one array; None is nil."""
        return _encode([None if value is None else self._written(value) for value in values])

    def decode(self, data: Buffer) -> Any:
        """Decode one value."""
        return self._read(_decode(data), self.serializer.version)

    def decode_all(self, data: Buffer) -> list[Any]:
        """Decode the bytes of `encode_all`."""
        return self.decode_version(data, self.serializer.version)

    def decode_version(self, data: Buffer, version: int) -> list[Any]:
        """Decode the bytes that `encode_all` of another version wrote."""
        return [None if each is None else self._read(each, version) for each in _decode_all(data)]

    def _written(self, value: Any) -> bytes:
        stream = BytesIO()
        self.serializer.serialize(value, stream)
        return stream.getvalue()

    def _read(self, data: bytes, version: int) -> Any:
        stream = BytesIO(data)
        if version == self.serializer.version:
            value = self.serializer.deserialize(stream)
        else:
            value = self.serializer.deserialize_version(stream, version)
        if left := stream.read():
            raise SerializationError(
                f"{self.schema.name} has read {len(data) - len(left)} of the {len(data)} bytes of a value that its "
                f"version {version} wrote"
            )
        return value
