"""PostgreSQL as the sink of the job: one table for all streams, a row per result, each exactly once.

The password is in the environment variable `ORDERS_DATABASE_PASSWORD`, so that it is in no command line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from examples.orders.json_rows import ConvertingSink, json_of
from examples.orders.settings import Settings
from rekindle.common import Types
from rekindle.datastream.connectors import Sink
from rekindle.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink

PASSWORD = "ORDERS_DATABASE_PASSWORD"


def postgres_sink(settings: Settings, stream: str) -> Sink[Any]:
    """A sink that writes a stream's results."""
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    options.with_url(settings.database).with_user_name(settings.database_user)
    options.with_password(os.environ.get(PASSWORD, ""))
    sink = JdbcSink.exactly_once_sink(
        f'INSERT INTO "{settings.table}" (stream, result) VALUES (?, ?)',
        Types.ROW([Types.STRING(), Types.STRING()]),
        options.build(),
    )
    return ConvertingSink(sink, lambda result: (stream, json_of(result).decode()))


def create_table(settings: Settings) -> None:
    """Make the table, unless it is there. A server that does not answer is the job's business: it says so."""
    import psycopg

    with contextlib.suppress(psycopg.OperationalError), _connection(settings) as connection:
        columns = "place bigserial PRIMARY KEY, stream text NOT NULL, result text NOT NULL"
        connection.execute(f'CREATE TABLE IF NOT EXISTS "{settings.table}" ({columns})')


def postgres_rows(settings: Settings, stream: str) -> Iterator[Any]:
    """Every committed result of a stream, in the order in which they were written."""
    with _connection(settings) as connection:
        query = f'SELECT result FROM "{settings.table}" WHERE stream = %s ORDER BY place'
        for (result,) in connection.execute(query, (stream,)):
            yield msgspec.json.decode(result)


def _connection(settings: Settings) -> Any:
    import psycopg

    address = settings.database.removeprefix("jdbc:")
    return psycopg.connect(address, user=settings.database_user, password=os.environ.get(PASSWORD, ""))
