"""Messages and files in Avro. Messages are read and written as Flink's `AvroRowDeserializationSchema` and
`AvroRowSerializationSchema` do.
"""

from __future__ import annotations

import io
from typing import Any

from rekindle.common.serialization import DeserializationSchema, SerializationSchema
from rekindle.common.typeinfo import RowTypeInfo, TypeInformation
from rekindle.datastream.formats.avro_files import AvroBulkWriters, AvroInputFormat
from rekindle.datastream.formats.avro_records import GenericRecordAvroTypeInfo
from rekindle.datastream.formats.avro_rows import avro_form
from rekindle.datastream.formats.avro_schemas import AvroSchema, bare, fastavro_package, parsed
from rekindle.datastream.formats.mismatch import Mismatch, shown
from rekindle.datastream.formats.schema_registry import HEADER_BYTES, SchemaRegistry, header_of, schema_id_of
from rekindle.datastream.formats.shipped import Shipped
from rekindle.errors import GraphError, RekindleError, SerializationError

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]


class AvroRowDeserializationSchema(Shipped, DeserializationSchema):
    """Reads an Avro record as a row.

    With a schema registry, each message names the schema that it was written with, and is read into the fields of
    `avro_schema_string` by Avro's rules; fields that the writer did not have get their defaults.

    >>> schema = '{"type": "record", "name": "Click", "fields": [{"name": "user", "type": "string"}]}'
    >>> AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(b"\\x06ann")
    Row(user='ann')

    :param avro_schema_string: the schema of the rows, as JSON.
    :param schema_registry_url: the address of a schema registry; by default, messages have no schema id.
    :param schema_registry_options: settings of the registry's client, such as `basic.auth.user.info`.
    """

    def __init__(
        self,
        record_class: str | None = None,
        avro_schema_string: str | None = None,
        *,
        schema_registry_url: str | None = None,
        schema_registry_options: dict[str, Any] | None = None,
    ) -> None:
        self._schema_string = _schema_string(record_class, avro_schema_string)
        self._type_info = avro_form(parsed(self._schema_string)).type_info
        self._registry = _registry(schema_registry_url, schema_registry_options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._type_info!r}{'' if self._registry is None else f', {self._registry!r}'})"

    def open(self, context: Any = None) -> None:
        """Build the reader."""
        convert = avro_form(parsed(self._schema_string)).read
        self._built = (fastavro_package().schemaless_reader, bare(self._schema_string), convert)

    def deserialize(self, message: bytes | None) -> Any:
        """Return the row of a message; None, which skips it, for a message without a value."""
        if message is None:  # a deletion in Kafka
            return None
        if self._built is None:
            self.open()
        try:
            return self._read(message)
        except Mismatch as mismatch:
            raise _unreadable(message, str(mismatch)) from None
        except RekindleError:
            raise
        except Exception as error:  # fastavro raises errors of many kinds for bytes that are not of the schema
            hint = "" if self._registry is not None or message[:1] != b"\0" else _REGISTRY_HINT
            problem = f"{type(error).__name__}: {error}".rstrip(": ")
            raise _unreadable(message, f"it is not of the schema: {problem}{hint}") from None

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._type_info

    def _read(self, message: bytes) -> Any:
        read, schema, convert = self._built
        stream = io.BytesIO(message)
        if self._registry is None:
            record = read(stream, schema, None)
        else:
            writer_schema = self._registry.writer_schema(schema_id_of(message))
            stream.seek(HEADER_BYTES)
            record = read(stream, writer_schema, schema)
        if stream.tell() != len(message):
            raise Mismatch(f"has {len(message) - stream.tell()} bytes more than a record of the schema")
        return convert(record)


class AvroRowSerializationSchema(Shipped, SerializationSchema):
    """Writes a row as an Avro record.

    With a schema registry, the schema is registered under `subject`, and its id goes in front of each message.

    >>> from rekindle.common import Row
    >>> schema = '{"type": "record", "name": "Click", "fields": [{"name": "user", "type": "string"}]}'
    >>> AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row("ann"))
    b'\\x06ann'

    :param avro_schema_string: the schema of the rows, as JSON.
    :param schema_registry_url: the address of a schema registry; by default, messages have no schema id.
    :param schema_registry_options: settings of the registry's client, such as `basic.auth.user.info`.
    :param subject: the name of the schema in the registry, such as `clicks-value` for the topic clicks.
    """

    def __init__(
        self,
        record_class: str | None = None,
        avro_schema_string: str | None = None,
        *,
        schema_registry_url: str | None = None,
        schema_registry_options: dict[str, Any] | None = None,
        subject: str | None = None,
    ) -> None:
        self._schema_string = _schema_string(record_class, avro_schema_string)
        self._registry = _registry(schema_registry_url, schema_registry_options)
        self._subject = subject
        if (self._registry is None) != (subject is None):
            raise GraphError("A schema registry needs both: schema_registry_url and the subject of the schema.")

    def __repr__(self) -> str:
        type_info = avro_form(parsed(self._schema_string)).type_info
        return f"{type(self).__name__}({type_info!r}{'' if self._registry is None else f', {self._registry!r}'})"

    def open(self, context: Any = None) -> None:
        """Build the writer, and register the schema."""
        header = b""
        if self._registry is not None and self._subject is not None:
            header = header_of(self._registry.register(self._subject, self._schema_string))
        convert = avro_form(parsed(self._schema_string)).write
        self._built = (fastavro_package().schemaless_writer, bare(self._schema_string), convert, header)

    def serialize(self, element: Any) -> bytes:
        """Return the Avro record of a row."""
        if self._built is None:
            self.open()
        write, schema, convert, header = self._built
        stream = io.BytesIO(header)
        stream.seek(len(header))
        try:
            write(stream, schema, convert(element))
        except (Mismatch, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise SerializationError(
                f"The record cannot be written as Avro: {str(error).rstrip('.')}; the record is {shown(repr(element))}."
            ) from None
        return stream.getvalue()


_REGISTRY_HINT = "; it begins with byte 0, as messages of a schema registry do: set schema_registry_url"


def _unreadable(message: bytes, problem: str) -> SerializationError:
    return SerializationError(f"The Avro message cannot be read: {problem}; the message is {shown(repr(message))}.")


def _schema_string(record_class: str | None, avro_schema_string: str | None) -> str:
    if record_class is not None:
        raise GraphError(
            "record_class names a Java class, which Python does not have: give avro_schema_string instead."
        )
    if avro_schema_string is None:
        raise TypeError("An Avro schema is needed: give avro_schema_string.")
    form = avro_form(parsed(str(avro_schema_string)))
    if not isinstance(form.type_info, RowTypeInfo):
        raise GraphError(f"The Avro schema must be a record, which becomes a row, not {form.type_info!r}.")
    return str(avro_schema_string)


def _registry(url: str | None, options: dict[str, Any] | None) -> SchemaRegistry | None:
    if url is None and options:
        raise GraphError("schema_registry_options need a schema_registry_url.")
    return None if url is None else SchemaRegistry(url, options)
