"""Messages in JSON, read and written as Flink's `JsonRowDeserializationSchema` and `JsonRowSerializationSchema` do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rekindle.common.serialization import DeserializationSchema, SerializationSchema
from rekindle.common.typeinfo import ClassTypeInfo, RowTypeInfo, TypeInformation, infer_type_info
from rekindle.datastream.formats.fieldwise import Convert
from rekindle.datastream.formats.json_nodes import decode_node, node_reader
from rekindle.datastream.formats.json_reading import UNFIT, json_form
from rekindle.datastream.formats.json_schema import type_of_json_schema
from rekindle.datastream.formats.json_writing import (
    checked_struct_of,
    json_encoder,
    json_value_of,
    non_finite_as_text,
)
from rekindle.datastream.formats.mismatch import Mismatch, shown, shown_bytes
from rekindle.datastream.formats.shipped import Shipped
from rekindle.errors import SerializationError

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]


class JsonRowDeserializationSchema(Shipped, DeserializationSchema):
    """Reads a JSON message as a row, or as an instance of a class.

    >>> from rekindle.common import Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    >>> schema.deserialize(b'{"user": "ann", "amount": 5, "ignored": true}')
    Row(user='ann', amount=5)
    """

    def __init__(self, type_info: TypeInformation, fail_on_missing_field: bool, ignore_parse_errors: bool) -> None:
        self._type_info = type_info
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self.open()  # a type that has no JSON is refused here, not in a slot

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Return a builder of the schema."""
        return JsonRowDeserializationSchema.Builder()

    def open(self, context: Any = None) -> None:
        """Build the decoder."""
        form = json_form(self._type_info, self._fail_on_missing_field)
        lenient = node_reader(self._type_info, self._fail_on_missing_field, self._ignore_parse_errors)
        self._built = (msgspec.json.Decoder(form.hint).decode, form.convert, lenient)

    def deserialize(self, message: bytes) -> Any:
        """Return the record of a message; None, which skips it, for `null` and for parse errors that are ignored."""
        if self._built is None:
            self.open()
        decode, convert, lenient = self._built
        try:
            return decode(message) if convert is None else convert(decode(message))
        except UNFIT:
            return self._read_leniently(message, lenient)

    def deserialize_all(self, messages: Sequence[bytes]) -> list[Any]:
        """Return the records of many messages."""
        if self._built is None:
            self.open()
        decode, convert, _ = self._built
        try:
            return list(map(decode, messages)) if convert is None else list(map(convert, map(decode, messages)))
        except UNFIT:
            return [self.deserialize(message) for message in messages]

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return self._type_info

    def _read_leniently(self, message: bytes | None, read: Convert) -> Any:
        if message is None:  # a deletion in Kafka is a message without a value
            return None
        try:
            node = decode_node(message)
            return None if node is None else read(node)
        except Mismatch as mismatch:
            raise SerializationError(
                f"The JSON message does not fit its type: {mismatch}; the message is {shown_bytes(message)}."
            ) from None
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
            if self._ignore_parse_errors:
                return None
            raise SerializationError(
                f"The message is not JSON: {str(error).rstrip('.')}; the message is {shown_bytes(message)}."
            ) from None

    class Builder:
        """Builds a `JsonRowDeserializationSchema`."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: Any) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the records: a row type, whose names are the JSON fields, or a class with fields."""
            self._type_info = infer_type_info(type_info)
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the records to that of a JSON schema. Its numbers become decimals."""
            if json_schema is None:
                raise TypeError("The json_schema must not be None.")
            self._type_info = type_of_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Refuse messages that lack a field. By default, the field of the row is None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Set fields that do not fit their type to None, and skip messages that are not JSON."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Return the schema."""
            if self._type_info is None:
                raise TypeError("JsonRowDeserializationSchema needs a type: call type_info() before build().")
            if self._fail_on_missing_field and self._ignore_parse_errors:
                raise ValueError("fail_on_missing_field() and ignore_parse_errors() exclude each other: choose one.")
            return JsonRowDeserializationSchema(self._type_info, self._fail_on_missing_field, self._ignore_parse_errors)


class JsonRowSerializationSchema(Shipped, SerializationSchema):
    """Writes a row, or an instance of a class, as a JSON object.

    >>> from rekindle.common import Row, Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
    >>> JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row("ann", 5))
    b'{"user":"ann","amount":5}'
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = type_info

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Return a builder of the schema."""
        return JsonRowSerializationSchema.Builder()

    def open(self, context: Any = None) -> None:
        """Build the encoder."""
        convert = json_value_of(self._type_info)
        fast = checked_struct_of(self._type_info) if isinstance(self._type_info, RowTypeInfo) else convert
        self._built = (json_encoder().encode, fast, convert)

    def serialize(self, element: Any) -> bytes:
        """Return the JSON of a record."""
        if self._built is None:
            self.open()
        encode, fast, convert = self._built
        message: bytes
        try:
            message = encode(fast(element))
            return encode(non_finite_as_text(element)) if self._may_hide_nan(message) else message
        except (Mismatch, msgspec.MsgspecError, TypeError, ValueError):
            pass
        try:
            message = encode(None if element is None else convert(element))
            return encode(non_finite_as_text(element)) if self._may_hide_nan(message) else message
        except (Mismatch, msgspec.MsgspecError, TypeError, ValueError) as error:
            raise SerializationError(
                f"The record cannot be written as JSON: {error}; the record is {shown(repr(element))}."
            ) from None

    def _may_hide_nan(self, message: bytes) -> bool:
        """Return whether a null may stand for a NaN, as msgspec writes it in instances of classes."""
        return isinstance(self._type_info, ClassTypeInfo) and b"null" in message

    class Builder:
        """Builds a `JsonRowSerializationSchema`."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None

        def with_type_info(self, type_info: Any) -> JsonRowSerializationSchema.Builder:
            """Set the type of the records: a row type, whose names are the JSON fields, or a class with fields."""
            self._type_info = infer_type_info(type_info)
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Return the schema."""
            if self._type_info is None:
                raise TypeError("JsonRowSerializationSchema needs a type: call with_type_info() before build().")
            return JsonRowSerializationSchema(self._type_info)
