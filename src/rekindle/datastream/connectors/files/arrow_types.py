"""Conversion between stream types and Arrow types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from rekindle.common.type_system.fields import fields_of
from rekindle.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    EnumTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
    Types,
)
from rekindle.errors import TypeMismatchError

_FROM_BASIC = {
    BasicType.STRING: pa.string(),
    BasicType.CHAR: pa.string(),
    BasicType.BOOLEAN: pa.bool_(),
    BasicType.BYTE: pa.int8(),
    BasicType.SHORT: pa.int16(),
    BasicType.INT: pa.int32(),
    BasicType.LONG: pa.int64(),
    BasicType.FLOAT: pa.float32(),
    BasicType.DOUBLE: pa.float64(),
    BasicType.BIG_INT: pa.decimal128(38, 0),
    BasicType.BIG_DEC: pa.decimal128(38, 18),
    BasicType.INSTANT: pa.timestamp("us", tz="UTC"),
}
_LOCAL_TIMES = {
    LocalTimeTypeInfo.TimeType.LOCAL_DATE: pa.date32(),
    LocalTimeTypeInfo.TimeType.LOCAL_TIME: pa.time64("us"),
    LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: pa.timestamp("us"),
}
_TO_STREAM: list[tuple[Callable[[Any], bool], Callable[[], TypeInformation]]] = [
    (pa.types.is_boolean, Types.BOOLEAN),
    (pa.types.is_int8, Types.BYTE),
    (pa.types.is_int16, Types.SHORT),
    (pa.types.is_int32, Types.INT),
    (pa.types.is_uint64, Types.BIG_INT),
    (pa.types.is_integer, Types.LONG),
    (pa.types.is_float32, Types.FLOAT),
    (pa.types.is_floating, Types.DOUBLE),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), Types.STRING),
    (
        lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
        lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ),
    (pa.types.is_date, Types.SQL_DATE),
    (pa.types.is_time, Types.SQL_TIME),
    (pa.types.is_timestamp, Types.SQL_TIMESTAMP),
    (pa.types.is_decimal, Types.BIG_DEC),
]


def arrow_schema(type_info: TypeInformation) -> Any:
    """Return the schema for records of a type. A type without fields gets one column named f0, as in Flink."""
    fields = fields_of(type_info) or [("f0", type_info)]
    return pa.schema([pa.field(name, arrow_type(part)) for name, part in fields])


def arrow_type(type_info: TypeInformation) -> Any:
    """Return the Arrow type of a stream type."""
    match type_info:
        case ExternalTypeInfo():
            return arrow_type(type_info._type_info)
        case BasicTypeInfo():
            return _FROM_BASIC[type_info._basic_type]
        case DateTypeInfo():
            return pa.date32()
        case TimestampTypeInfo():
            return pa.timestamp("us")
        case TimeTypeInfo():
            return pa.time64("us")
        case LocalTimeTypeInfo():
            return _LOCAL_TIMES[type_info._time_type]
        case PrimitiveArrayTypeInfo() if type_info.python_type() is bytes:
            return pa.binary()
        case ListTypeInfo():
            return pa.list_(arrow_type(type_info.elem_type))
        case MapTypeInfo():
            key, value = type_info._parts
            return pa.map_(arrow_type(key), arrow_type(value))
        case EnumTypeInfo():
            values = [member.value for member in type_info.get_class()]  # type: ignore[attr-defined]
            return pa.string() if isinstance(values[0], str) else pa.int64()
    if (fields := fields_of(type_info)) is not None:
        return pa.struct([pa.field(name, arrow_type(part)) for name, part in fields])
    raise TypeMismatchError(
        f"A value of the type {type_info!r} is no column of a table: declare a type with fields, for example"
        " Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.LONG()])."
    )


def row_type(schema: Any, path: str) -> RowTypeInfo:
    """Return the type of rows with this schema."""
    return Types.ROW_NAMED(schema.names, [_stream_type(field.type, f"{field.name}", path) for field in schema])


def _stream_type(kind: Any, column: str, path: str) -> TypeInformation:
    for is_kind, type_info in _TO_STREAM:
        if is_kind(kind):
            return type_info()
    if pa.types.is_dictionary(kind):
        return _stream_type(kind.value_type, column, path)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return Types.LIST(_stream_type(kind.value_type, f"{column}[]", path))
    if pa.types.is_map(kind):
        key, value = kind.key_type, kind.item_type
        return Types.MAP(_stream_type(key, f"{column}[key]", path), _stream_type(value, f"{column}[value]", path))
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        parts = [_stream_type(field.type, f"{column}.{field.name}", path) for field in fields]
        return Types.ROW_NAMED([field.name for field in fields], parts)
    raise TypeMismatchError(
        f"Column '{column}' of {path} has Arrow's type {kind}, which no stream has: name the `columns` to read."
    )
