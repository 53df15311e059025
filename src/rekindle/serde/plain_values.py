"""Reads stored values by their schema alone, as plain Python values: records and rows become dicts by field name.

For readers of checkpoints that do not have the program's classes. What the program itself reads goes through codecs.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import msgspec

from rekindle.errors import SerializationError
from rekindle.serde.tagged_codec import decoder_for
from rekindle.serde.type_schema import COLLECTIONS, RECORDS, TypeSchema

Buffer = bytes | bytearray | memoryview | msgspec.Raw
#: From the value that msgpack carries to the plain one.
Reader = Callable[[Any], Any]

_CONVERTED: Final[dict[str, Any]] = {
    "Float": float,
    "Double": float,
    "BigDecimal": Decimal,
    "Timestamp": dt.datetime,
    "LocalDateTime": dt.datetime,
    "Date": dt.date,
    "LocalDate": dt.date,
    "Time": dt.time,
    "LocalTime": dt.time,
    "Duration": dt.timedelta,
    "UUID": uuid.UUID,
}


def plain_values(schema: TypeSchema, data: Buffer, load_pickled: Callable[[bytes], Any] | None = None) -> list[Any]:
    """The values of an array that a codec's `encode_all` wrote; None where there is no value.

    An enum's member is its value, a set a list, an `Instant` its seconds and nanoseconds, and what a user's serializer
    wrote stays bytes. Pickled values are read only with `load_pickled`, else they raise SerializationError.

    >>> from rekindle.common.typeinfo import Types
    >>> from rekindle.serde import value_codec_for
    >>> codec = value_codec_for(Types.ROW_NAMED(["id", "price"], [Types.LONG(), Types.BIG_DEC()]))
    >>> plain_values(codec.schema, codec.encode_all([(1, Decimal("9.90")), None]))
    [{'id': 1, 'price': Decimal('9.90')}, None]
    """
    try:
        if schema.kind == "Tagged":
            return list(decoder_for({}, load_pickled, without_classes=True).decode(data))
        return list(map(plain_reader(schema), msgspec.msgpack.decode(data)))
    except (msgspec.MsgspecError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise SerializationError(f"Stored values are not of their type {schema}: {error}.") from error


def plain_value(schema: TypeSchema, data: bytes, load_pickled: Callable[[bytes], Any] | None = None) -> Any:
    """The value that a codec's `encode` wrote; None for the empty bytes that stand for None in operator state."""
    return None if data == b"" else plain_values(schema, b"\x91" + data, load_pickled)[0]  # an array of one


def plain_reader(schema: TypeSchema) -> Reader:
    """The reader of one value of any schema but `Tagged`, after msgpack's own decoding."""
    return _reader(schema, {})


def _reader(schema: TypeSchema, enclosing: dict[str, Reader]) -> Reader:
    inner = _reader_of_some(schema, enclosing)
    return lambda wired: None if wired is None else inner(wired)


def _reader_of_some(schema: TypeSchema, enclosing: dict[str, Reader]) -> Reader:
    if schema.kind in _CONVERTED:
        wanted = _CONVERTED[schema.kind]
        return lambda wired: msgspec.convert(wired, wanted)
    if schema.kind == "BigInteger":
        return lambda wired: int(wired, 16) if isinstance(wired, str) else wired
    if schema.kind == "Ref":
        return lambda wired: enclosing[schema.name](wired)  # noqa: PLW0108 (the class's reader is made after this one)
    if schema.kind in RECORDS or schema.kind == "Row":
        return _record_reader(schema, enclosing)
    parts = [_reader(part, enclosing) for part in schema.parts]
    if schema.kind in COLLECTIONS:
        return lambda wired: list(map(parts[0], wired))
    if schema.kind == "Map":
        return lambda wired: {parts[0](key): parts[1](value) for key, value in wired.items()}
    if schema.kind == "Tuple":
        return lambda wired: tuple(read(each) for read, each in zip(parts, wired, strict=True))
    if schema.kind == "TaggedUnion":
        return lambda wired: parts[0](wired[1]) if wired[0] else parts[1](wired[2])
    return lambda wired: wired


def _record_reader(schema: TypeSchema, enclosing: dict[str, Reader]) -> Reader:
    """The reader of a record or row. A field that is missing was left out because it had its default."""
    own: dict[str, Reader] = dict(enclosing)
    fields = [(each.name, _reader(each.type, own), each.omitted) for each in schema.fields]
    by_name = fields_reader(schema)

    def read(wired: Any) -> dict[str, Any]:
        values = by_name(wired)
        return {
            name: convert(values[name] if name in values else _default(omitted)) for name, convert, omitted in fields
        }

    own[schema.name] = read
    return read


def _default(omitted: bytes | None) -> Any:
    return None if omitted is None else msgspec.msgpack.decode(omitted)


def fields_reader(schema: TypeSchema) -> Callable[[Any], dict[str, Any]]:
    """The reader of the fields of a stored record or row, by name; their values stay as msgpack carries them."""
    names = [each.name for each in schema.fields]
    if schema.kind == "Row":
        first = 2 if schema.positional else 1
        return lambda wired: dict(zip(names, wired[first:], strict=True))
    if schema.positional:
        start = 0 if schema.tag is None else 1
        # A Struct that older code wrote may be shorter: its last fields have defaults.
        return lambda wired: dict(zip(names, wired[start:], strict=False))
    return dict
