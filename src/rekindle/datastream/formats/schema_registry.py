"""Confluent's schema registry: the schema ids in front of messages, and the schemas behind the ids."""

from __future__ import annotations

import struct
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rekindle.datastream.formats.avro_schemas import bare
from rekindle.datastream.formats.mismatch import Mismatch
from rekindle.errors import ConfigurationError, ConnectorError, RekindleError

#: A message begins with a zero byte and the schema's id in four bytes, the highest first.
_HEADER = struct.Struct(">bI")
HEADER_BYTES = _HEADER.size
_NOT_FOUND = 404
#: The clients of this process. Schemas with the same registry share a connection, and a `mock://` registry its content.
_CLIENTS: dict[tuple[Any, ...], Any] = {}


def header_of(schema_id: int) -> bytes:
    """Return the bytes in front of a message.

    >>> header_of(7)
    b'\\x00\\x00\\x00\\x00\\x07'
    """
    return _HEADER.pack(0, schema_id)


def schema_id_of(message: bytes) -> int:
    """Return the schema id in front of a message.

    >>> schema_id_of(b"\\x00\\x00\\x00\\x00\\x07...")
    7
    """
    if len(message) < HEADER_BYTES or message[0] != 0:
        raise Mismatch("must begin with byte 0 and a schema id in four bytes, as messages of a schema registry do")
    schema_id: int = _HEADER.unpack_from(message)[1]
    return schema_id


class SchemaRegistry:
    """A schema registry with its settings. Its connection is made on first use; each id is asked for once.

    >>> registry = SchemaRegistry("mock://example", {"basic.auth.user.info": "ann:secret"})
    >>> registry
    SchemaRegistry(mock://example, basic.auth.user.info=...)
    """

    def __init__(self, url: str, options: dict[str, Any] | None = None) -> None:
        self._url = url
        self._options = dict(options or {})
        self._schemas: dict[int, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_schemas": {}}

    def __repr__(self) -> str:
        return f"SchemaRegistry({', '.join([self.address, *(f'{name}=...' for name in self._options)])})"

    @property
    def address(self) -> str:
        """The address without a user's name and password."""
        parts = urlsplit(self._url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def writer_schema(self, schema_id: int) -> Any:
        """Return the schema with an id, for fastavro's reader."""
        if schema_id not in self._schemas:
            found = self._call("get schema", lambda client: client.get_schema(schema_id))
            if found is None:
                raise Mismatch(
                    f"has the schema id {schema_id}, which the schema registry at {self.address} does not know"
                )
            self._schemas[schema_id] = self._parsed(found, {})
        return self._schemas[schema_id]

    def register(self, subject: str, schema_string: str) -> int:
        """Return the id of a schema, after registering it under the subject if it is new there."""
        from confluent_kafka.schema_registry import Schema

        schema_id = self._call(
            f"register a schema for '{subject}'",
            lambda client: client.register_schema(subject, Schema(schema_string, "AVRO")),
        )
        if schema_id is None:
            raise ConnectorError(f"The schema registry at {self.address} has no place for the subject '{subject}'.")
        return int(schema_id)

    def _parsed(self, found: Any, names: dict[str, Any]) -> Any:
        for reference in found.references or ():
            version = self._call(
                "get schema", lambda client, ref=reference: client.get_version(ref.subject, ref.version)
            )
            if version is None:
                raise Mismatch(f"has a schema that refers to {reference.subject}, which the registry does not know")
            self._parsed(version.schema, names)
        return bare(found.schema_str, names)

    def _call(self, what: str, call: Any) -> Any:
        """Return the registry's answer; None for what it does not have."""
        client = self._client()
        try:
            return call(client)
        except RekindleError:
            raise
        except Exception as error:  # the client raises errors of its own, of httpx and of the socket
            if getattr(error, "http_status_code", None) == _NOT_FOUND:
                return None
            raise ConnectorError(
                f"The schema registry at {self.address} did not {what}: {type(error).__name__}: {error}."
            ) from None

    def _client(self) -> Any:
        key = (self._url, *sorted((name, repr(value)) for name, value in self._options.items()))
        if key not in _CLIENTS:
            _CLIENTS[key] = self._connected()
        return _CLIENTS[key]

    def _connected(self) -> Any:
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
        except ImportError as error:
            raise ConfigurationError(
                f"A schema registry needs the package {error.name}: pip install 'rekindle[avro]'."
            ) from None
        try:
            return SchemaRegistryClient.new_client({"url": self._url, **self._options})
        except (ValueError, TypeError, OSError) as error:
            raise ConfigurationError(
                f"The settings of the schema registry at {self.address} cannot be used: {error}."
            ) from None
