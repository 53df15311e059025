"""The elements of a bounded stream as a Spark DataFrame, a column per field."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from rekindle.common.type_system.fields import values_of
from rekindle.common.typeinfo import TypeInformation, infer_type_info
from rekindle.errors import TypeMismatchError
from rekindle.spark.dataframe_types import arrow_schema, schema_of, time_zone_of, with_zones


def chunks_to_dataframe(
    spark: SparkSession,
    chunks: Iterable[bytes],
    decode: Callable[[bytes], Iterable[Any]],
    type_info: TypeInformation | None,
) -> DataFrame:
    """The elements in these chunks as a DataFrame, a column per field."""
    schema = schema_of(type_info)
    values = values_of(infer_type_info(type_info))
    columns: list[list[Any]] = [[] for _ in schema.fields]
    for chunk in chunks:
        for element in decode(chunk):
            for column, value in zip(columns, values(element), strict=True):
                column.append(value)
    zone = time_zone_of(spark.conf.get("spark.sql.session.timeZone") or "UTC")
    arrays = [_to_array(field, column, zone) for field, column in zip(schema.fields, columns, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=schema.names), schema)


def _to_array(field: st.StructField, values: list[Any], zone: dt.tzinfo) -> Any:
    convert = with_zones(field.dataType, zone)
    if convert is not None:
        values = list(map(convert, values))
    try:
        return pa.array(values, arrow_schema(st.StructType([field]), "UTC").field(0).type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise TypeMismatchError(f"Column '{field.name}' of type {field.dataType.simpleString()}: {error}.") from None
