"""Avro's records as columns: the Arrow type of a schema, and values to Arrow's form and back, as parquet-avro has it.

A union of several types is a struct with a field per type, `member0`, `member1` and so on, one of which has a value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from rekindle.datastream.formats.fieldwise import Convert
from rekindle.errors import GraphError

_LEAVES: dict[str, Any] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "null": pa.null(),
}
_CLASSES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "string": (str,),
    "bytes": (bytes, bytearray),
    "fixed": (bytes, bytearray),
    "enum": (str,),
    "array": (list, tuple),
    "map": (dict,),
    "record": (dict,),
}


class AvroColumn(NamedTuple):
    """The Arrow type of a schema, and the conversions of its values; None: they are the same."""

    arrow: Any
    write: Convert | None
    read: Convert | None
    kind: str
    nullable: bool = False


def avro_column(schema: Any, names: dict[str, Any] | None = None, inside: tuple[str, ...] = ()) -> AvroColumn:
    """Return the column of a schema without logical types, as fastavro has parsed it.

    >>> avro_column({"type": "array", "items": "long"}).arrow
    ListType(list<item: int64 not null>)
    """
    names = {} if names is None else names
    if isinstance(schema, list):
        return _union([avro_column(branch, names, inside) for branch in schema if branch != "null"], "null" in schema)
    if isinstance(schema, str):
        if schema in _LEAVES:
            return AvroColumn(_LEAVES[schema], None, None, schema, schema == "null")
        if schema in inside:
            raise GraphError(f"The Avro schema's record {schema} contains itself, which no column can hold.")
        return avro_column(names[schema], names, inside)
    if "name" in schema:
        names[schema["name"]] = schema
    match schema["type"]:
        case "record" | "error":
            return _record(schema, names, (*inside, schema["name"]))
        case "enum":
            return AvroColumn(pa.string(), None, None, "enum")
        case "fixed":
            return AvroColumn(pa.binary(schema["size"]), None, None, "fixed")
        case "array":
            return _array(avro_column(schema["items"], names, inside))
        case "map":
            return _map(avro_column(schema["values"], names, inside))
    return avro_column(schema["type"], names, inside)


def _record(schema: Any, names: dict[str, Any], inside: tuple[str, ...]) -> AvroColumn:
    columns = {field["name"]: avro_column(field["type"], names, inside) for field in schema["fields"]}
    kept = {name: column for name, column in columns.items() if column.kind != "null"}  # Parquet has no such type
    arrow = pa.struct([pa.field(name, column.arrow, column.nullable) for name, column in kept.items()])

    def write(record: dict[str, Any]) -> dict[str, Any]:
        return {name: _apply(column.write, record.get(name)) for name, column in kept.items()}

    def read(record: dict[str, Any]) -> dict[str, Any]:
        return {name: _apply(column.read, record.get(name)) for name, column in columns.items()}

    return AvroColumn(arrow, write, read, "record")


def _array(element: AvroColumn) -> AvroColumn:
    return AvroColumn(
        pa.list_(pa.field("item", element.arrow, element.nullable)),
        None if element.write is None else lambda values: [_apply(element.write, value) for value in values],
        None if element.read is None else lambda values: [_apply(element.read, value) for value in values],
        "array",
    )


def _map(value: AvroColumn) -> AvroColumn:
    return AvroColumn(
        pa.map_(pa.string(), pa.field("value", value.arrow, value.nullable)),
        lambda entries: [(key, _apply(value.write, item)) for key, item in entries.items()],
        lambda entries: {key: _apply(value.read, item) for key, item in entries},
        "map",
    )


def _union(members: list[AvroColumn], nullable: bool) -> AvroColumn:
    if len(members) == 1:
        return members[0]._replace(nullable=nullable)
    named = [(f"member{index}", member) for index, member in enumerate(members)]
    arrow = pa.struct([pa.field(name, member.arrow, True) for name, member in named])

    def write(value: Any) -> dict[str, Any]:
        chosen = next((name for name, member in named if _holds(member, value)), None)
        if chosen is None:
            raise TypeError(f"{value!r} is of none of the types {', '.join(member.kind for member in members)}")
        return {name: _apply(member.write, value) if name == chosen else None for name, member in named}

    def read(struct: dict[str, Any]) -> Any:
        return next((_apply(member.read, struct[name]) for name, member in named if struct[name] is not None), None)

    return AvroColumn(arrow, write, read, "union", nullable)


def _holds(member: AvroColumn, value: Any) -> bool:
    if isinstance(value, bool) or member.kind == "boolean":
        return isinstance(value, bool) and member.kind == "boolean"
    if member.kind == "int":
        return isinstance(value, int) and -(2**31) <= value < 2**31
    return isinstance(value, _CLASSES[member.kind])


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)
