"""SQLite, with the standard library's client."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from rekindle.datastream.connectors.jdbc.database import Database, Fault, RowValues
from rekindle.datastream.connectors.jdbc.placeholders import count_placeholders, for_sqlite

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_ADVICE = {
    sqlite3.SQLITE_BUSY: "another program has it locked",
    sqlite3.SQLITE_CANTOPEN: "see that its folder exists and that this user may write there",
    sqlite3.SQLITE_CONSTRAINT: "correct the records, or the table's constraints",
    sqlite3.SQLITE_FULL: "make room on its disk",
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database: correct the path",
    sqlite3.SQLITE_READONLY: "give this user the right to write the file",
}
#: SQLite has no types for these: they are stored as text that sorts as they do.
_AS_TEXT: dict[type, Any] = {
    Decimal: str,
    datetime: lambda value: value.isoformat(" "),
    date: date.isoformat,
    time: time.isoformat,
}


class SqliteDatabase(Database):
    """A file of SQLite. One program writes at a time; the others wait for it."""

    @property
    def shown(self) -> str:
        return f"SQLite at {self.options.address.place}"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error, OverflowError)

    def connect(self, timeout_s: float) -> sqlite3.Connection:
        path = self.options.address.parameters["path"]
        connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    @contextmanager
    def transaction(self, connection: sqlite3.Connection) -> Iterator[None]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def savepoint(self, connection: sqlite3.Connection) -> AbstractContextManager[Any]:
        return nullcontext()  # a statement that fails undoes itself only

    def execute(self, connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        return connection.execute(for_sqlite(sql), tuple(map(_stored, parameters)))

    def execute_many(self, connection: sqlite3.Connection, sql: str, rows: Sequence[RowValues]) -> None:
        connection.executemany(for_sqlite(sql), [tuple(map(_stored, row)) for row in rows])

    def check_statement(self, connection: sqlite3.Connection, sql: str) -> None:
        connection.execute(f"EXPLAIN {for_sqlite(sql)}", (None,) * count_placeholders(sql)).fetchall()

    def fault_of(self, error: Exception) -> Fault:
        return Fault.PASSING if _code(error) in _BUSY else Fault.REFUSED

    def refuses_row(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.IntegrityError | sqlite3.DataError | OverflowError)

    def is_missing_table(self, error: Exception) -> bool:
        return "no such table" in str(error)

    def described(self, error: Exception) -> str:
        advice = _ADVICE.get(_code(error) & 0xFF)
        if self.is_missing_table(error):
            advice = "create the table, or correct its name"
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return f"{str(error).rstrip('.')} ({name}){f'; {advice}' if advice else ''}"

    def stream(
        self, connection: sqlite3.Connection, sql: str, parameters: Sequence[Any], fetch_size: int
    ) -> Iterator[list[RowValues]]:
        # All at once: an open query would keep every writer of the file waiting.
        rows = self.execute(connection, sql, parameters).fetchall()
        for begin in range(0, len(rows), fetch_size):
            yield rows[begin : begin + fetch_size]

    def ordered(self, query: str, column: str | None) -> str:
        width = self._width(query) + (column is not None)
        own = [f"{column} NULLS FIRST"] if column is not None else []
        return "ORDER BY " + ", ".join([*own, *(str(number + 1) for number in range(width))])

    def _width(self, query: str) -> int:
        connection = self.connect(self.options.connection_check_timeout_seconds)
        try:
            cursor = connection.execute(f"SELECT * FROM ({for_sqlite(query)}) LIMIT 0")
            return len(cursor.description)
        finally:
            connection.close()


def _stored(value: Any) -> Any:
    as_text = _AS_TEXT.get(type(value))
    return value if as_text is None else as_text(value)


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) or 0
