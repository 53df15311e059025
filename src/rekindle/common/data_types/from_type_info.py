"""The column type of a stream type."""

from __future__ import annotations

from rekindle.common.data_types.atomic import DataType
from rekindle.common.data_types.factory import DataTypes
from rekindle.common.data_types.nested import RowField, RowType
from rekindle.common.type_system.fields import fields_of
from rekindle.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
)
from rekindle.errors import TypeMismatchError

#: The widest decimal that both Flink's and Spark's tables have, as Flink's Table API declares BIG_DEC.
_DECIMAL_DIGITS = (38, 18)


def _basic(kind: BasicType) -> DataType:
    match kind:
        case BasicType.STRING | BasicType.CHAR:
            return DataTypes.STRING()
        case BasicType.BOOLEAN:
            return DataTypes.BOOLEAN()
        case BasicType.BYTE:
            return DataTypes.TINYINT()
        case BasicType.SHORT:
            return DataTypes.SMALLINT()
        case BasicType.INT:
            return DataTypes.INT()
        case BasicType.LONG:
            return DataTypes.BIGINT()
        case BasicType.FLOAT:
            return DataTypes.FLOAT()
        case BasicType.DOUBLE:
            return DataTypes.DOUBLE()
        case BasicType.BIG_INT:
            return DataTypes.DECIMAL(38, 0)
        case BasicType.BIG_DEC:
            return DataTypes.DECIMAL(*_DECIMAL_DIGITS)
        case BasicType.INSTANT:
            return DataTypes.TIMESTAMP_LTZ(9)
    raise AssertionError(kind)


def _local_time(kind: LocalTimeTypeInfo.TimeType) -> DataType:
    kinds = LocalTimeTypeInfo.TimeType
    if kind is kinds.LOCAL_DATE:
        return DataTypes.DATE()
    return DataTypes.TIME() if kind is kinds.LOCAL_TIME else DataTypes.TIMESTAMP(6)


def data_type_of(type_info: TypeInformation) -> DataType:
    """Return the type of a column that holds values of a stream type.

    >>> from rekindle.common.typeinfo import Types
    >>> data_type_of(Types.TUPLE([Types.STRING(), Types.LONG()])).sql()
    'ROW<`f0` STRING, `f1` BIGINT>'
    """
    match type_info:
        case ExternalTypeInfo():
            return data_type_of(type_info._type_info)
        case BasicTypeInfo():
            return _basic(type_info._basic_type)
        case DateTypeInfo():
            return DataTypes.DATE()
        case TimeTypeInfo():
            return DataTypes.TIME()
        case TimestampTypeInfo():
            return DataTypes.TIMESTAMP(6)
        case LocalTimeTypeInfo():
            return _local_time(type_info._time_type)
        case PrimitiveArrayTypeInfo() if type_info.python_type() is bytes:
            return DataTypes.BYTES()
        case ListTypeInfo():
            return DataTypes.ARRAY(data_type_of(type_info.elem_type))
        case MapTypeInfo():
            key, value = type_info._parts
            return DataTypes.MAP(data_type_of(key), data_type_of(value))
    if (fields := fields_of(type_info)) is not None:
        return RowType([RowField(name, data_type_of(part)) for name, part in fields])
    raise TypeMismatchError(
        f"A value of the type {type_info!r} is no column of a table: declare a type with fields, for example"
        " Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.LONG()])."
    )
