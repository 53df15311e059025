"""Inserts many rows into PostgreSQL at once: COPY into a temporary table, then one INSERT ... SELECT.

Where a statement has the shape for it (`InsertShape`), this is several times as fast as running it for each row. The
temporary table has the types and the constraints of the columns, so a value that does not fit is refused by COPY.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from rekindle.datastream.connectors.jdbc.database import Database, RowValues
from rekindle.datastream.connectors.jdbc.insert_shape import InsertShape, insert_shape
from rekindle.datastream.connectors.jdbc.postgres_database import PostgresDatabase, psycopg_package
from rekindle.datastream.connectors.jdbc.sink_settings import JdbcSinkSettings

_STAGED = "rekindle_staged"
_COLUMNS = """
SELECT attname, atttypid::regtype::text FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
"""
#: The rules that only the insertion itself checks: foreign keys, exclusions, triggers, partitions, row security, keys.
_REFUSES_MORE = """
SELECT relkind <> 'r' OR relrowsecurity
  OR EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = pg_class.oid AND contype IN ('f', 'x'))
  OR EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal)
  OR (SELECT count(*) FROM pg_index WHERE indrelid = pg_class.oid AND indisunique) > %s
FROM pg_class WHERE oid = %s::regclass
"""
_ANY_UNIQUE = 10_000
_WHOLE = frozenset({"smallint", "integer", "bigint", "numeric"})
#: Columns into which the text of a value means the same as the value: else the ordinary form converts it.
_SUITS: dict[Any, frozenset[str] | None] = {
    str: None,  # any column: the server reads the text as the column's type in both forms
    int: _WHOLE,
    float: frozenset({"real", "double precision"}),
    Decimal: frozenset({"numeric"}),
    bool: frozenset({"boolean"}),
    bytes: frozenset({"bytea"}),
    date: frozenset({"date"}),
    time: frozenset({"time without time zone"}),
    datetime: frozenset({"timestamp without time zone", "timestamp with time zone"}),
}


class BulkInsert:
    """The bulk form of a statement on one connection after the other."""

    def __init__(self, psycopg: Any, shape: InsertShape, settings: JdbcSinkSettings) -> None:
        self._psycopg = psycopg
        self._shape = shape
        self._kinds = [kind.python_type() for kind in settings.type_info.get_field_types()]
        #: Whether the present connection can use it.
        self.ready = False
        #: Whether the insertion may refuse what COPY took.
        self.needs_trial = True
        columns = ", ".join(shape.columns)
        select = f"SELECT {columns} FROM {_STAGED}"
        if shape.replaced_by:
            # Of rows with one key the last one counts; they lie in the order in which they came.
            key = ", ".join(shape.replaced_by)
            select = f"SELECT DISTINCT ON ({key}) {columns} FROM {_STAGED} ORDER BY {key}, ctid DESC"
        self._insert = f"INSERT INTO {shape.table} ({columns}) {select} {shape.on_conflict}"
        self._copy = f"COPY {_STAGED} ({columns}) FROM STDIN"

    def prepare(self, connection: Any) -> None:
        """Make the temporary table on a new connection, if the statement's columns are of suitable types."""
        try:
            with connection.transaction():
                self.ready = self._prepared(connection)
        except self._psycopg.OperationalError:
            raise
        except self._psycopg.Error:
            self.ready = False  # the table is missing, or the user may not: the ordinary form tells it

    def _prepared(self, connection: Any) -> bool:
        shape = self._shape
        types: dict[str, str] = dict(connection.execute(_COLUMNS, (shape.table,)).fetchall())
        for name, kind in zip(shape.bare_columns, self._kinds, strict=True):
            suiting = _SUITS.get(kind, frozenset())
            if name not in types or (suiting is not None and types[name] not in suiting):
                return False
        connection.execute(f"CREATE TEMPORARY TABLE {_STAGED} (LIKE {shape.table} INCLUDING CONSTRAINTS)")
        for name in types.keys() - set(shape.bare_columns):
            quoted = name.replace('"', '""')
            connection.execute(f'ALTER TABLE {_STAGED} DROP COLUMN "{quoted}" CASCADE')
        with connection.transaction(force_rollback=True):  # triggers leave nothing
            connection.execute(self._insert)  # no rows yet: the right to insert is checked
        unique = 1 if shape.replaced_by or "(" in shape.on_conflict else _ANY_UNIQUE if shape.on_conflict else 0
        (self.needs_trial,) = connection.execute(_REFUSES_MORE, (unique, shape.table)).fetchone()
        return True

    def clear(self, connection: Any) -> None:
        """Empty the temporary table."""
        connection.execute(f"TRUNCATE {_STAGED}")

    def load(self, connection: Any, rows: Sequence[RowValues]) -> None:
        """Copy rows into the temporary table."""
        with connection.cursor() as cursor, cursor.copy(self._copy) as copy:
            write = copy.write_row
            for row in rows:
                write(row)

    def insert(self, connection: Any) -> None:
        """Insert the rows of the temporary table."""
        connection.execute(self._insert)


def bulk_insert_of(database: Database, settings: JdbcSinkSettings) -> BulkInsert | None:
    """Return the bulk form of a sink's statement, or None if the database or the statement has none."""
    shape = insert_shape(settings.sql)
    if shape is None or not isinstance(database, PostgresDatabase):
        return None
    return BulkInsert(psycopg_package(), shape, settings)
