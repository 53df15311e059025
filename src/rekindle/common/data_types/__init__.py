"""The types of tables, which `rekindle.table` has under PyFlink's names and which formats of files take too."""

from __future__ import annotations

from rekindle.common.data_types.atomic import (
    AtomicType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    NullType,
    NumericType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)
from rekindle.common.data_types.factory import DataTypes
from rekindle.common.data_types.from_type_info import data_type_of
from rekindle.common.data_types.nested import ArrayType, MapType, MultisetType, RowField, RowType

__all__ = [
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DataTypes",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "LocalZonedTimestampType",
    "MapType",
    "MultisetType",
    "NullType",
    "NumericType",
    "RowField",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "data_type_of",
]
