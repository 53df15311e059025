"""Tables, as much as programs of streams touch them, under PyFlink's names. Spark runs the queries."""

from __future__ import annotations

from rekindle.common.data_types import DataTypes
from rekindle.common.types import Row, RowKind
from rekindle.table.environment_settings import EnvironmentSettings
from rekindle.table.explain_detail import ExplainDetail
from rekindle.table.expression import Expression
from rekindle.table.schema import Schema
from rekindle.table.table import GroupedTable, Table
from rekindle.table.table_config import TableConfig
from rekindle.table.table_descriptor import FormatDescriptor, TableDescriptor
from rekindle.table.table_environment import StreamTableEnvironment, TableEnvironment
from rekindle.table.table_result import TableResult
from rekindle.table.udf import (
    AggregateFunction,
    FunctionContext,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
)

__all__ = [
    "AggregateFunction",
    "DataTypes",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "FunctionContext",
    "GroupedTable",
    "Row",
    "RowKind",
    "ScalarFunction",
    "Schema",
    "StreamTableEnvironment",
    "Table",
    "TableAggregateFunction",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableFunction",
    "TableResult",
]
