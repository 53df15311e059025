"""Sinks and sources for SQL databases, under PyFlink's names."""

from __future__ import annotations

from rekindle.datastream.connectors.jdbc.connection_options import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.exactly_once_options import JdbcExactlyOnceOptions
from rekindle.datastream.connectors.jdbc.execution_options import JdbcExecutionOptions
from rekindle.datastream.connectors.jdbc.jdbc_sink import JdbcSink
from rekindle.datastream.connectors.jdbc.jdbc_source import JdbcSource, JdbcSourceBuilder
from rekindle.datastream.connectors.jdbc.row_file import rows_of_committable

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
    "rows_of_committable",
]
