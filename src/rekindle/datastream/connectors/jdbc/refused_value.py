"""Finds the value that PostgreSQL refused: the server names neither the row nor, often, the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.datastream.connectors.jdbc.insert_shape import insert_shape
from rekindle.datastream.connectors.jdbc.placeholders import for_psycopg

_TYPES = """
SELECT attname, atttypid::regtype::text, CASE WHEN atttypid IN ('varchar'::regtype, 'bpchar'::regtype)
  THEN atttypmod - 4 END
FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0
"""
_LONGEST = 60


class _Undo(Exception):
    """Ends a transaction without its effects."""


def refused_value(psycopg: Any, connection: Any, sql: str, rows: Sequence[tuple[Any, ...]]) -> str:
    """Return a clause such as "value 'abcdef' does not fit column 'code' of table 't' (character varying): ".

    The rows are tried one by one, and undone; then the values of the refused row, one by one, as their columns' types.
    """
    try:
        row = _refused_row(psycopg, connection, for_psycopg(sql), rows)
        shape = insert_shape(sql)
        if row is None or shape is None:
            return "" if row is None else f"of row {_short(row)}: "
        for name, kind, longest in _columns(psycopg, connection, shape.table, shape.bare_columns):
            value = row[shape.bare_columns.index(name)]
            if not _fits(psycopg, connection, value, kind, longest):
                return f"value {_short(value)} does not fit column '{name}' ({kind}) of table '{shape.table}': "
    except psycopg.Error:
        return ""  # the table changes, or the server goes: the error itself is told
    return f"of row {_short(row)}: "


def _refused_row(psycopg: Any, connection: Any, sql: str, rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    refused: list[tuple[Any, ...]] = []
    try:
        with connection.transaction():
            for row in rows:
                try:
                    with connection.transaction():
                        connection.execute(sql, row)
                except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError):
                    refused.append(row)
                    break
            raise _Undo
    except _Undo:
        return refused[0] if refused else None


def _columns(psycopg: Any, connection: Any, table: str, names: Sequence[str]) -> list[tuple[str, str, int | None]]:
    with connection.transaction():
        found = connection.execute(_TYPES, (table,)).fetchall()
    return [each for each in found if each[0] in names]


def _fits(psycopg: Any, connection: Any, value: Any, kind: str, longest: int | None) -> bool:
    if longest is not None and longest >= 0:
        return value is None or len(str(value)) <= longest
    try:
        with connection.transaction():
            connection.execute(f"SELECT CAST(%s AS {kind})", (value,))
    except psycopg.Error:
        return False
    return True


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
