"""PostgreSQL, with psycopg 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rekindle.datastream.connectors.jdbc import postgres_errors as told
from rekindle.datastream.connectors.jdbc.connection_options import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.database import Database, Fault, RowValues
from rekindle.datastream.connectors.jdbc.placeholders import for_psycopg, numbered
from rekindle.datastream.connectors.jdbc.refused_value import refused_value
from rekindle.errors import ConnectorError

_CHECKED = "rekindle_checked"
#: So that a server that is gone without a word is noticed: its connections are probed after ten quiet seconds.
_KEEPALIVE = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3"}


class PostgresDatabase(Database):
    """A database of a PostgreSQL server."""

    def __init__(self, options: JdbcConnectionOptions) -> None:
        super().__init__(options)
        self._psycopg = psycopg_package()

    @property
    def shown(self) -> str:
        return f"PostgreSQL at {self.options.address.place}"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (self._psycopg.Error,)

    def connect(self, timeout_s: float) -> Any:
        given = self.options.client_parameters()
        defaults = {"connect_timeout": str(max(2, int(timeout_s))), "application_name": "rekindle", **_KEEPALIVE}
        return self._psycopg.connect(**{**defaults, **given}, autocommit=True)

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        block: AbstractContextManager[Any] = connection.transaction()
        return block

    def savepoint(self, connection: Any) -> AbstractContextManager[Any]:
        return self.transaction(connection)  # inside another one it is a savepoint

    def execute(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> Any:
        return connection.execute(for_psycopg(sql), tuple(parameters))

    def execute_many(self, connection: Any, sql: str, rows: Sequence[RowValues]) -> None:
        """Run the statement for each row, in a pipeline: the client does not wait for each answer."""
        with connection.cursor() as cursor:
            cursor.executemany(for_psycopg(sql), rows)

    def check_statement(self, connection: Any, sql: str) -> None:
        connection.execute(f"PREPARE {_CHECKED} AS {numbered(sql)}")
        connection.execute(f"DEALLOCATE {_CHECKED}")

    def fault_of(self, error: Exception) -> Fault:
        return told.fault_of(error)

    def refuses_row(self, error: Exception) -> bool:
        return told.refuses_row(error)

    def is_missing_table(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) == told.UNDEFINED_TABLE

    def described(self, error: Exception) -> str:
        return told.described(error)

    def value_that_does_not_fit(self, connection: Any, sql: str, rows: Sequence[RowValues]) -> str:
        return refused_value(self._psycopg, connection, sql, rows)

    def stream(
        self, connection: Any, sql: str, parameters: Sequence[Any], fetch_size: int
    ) -> Iterator[list[RowValues]]:
        # Not in `with` blocks: when a reader is dropped in the middle, its connection is closed, and that ends all.
        connection.execute("BEGIN READ ONLY")
        cursor = connection.cursor(name="rekindle_rows")
        cursor.execute(for_psycopg(sql), tuple(parameters))
        while rows := cursor.fetchmany(fetch_size):
            yield rows
        cursor.close()
        connection.execute("COMMIT")

    def ordered(self, query: str, column: str | None) -> str:
        own = f"{column} NULLS FIRST, " if column is not None else ""
        return f"ORDER BY {own}rekindle_rows::text"


def psycopg_package() -> Any:
    """Import psycopg; where it is missing, say how to install it."""
    try:
        import psycopg
    except ImportError as error:
        raise ConnectorError(
            "Databases of PostgreSQL need the package psycopg: install it on the driver and on the workers with "
            "pip install 'rekindle[postgres]'."
        ) from error
    return psycopg
