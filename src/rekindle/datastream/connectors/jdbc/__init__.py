"""Sinks and sources for SQL databases, under PyFlink's names."""

from __future__ import annotations

from rekindle.datastream.connectors.jdbc.connection_options import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.exactly_once_options import JdbcExactlyOnceOptions
from rekindle.datastream.connectors.jdbc.execution_options import JdbcExecutionOptions
from rekindle.datastream.connectors.jdbc.row_file import rows_of_committable
from rekindle.datastream.connectors.jdbc.sink import JdbcSink
from rekindle.datastream.connectors.jdbc.source import JdbcSource, JdbcSourceBuilder

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
    "rows_of_committable",
]
