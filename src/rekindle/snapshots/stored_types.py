"""The types of a state as the schema in its checkpoint tells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rekindle.serde.type_schema import COLLECTIONS, RECORDS, TypeSchema, decode_schema, decode_state_schema
from rekindle.snapshots.shapes import (
    UNKNOWN,
    ElementsShape,
    EntriesShape,
    FieldsShape,
    Form,
    JsonShape,
    Plain,
    PlainShape,
    Shape,
)

_TAGGED: Final = TypeSchema("Tagged")
#: The kinds of schemas without parts.
_PLAIN: Final = {
    "Boolean": Plain.BOOLEAN,
    "Byte": Plain.BYTE,
    "Short": Plain.SHORT,
    "Integer": Plain.INT,
    "Long": Plain.LONG,
    "BigInteger": Plain.BIG_INT,
    "Float": Plain.FLOAT,
    "Double": Plain.DOUBLE,
    "BigDecimal": Plain.DECIMAL,
    "String": Plain.STRING,
    "Char": Plain.STRING,
    "Bytes": Plain.BYTES,
    "ByteArray": Plain.BYTES,
    "MemoryView": Plain.BYTES,
    "Serializer": Plain.BYTES,
    "Date": Plain.DATE,
    "LocalDate": Plain.DATE,
    "Time": Plain.TIME,
    "LocalTime": Plain.TIME,
    "Timestamp": Plain.TIMESTAMP,
    "LocalDateTime": Plain.TIMESTAMP,
    "Instant": Plain.INSTANT,
    "Duration": Plain.DURATION,
    "UUID": Plain.UUID,
}


@dataclass(frozen=True)
class StoredType:
    """The type of stored values, and whether they are in the tagged encoding, as values of undeclared types are."""

    shape: Shape
    tagged: bool
    schema: TypeSchema = _TAGGED


UNTYPED: Final = StoredType(UNKNOWN, tagged=True)


@dataclass(frozen=True)
class StateTypes:
    """The types of a state's values (elements, accumulators, values of a map), of a map's keys, and of the row keys."""

    values: StoredType
    fields: StoredType = UNTYPED
    keys: StoredType = UNTYPED
    timed: bool = False


def state_types(schema: bytes) -> StateTypes:
    """The types of a state by its schema."""
    stored = decode_state_schema(schema)
    return StateTypes(stored_type(stored.values), stored_type(stored.fields), stored_type(stored.keys), stored.timed)


def key_type(schema: bytes) -> StoredType:
    """The type of keys by their schema."""
    return stored_type(decode_schema(schema))


def stored_type(schema: TypeSchema | None) -> StoredType:
    """The type that a schema describes."""
    if schema is None or schema.kind == "Tagged":
        return UNTYPED
    return StoredType(_shape(schema), tagged=False, schema=schema)


def _shape(schema: TypeSchema) -> Shape:
    match schema.kind:
        case "PrimitiveArray" if schema.parts[0].kind == "Byte":
            return PlainShape(Plain.BYTES)
        case "Enum" | "Literal":
            return _symbol(schema)
        case "Row":
            return _fields(schema, Form.ROW)
        case "Tuple":
            names = tuple(f"f{index}" for index in range(len(schema.parts)))
            return FieldsShape(names, tuple(map(_shape, schema.parts)), Form.ARRAY)
        case "Map":
            key, value = map(_shape, schema.parts)
            return EntriesShape(key, value, Form.MAP)
        case "Ref" | "TaggedUnion":
            return JsonShape()
    if schema.kind in RECORDS:
        return _fields(schema, Form.ARRAY if schema.positional else Form.MAP)
    if schema.kind in COLLECTIONS:
        return ElementsShape(_shape(schema.parts[0]), Form.ARRAY)
    if schema.kind in _PLAIN:
        return PlainShape(_PLAIN[schema.kind])
    return UNKNOWN


def _symbol(schema: TypeSchema) -> Shape:
    symbols = tuple(value for _, value in schema.symbols)
    kinds = set(map(type, symbols))
    if kinds not in ({str}, {int}):
        return JsonShape()
    return PlainShape(Plain.STRING if kinds == {str} else Plain.LONG, schema.name, symbols)


def _fields(schema: TypeSchema, form: Form) -> FieldsShape:
    return FieldsShape(
        tuple(field.name for field in schema.fields),
        tuple(_shape(field.type) for field in schema.fields),
        form,
        schema.name,
        schema.tag,
        tuple((field.name, field.omitted) for field in schema.fields if field.omitted is not None),
        *_without_none(schema),
    )


def _without_none(schema: TypeSchema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The optional and the required fields among those that cannot be None."""
    strict = [field for field in schema.fields if not field.type.nullable and field.type.kind not in ("Ref", "Tagged")]
    return (
        tuple(field.name for field in strict if field.optional),
        tuple(field.name for field in strict if not field.optional),
    )
