"""Finds the value that a database refused: it names neither the row nor, often, the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, ProgrammingError

from rekindle.datastream.connectors.jdbc.database import Database, RowValues
from rekindle.datastream.connectors.jdbc.database_errors import refuses_row
from rekindle.datastream.connectors.jdbc.statements import insert_shape

_TYPES = """
SELECT attname, atttypid::regtype::text, CASE WHEN atttypid IN ('varchar'::regtype, 'bpchar'::regtype)
  THEN atttypmod - 4 END
FROM pg_attribute WHERE attrelid = ?::regclass AND attnum > 0
"""
_LONGEST = 60


class _Undo(Exception):
    """Ends a transaction without its effects."""


def refused_value(database: Database, connection: Connection, sql: str, rows: Sequence[RowValues]) -> str:
    """Return a clause such as "value 'abcdef' does not fit column 'code' of table 't' (character varying): ".

    The rows are tried one by one, and undone; then, on PostgreSQL, whose words have no column, the values of the
    refused row, one by one, as their columns' types.
    """
    try:
        row = _refused_row(database, connection, sql, rows)
        if row is None:
            return ""
        return (_refused_column(database, connection, sql, row) or f"of row {_short(row)}") + ": "
    except DBAPIError:
        return ""  # the table changes, or the server goes: the error itself is told


def _refused_row(database: Database, connection: Connection, sql: str, rows: Sequence[RowValues]) -> RowValues | None:
    refused: list[RowValues] = []
    try:
        with database.transaction(connection):
            for row in rows:
                try:
                    with connection.begin_nested():
                        database.execute(connection, sql, row)
                except DBAPIError as error:
                    if not isinstance(error, ProgrammingError) and not refuses_row(error):
                        raise
                    refused.append(row)
                    break
            raise _Undo
    except _Undo:
        return refused[0] if refused else None


def _refused_column(database: Database, connection: Connection, sql: str, row: RowValues) -> str | None:
    shape = insert_shape(sql)
    if shape is None or database.backend != "postgresql":
        return None
    with connection.begin():
        found = database.execute(connection, _TYPES, (shape.table,)).all()
    for name, kind, longest in map(tuple, found):
        if name in shape.bare_columns:
            value = row[shape.bare_columns.index(name)]
            if not _fits(database, connection, value, kind, longest):
                return f"value {_short(value)} does not fit column '{name}' ({kind}) of table '{shape.table}'"
    return None


def _fits(database: Database, connection: Connection, value: Any, kind: str, longest: int | None) -> bool:
    if longest is not None and longest >= 0:
        return value is None or len(str(value)) <= longest
    try:
        with connection.begin():
            database.execute(connection, f"SELECT CAST(? AS {kind})", (value,))
    except DBAPIError:
        return False
    return True


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
