"""The columns of files whose type is a `RowType` of `DataTypes`: decimals have the digits of their type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rekindle.common.data_types import ArrayType, DataType, DecimalType, MapType, MultisetType, RowType
from rekindle.common.type_system.fields import ColumnsOf, columns_of
from rekindle.datastream.connectors.files.arrow_types import arrow_type


def schema_of_row_type(row_type: RowType) -> Any:
    """Return the Arrow schema of a row type."""
    return pa.schema(list(_arrow(row_type)))


def _arrow(data_type: DataType) -> Any:
    match data_type:
        case DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case ArrayType():
            return pa.list_(_arrow(data_type.element_type))
        case MapType():
            return pa.map_(_arrow(data_type.key_type), _arrow(data_type.value_type))
        case MultisetType():
            return pa.map_(_arrow(data_type.element_type), pa.int32())
        case RowType():
            return pa.struct([pa.field(field.name, _arrow(field.data_type)) for field in data_type])
    return arrow_type(data_type.to_type_info())


def columns_of_row_type(row_type: RowType) -> ColumnsOf:
    """Return a function that makes columns of rows; decimals are rounded to the digits of their type, as in Flink."""
    columns = columns_of(row_type.to_type_info())
    rounds = [each.rounded if isinstance(each, DecimalType) else None for each in row_type.field_types()]

    def make(records: Sequence[Any]) -> list[Sequence[Any]]:
        return [
            values if convert is None else [None if value is None else convert(value) for value in values]
            for convert, values in zip(rounds, columns(records), strict=True)
        ]

    return make
