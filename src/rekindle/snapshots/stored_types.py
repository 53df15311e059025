"""The types of a state as its checkpoint tells them: by a schema, in older ones by a fingerprint, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rekindle.runtime.state.spec import StateKind
from rekindle.runtime.state.ttl.expiry import TIMED_FINGERPRINT
from rekindle.serde.type_schema import COLLECTIONS, RECORDS, TypeSchema, decode_schema, decode_state_schema
from rekindle.snapshots.fingerprint_parser import PLAIN_NAMES, shape_of
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
    is_undeclared,
)

_TAGGED: Final = TypeSchema("Tagged")


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


def state_types(kind: StateKind, fingerprint: str, schema: bytes) -> StateTypes:
    """The types of a state, from its schema, or from the fingerprint that older versions wrote."""
    if schema:
        stored = decode_state_schema(schema)
        return StateTypes(
            stored_type(stored.values), stored_type(stored.fields), stored_type(stored.keys), stored.timed
        )
    declared = shape_of(fingerprint.removeprefix(TIMED_FINGERPRINT))
    timed = fingerprint.startswith(TIMED_FINGERPRINT)
    if kind is StateKind.LIST and isinstance(declared, ElementsShape):
        return StateTypes(_declared(declared.part), timed=timed)
    if kind is StateKind.MAP and isinstance(declared, EntriesShape):
        return StateTypes(_declared(declared.value), _declared(declared.key), timed=timed)
    return StateTypes(_declared(declared), timed=timed)


def key_type(schema: bytes) -> StoredType:
    """The type of keys by their schema; older parts have none."""
    return stored_type(decode_schema(schema)) if schema else UNTYPED


def _declared(shape: Shape) -> StoredType:
    return UNTYPED if is_undeclared(shape) else StoredType(shape, tagged=False)


def stored_type(schema: TypeSchema | None) -> StoredType:
    """The type that a schema describes."""
    if schema is None or schema.kind == "Tagged":
        return UNTYPED
    return StoredType(_shape(schema), tagged=False, schema=schema)


def _shape(schema: TypeSchema) -> Shape:
    match schema.kind:
        case "Bytes" | "Serializer":
            return PlainShape(Plain.BYTES)
        case "PrimitiveArray" if schema.parts[0].kind == "Byte":
            return PlainShape(Plain.BYTES)
        case "Enum" | "Literal":
            return _symbol(schema)
        case "Row":
            return _fields(schema, Form.UNNAMED_ROW if schema.positional else Form.ROW)
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
    if schema.kind in PLAIN_NAMES:
        return PlainShape(PLAIN_NAMES[schema.kind])
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
