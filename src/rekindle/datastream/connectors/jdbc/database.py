"""The operations of sink and source on a database, with SQLAlchemy; and by hand those that it has no word for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, CursorResult, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from rekindle.datastream.connectors.jdbc.database_errors import described, driver_errors
from rekindle.datastream.connectors.jdbc.options import JdbcConnectionOptions
from rekindle.datastream.connectors.jdbc.statements import (
    count_placeholders,
    insert_shape,
    numbered,
    spelled_for,
    table_of,
)
from rekindle.errors import ConfigurationError, ConnectorError

RowValues = tuple[Any, ...]
_NAMES = {
    "postgresql": "PostgreSQL",
    "sqlite": "SQLite",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "mssql": "SQL Server",
    "oracle": "Oracle",
    "duckdb": "DuckDB",
}
#: The extra with the client; other clients are packages of their own.
_EXTRAS = {"psycopg": "rekindle[postgres]", "pymysql": "rekindle[mysql]"}
#: Settings of a driver's connections that the URL need not have.
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    # So that a server that is gone without a word is noticed: its connections are probed after ten quiet seconds.
    "psycopg": {
        "application_name": "rekindle",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
    },
    # Transactions are begun by hand; the thread that writes old batches uses the connection, too.
    "pysqlite": {"isolation_level": None, "check_same_thread": False},
}
#: The driver's setting for the time that a connect may take, in seconds.
_TIMEOUTS = {
    "psycopg": "connect_timeout",
    "pymysql": "connect_timeout",
    "pysqlite": "timeout",
    "pyodbc": "timeout",
    "oracledb": "tcp_connect_timeout",
}
_LEAST_TIMEOUT_S = 2
_ENGINE = """
SELECT engine FROM information_schema.tables JOIN information_schema.engines USING (engine)
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ? AND transactions = 'NO'
"""
#: SQLite has no types for these: they are stored as text that sorts as they do.
_AS_TEXT: dict[type, Any] = {
    Decimal: str,
    datetime: lambda value: value.isoformat(" "),
    date: date.isoformat,
    time: time.isoformat,
}


class Database:
    """One database, with SQLAlchemy's engine for it; connections belong to those who open them."""

    def __init__(self, options: JdbcConnectionOptions) -> None:
        self.options = options
        self.backend = options.address.get_backend_name()
        self._timeout_s = float(options.connection_check_timeout_seconds)
        self._engine = _engine_of(options)
        self._driver = self._engine.dialect.driver
        event.listen(self._engine, "do_connect", self._complete)
        self._spelled = lru_cache(maxsize=16)(lambda sql: spelled_for(self._engine.dialect, sql))

    @property
    def shown(self) -> str:
        """The database for people, such as 'PostgreSQL at localhost:5432/shop'."""
        return f"{_NAMES.get(self.backend, self.backend)} at {self.options.place}"

    def connect(self, timeout_s: float) -> Connection:
        """Open a connection, within a time if the driver can be told one."""
        self._timeout_s = timeout_s
        connection = self._engine.connect()
        if self.backend == "sqlite":
            with connection.begin():
                connection.exec_driver_sql("PRAGMA synchronous=FULL")
        return connection

    def _complete(self, dialect: Any, record: Any, arguments: Any, parameters: dict[str, Any]) -> None:
        """Add to a connection's parameters what the URL leaves open."""
        for name, value in _SETTINGS.get(self._driver, {}).items():
            parameters.setdefault(name, value)
        if self._driver in _TIMEOUTS:
            parameters.setdefault(_TIMEOUTS[self._driver], max(_LEAST_TIMEOUT_S, int(self._timeout_s)))

    @contextmanager
    def transaction(self, connection: Connection) -> Iterator[None]:
        """A transaction that is committed at the end of the block, and rolled back if the block raises."""
        with connection.begin():
            if self.backend == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield

    def execute(self, connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> CursorResult[Any]:
        """Run a statement with `?` placeholders."""
        (row,) = self._stored([tuple(parameters)])
        with driver_errors(connection):
            return connection.exec_driver_sql(self._spelled(sql), row)

    def execute_many(self, connection: Connection, sql: str, rows: Sequence[RowValues]) -> None:
        """Run a statement for each row, in the driver's own fastest form."""
        if rows:
            with driver_errors(connection):
                connection.exec_driver_sql(self._spelled(sql), self._stored(rows))

    def _stored(self, rows: Sequence[RowValues]) -> list[RowValues]:
        if self.backend != "sqlite":
            return list(rows)
        return [tuple(_AS_TEXT[type(each)](each) if type(each) in _AS_TEXT else each for each in row) for row in rows]

    def check_statement(self, connection: Connection, sql: str) -> None:
        """Let the database compile a statement without running it: missing tables and columns are told."""
        if self.backend == "postgresql":
            run_as_is(connection, f"PREPARE rekindle_checked AS {numbered(sql)}")
            run_as_is(connection, "DEALLOCATE rekindle_checked")
        elif self.backend in ("mysql", "mariadb"):
            self.execute(connection, "SET @rekindle_checked = ?", (sql.replace("??", "?"),))
            run_as_is(connection, "PREPARE rekindle_checked FROM @rekindle_checked")
            run_as_is(connection, "DEALLOCATE PREPARE rekindle_checked")
        elif self.backend == "sqlite":
            self.execute(connection, f"EXPLAIN {sql}", (None,) * count_placeholders(sql))
        elif table_of(sql) is not None:
            shape = insert_shape(sql)
            columns = ", ".join(shape.columns) if shape is not None else "*"
            run_as_is(connection, f"SELECT {columns} FROM {table_of(sql)} WHERE 1 = 0")

    def check_transactions(self, connection: Connection, sql: str) -> None:
        """Refuse a table that keeps what a transaction takes back: MySQL has such engines."""
        if self.backend in ("mysql", "mariadb"):
            schema, _, table = (table_of(sql) or "").replace("`", "").rpartition(".")
            found = self.execute(connection, _ENGINE, (schema, table)).first()
            if found is not None:
                raise ConnectorError(
                    f"Table '{table}' of {self.shown} is of the engine {found[0]}, which has no transactions, so the "
                    "sink cannot write exactly once there: make it an InnoDB table."
                )

    def stream(
        self, connection: Connection, sql: str, parameters: Sequence[Any], fetch_size: int
    ) -> Iterator[list[RowValues]]:
        """Run a query and yield its rows in pieces. Close the connection if they are not all taken.

        Rows come from the driver's own cursor: SQLAlchemy's would make two objects of each.
        """
        transaction = connection.begin()
        if self.backend == "postgresql":
            run_as_is(connection, "SET TRANSACTION READ ONLY")
        (row,) = self._stored([tuple(parameters)])
        with driver_errors(connection):
            cursor = self._cursor(connection)
            cursor.execute(self._spelled(sql), row)
        if self.backend == "sqlite":
            # All at once: an open query would keep every writer of the file waiting.
            with driver_errors(connection):
                rows = cursor.fetchall()
            transaction.commit()
            yield from (rows[begin : begin + fetch_size] for begin in range(0, len(rows), fetch_size))
            return
        try:
            while rows := _fetched(connection, cursor, fetch_size):
                yield rows
        finally:
            _forget_rest(cursor)
        cursor.close()
        transaction.commit()

    def _cursor(self, connection: Connection) -> Any:
        """A cursor of the driver that leaves the rows at the server until they are fetched."""
        own: Any = connection.connection.driver_connection
        if self._driver == "psycopg":
            return own.cursor(name="rekindle_rows")
        if self._driver == "pymysql":
            from pymysql.cursors import SSCursor

            return own.cursor(SSCursor)
        return own.cursor()

    def ordered(self, query: str, column: str | None) -> str:
        """An ORDER BY clause over a query named `rekindle_rows` that leaves no two different rows in any order."""
        if self.backend == "postgresql":
            return "ORDER BY " + ", ".join([*_nulls_first(column), "rekindle_rows::text"])
        names = self._columns(query)
        if self.backend in ("mysql", "mariadb"):
            # NULL comes first there; texts are compared byte by byte, because 'a' and 'A' may be equal.
            own = [column] if column is not None else []
            return "ORDER BY " + ", ".join([*own, *(f"CAST(rekindle_rows.`{name}` AS BINARY)" for name in names)])
        width = len(names) + (column is not None)
        return "ORDER BY " + ", ".join([*_nulls_first(column), *(str(number + 1) for number in range(width))])

    def _columns(self, query: str) -> list[str]:
        """The names of a query's columns."""
        with self._engine.connect() as connection:
            return list(self.execute(connection, f"SELECT * FROM ({query}) rekindle_rows WHERE 1 = 0").keys())

    def told(self, error: DBAPIError, doing: str, where: str = "") -> ConnectorError:
        """Return the sentence for an error; no password is in it."""
        sentence = f"{self.shown} failed to {doing}: {where}{described(error)}."
        for secret in self.options.secrets():
            sentence = sentence.replace(secret, "******")
        return ConnectorError(sentence)


def _engine_of(options: JdbcConnectionOptions) -> Engine:
    """The engine of a URL; a missing client is told with the command that installs it."""
    style: Any = {"paramstyle": "format"} if options.address.get_backend_name() == "postgresql" else {}
    try:
        # A connection is not reset when it is closed: what was not committed is undone by its end.
        return create_engine(
            options.address, poolclass=NullPool, pool_reset_on_return=None, hide_parameters=True, **style
        )
    except (ImportError, NoSuchModuleError) as error:
        backend = options.address.get_backend_name()
        package = error.name if isinstance(error, ImportError) and error.name else f"SQLAlchemy's dialect '{backend}'"
        command = f" with pip install '{_EXTRAS[package]}'" if package in _EXTRAS else ""
        raise ConnectorError(
            f"Databases of {_NAMES.get(backend, backend)} need the package {package}: install it on the driver and on "
            f"the workers{command}."
        ) from error
    except ArgumentError:
        # Not with its words: they may hold a password.
        raise ConfigurationError(f"SQLAlchemy cannot use the URL of {options!r}: correct its parts.") from None


def run_as_is(connection: Connection, sql: str) -> None:
    """Run a statement without parameters as it is, `%` and all."""
    connection.exec_driver_sql(sql, execution_options={"no_parameters": True})


def _fetched(connection: Connection, cursor: Any, count: int) -> list[RowValues]:
    with driver_errors(connection):
        rows = cursor.fetchmany(count)
    return rows if not rows or type(rows[0]) is tuple else list(map(tuple, rows))


def _forget_rest(cursor: Any) -> None:
    """Let PyMySQL not wait for rows that nobody takes, when their connection is closed already."""
    rest: Any = getattr(cursor, "_result", None)
    if hasattr(rest, "unbuffered_active"):
        rest.unbuffered_active = False


def _nulls_first(column: str | None) -> list[str]:
    return [] if column is None else [f"{column} NULLS FIRST"]
