"""Spark's and Arrow's types for the shapes of stored values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as st

from rekindle.snapshots.shapes import (
    ElementsShape,
    EntriesShape,
    FieldsShape,
    PickledShape,
    Plain,
    PlainShape,
    Shape,
)
from rekindle.snapshots.table import TableColumn

_PLAIN: Final[dict[Plain, tuple[st.DataType, Any]]] = {
    Plain.BOOLEAN: (st.BooleanType(), pa.bool_()),
    # The integer types all carry Python ints of up to 64 bits.
    Plain.BYTE: (st.LongType(), pa.int64()),
    Plain.SHORT: (st.LongType(), pa.int64()),
    Plain.INT: (st.LongType(), pa.int64()),
    Plain.LONG: (st.LongType(), pa.int64()),
    Plain.BIG_INT: (st.DecimalType(38, 0), pa.decimal128(38, 0)),
    Plain.FLOAT: (st.DoubleType(), pa.float64()),
    Plain.DOUBLE: (st.DoubleType(), pa.float64()),
    Plain.DECIMAL: (st.DecimalType(38, 18), pa.decimal128(38, 18)),
    Plain.BYTES: (st.BinaryType(), pa.binary()),
    Plain.DATE: (st.DateType(), pa.date32()),
    Plain.TIMESTAMP: (st.TimestampType(), pa.timestamp("us", tz="UTC")),
    Plain.LOCAL_TIMESTAMP: (st.TimestampNTZType(), pa.timestamp("us")),
    Plain.INSTANT: (st.TimestampType(), pa.timestamp("us", tz="UTC")),
    Plain.DURATION: (st.DayTimeIntervalType(), pa.duration("us")),
}
_TEXT: Final = (st.StringType(), pa.string())
_BYTES: Final = (st.BinaryType(), pa.binary())


def spark_schema(columns: Sequence[TableColumn]) -> st.StructType:
    """The schema of a table."""
    return st.StructType([st.StructField(column.name, spark_type(column.shape)) for column in columns])


def spark_type(shape: Shape) -> st.DataType:
    """The type of a column; times of day, UUIDs and what is shown as JSON are text."""
    match shape:
        case PlainShape():
            return _PLAIN.get(shape.kind, _TEXT)[0]
        case FieldsShape():
            return st.StructType([st.StructField(name, spark_type(part)) for name, part in shape.fields()])
        case ElementsShape():
            return st.ArrayType(spark_type(shape.part))
        case EntriesShape():
            return st.MapType(spark_type(shape.key), spark_type(shape.value))
        case PickledShape():
            return _BYTES[0]
    return _TEXT[0]


def arrow_columns(columns: Sequence[TableColumn]) -> Any:
    """The Arrow schema of a table's batches, as Spark wants them from a Python data source."""
    return pa.schema([pa.field(column.name, _arrow_type(column.shape)) for column in columns])


def _arrow_type(shape: Shape) -> Any:
    match shape:
        case PlainShape():
            return _PLAIN.get(shape.kind, _TEXT)[1]
        case FieldsShape():
            return pa.struct([pa.field(name, _arrow_type(part)) for name, part in shape.fields()])
        case ElementsShape():
            return pa.list_(pa.field("element", _arrow_type(shape.part)))
        case EntriesShape():
            return pa.map_(_arrow_type(shape.key), _arrow_type(shape.value))
        case PickledShape():
            return _BYTES[1]
    return _TEXT[1]
