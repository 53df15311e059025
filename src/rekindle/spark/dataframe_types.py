"""Maps column types of DataFrames to types of streams and back, with the Arrow types between them."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from rekindle.common.type_system.fields import Conversion, fields_of
from rekindle.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    EnumTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
    Types,
    infer_type_info,
)
from rekindle.common.types import Row, make_row
from rekindle.errors import TypeMismatchError

_PLAIN: dict[type[st.DataType], tuple[Callable[[], TypeInformation], Any]] = {
    st.BooleanType: (Types.BOOLEAN, pa.bool_()),
    st.ByteType: (Types.BYTE, pa.int8()),
    st.ShortType: (Types.SHORT, pa.int16()),
    st.IntegerType: (Types.INT, pa.int32()),
    st.LongType: (Types.LONG, pa.int64()),
    st.FloatType: (Types.FLOAT, pa.float32()),
    st.DoubleType: (Types.DOUBLE, pa.float64()),
    st.StringType: (Types.STRING, pa.string()),
    st.CharType: (Types.STRING, pa.string()),
    st.VarcharType: (Types.STRING, pa.string()),
    st.BinaryType: (lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), pa.binary()),
    st.DateType: (Types.SQL_DATE, pa.date32()),
    st.TimestampNTZType: (Types.SQL_TIMESTAMP, pa.timestamp("us")),
}
_FROM_BASIC: dict[BasicType, st.DataType] = {
    BasicType.STRING: st.StringType(),
    BasicType.CHAR: st.StringType(),
    BasicType.BOOLEAN: st.BooleanType(),
    BasicType.BYTE: st.ByteType(),
    BasicType.SHORT: st.ShortType(),
    BasicType.INT: st.IntegerType(),
    BasicType.LONG: st.LongType(),
    BasicType.FLOAT: st.FloatType(),
    BasicType.DOUBLE: st.DoubleType(),
    BasicType.BIG_INT: st.DecimalType(38, 0),
    BasicType.BIG_DEC: st.DecimalType(38, 18),
    BasicType.INSTANT: st.TimestampType(),
}
_TIME_TYPE: type[st.DataType] | None = getattr(st, "TimeType", None)


# -- from DataFrame to stream -----------------------------------------------------------------------------------------


def type_of(spark_type: st.DataType, path: str) -> TypeInformation:
    """The stream type for a column type; the error for a type without a counterpart names the column."""
    if type(spark_type) in _PLAIN:
        return _PLAIN[type(spark_type)][0]()
    if isinstance(spark_type, st.DecimalType):
        return Types.BIG_DEC()
    if isinstance(spark_type, st.TimestampType):
        return Types.SQL_TIMESTAMP()
    if _TIME_TYPE is not None and isinstance(spark_type, _TIME_TYPE):
        return Types.SQL_TIME()
    if isinstance(spark_type, st.ArrayType):
        return Types.LIST(type_of(spark_type.elementType, f"{path}[]"))
    if isinstance(spark_type, st.MapType):
        return Types.MAP(type_of(spark_type.keyType, f"{path}[key]"), type_of(spark_type.valueType, f"{path}[value]"))
    if isinstance(spark_type, st.StructType):
        return row_type_of(spark_type, f"{path}.")
    raise TypeMismatchError(
        f"Column '{path}' has Spark's type {spark_type.simpleString()}, which no stream has:"
        " cast or drop it in the DataFrame first."
    )


def row_type_of(schema: st.StructType, path: str = "") -> RowTypeInfo:
    """The row type of a schema."""
    names = schema.names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TypeMismatchError(f"Column '{path}{twice[0]}' is there more than once: give each a name of its own.")
    return Types.ROW_NAMED(names, [type_of(field.dataType, path + field.name) for field in schema.fields])


def arrow_type(spark_type: st.DataType, time_zone: str) -> Any:
    """The Arrow type in which Spark writes a column of this type."""
    if type(spark_type) in _PLAIN:
        return _PLAIN[type(spark_type)][1]
    if isinstance(spark_type, st.DecimalType):
        return pa.decimal128(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, st.TimestampType):
        return pa.timestamp("us", tz=time_zone)
    if isinstance(spark_type, st.ArrayType):
        return pa.list_(pa.field("element", arrow_type(spark_type.elementType, time_zone), spark_type.containsNull))
    if isinstance(spark_type, st.MapType):
        value = pa.field("value", arrow_type(spark_type.valueType, time_zone), spark_type.valueContainsNull)
        return pa.map_(arrow_type(spark_type.keyType, time_zone), value)
    if isinstance(spark_type, st.StructType):
        return pa.struct(list(arrow_schema(spark_type, time_zone)))
    assert _TIME_TYPE is not None, spark_type
    assert isinstance(spark_type, _TIME_TYPE), spark_type
    return pa.time64("ns")


def arrow_schema(schema: st.StructType, time_zone: str) -> Any:
    """The Arrow schema of Spark's batches of rows of this schema."""
    return pa.schema(
        [pa.field(each.name, arrow_type(each.dataType, time_zone), each.nullable) for each in schema.fields]
    )


def from_arrow(spark_type: st.DataType) -> Conversion:
    """The conversion from Arrow's Python value to the stream's; None when they are the same."""
    if isinstance(spark_type, st.TimestampType):
        return _nullable(lambda value: value.replace(tzinfo=None))
    if isinstance(spark_type, st.ArrayType):
        element = from_arrow(spark_type.elementType)
        return None if element is None else _nullable(lambda values: [element(value) for value in values])
    if isinstance(spark_type, st.MapType):
        key, value = from_arrow(spark_type.keyType) or _same, from_arrow(spark_type.valueType) or _same
        return _nullable(lambda items: {key(each): value(item) for each, item in items})
    if isinstance(spark_type, st.StructType):
        return _nullable(_row_from_dict(spark_type))
    return None


def _row_from_dict(schema: st.StructType) -> Callable[[dict[str, Any]], Row]:
    names = list(schema.names)
    parts = [(field.name, from_arrow(field.dataType) or _same) for field in schema.fields]
    return lambda values: make_row(names, [convert(values[name]) for name, convert in parts])


# -- from stream to DataFrame -----------------------------------------------------------------------------------------


def schema_of(type_info: TypeInformation | None) -> st.StructType:
    """The schema for a stream's elements; elements that are not rows get one column named f0, as in Flink."""
    column = spark_type_of(infer_type_info(type_info))
    return column if isinstance(column, st.StructType) else st.StructType([st.StructField("f0", column)])


def spark_type_of(type_info: TypeInformation) -> st.DataType:
    """The column type for a stream type; TypeMismatchError for a type that can only be pickled."""
    match type_info:
        case ExternalTypeInfo():
            return spark_type_of(type_info._type_info)
        case BasicTypeInfo():
            return _FROM_BASIC[type_info._basic_type]
        case DateTypeInfo():
            return st.DateType()
        case TimestampTypeInfo():
            return st.TimestampType()
        case TimeTypeInfo() if _TIME_TYPE is not None:
            return _TIME_TYPE()
        case PrimitiveArrayTypeInfo() if type_info.python_type() is bytes:
            return st.BinaryType()
        case ListTypeInfo():
            return st.ArrayType(spark_type_of(type_info.elem_type))
        case MapTypeInfo():
            key, value = type_info._parts
            return st.MapType(spark_type_of(key), spark_type_of(value))
        case EnumTypeInfo():
            values = [member.value for member in type_info.get_class()]  # type: ignore[attr-defined]
            return st.StringType() if isinstance(values[0], str) else st.LongType()
    if (fields := fields_of(type_info)) is not None:
        return st.StructType([st.StructField(name, spark_type_of(part)) for name, part in fields])
    raise TypeMismatchError(
        f"Elements of the type {type_info!r} have no columns: give the last operator an output_type, for example"
        " Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.LONG()])."
    )


def time_zone_of(name: str) -> dt.tzinfo:
    """The time zone for the zone name or offset in a Spark session's settings."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        zone: dt.tzinfo = pa.lib.string_to_tzinfo(name)
        return zone


def with_zones(spark_type: st.DataType, zone: dt.tzinfo) -> Conversion:
    """The conversion that adds the session's zone to each timestamp without one, at any depth of the value.

    Timestamps that Spark gives without a zone are in the session's zone. None when the type holds no timestamps.
    """
    if isinstance(spark_type, st.TimestampType):
        return _nullable(lambda moment: moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))
    if isinstance(spark_type, st.ArrayType):
        element = with_zones(spark_type.elementType, zone)
        return None if element is None else _nullable(lambda values: [element(value) for value in values])
    if isinstance(spark_type, st.MapType):
        key, value = with_zones(spark_type.keyType, zone), with_zones(spark_type.valueType, zone)
        if key is None and value is None:
            return None
        of_key, of_value = key or _same, value or _same
        return _nullable(lambda pairs: [(of_key(each), of_value(item)) for each, item in pairs])
    if isinstance(spark_type, st.StructType):
        parts = {field.name: convert for field in spark_type.fields if (convert := with_zones(field.dataType, zone))}
        if not parts:
            return None
        return _nullable(lambda values: values | {name: convert(values[name]) for name, convert in parts.items()})
    return None


def _nullable(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value
