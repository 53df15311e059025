"""Sinks and sources for SQL databases, under PyFlink's names."""

from __future__ import annotations

from importlib.util import find_spec

from rekindle.errors import ConnectorError

if find_spec("sqlalchemy") is None:
    raise ConnectorError(
        "SQL databases need the package sqlalchemy: install it on the driver and on the workers with "
        "pip install 'rekindle[sql]'."
    )

from rekindle.datastream.connectors.jdbc.interval_target import rows_of_committable
from rekindle.datastream.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
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
