"""Inserts many rows into PostgreSQL at once: COPY into a temporary table, then one INSERT ... SELECT.

Where a statement has the shape for it (`InsertShape`), this is several times as fast as running it for each row. The
temporary table has the types and the constraints of the columns, so a value that does not fit is refused by COPY.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, OperationalError

from rekindle.datastream.connectors.jdbc.commit_ledger import CommitLedger, IntervalNumber
from rekindle.datastream.connectors.jdbc.database import Database, RowValues, run_as_is
from rekindle.datastream.connectors.jdbc.database_errors import driver_errors
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession, RollBack
from rekindle.datastream.connectors.jdbc.interval_target import IntervalTarget, read_rows
from rekindle.datastream.connectors.jdbc.settings import JdbcSinkSettings
from rekindle.datastream.connectors.jdbc.statements import InsertShape, insert_shape

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

    def __init__(self, shape: InsertShape, settings: JdbcSinkSettings) -> None:
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

    def prepare(self, connection: Connection) -> None:
        """Make the temporary table on a new connection, if the statement's columns are of suitable types."""
        try:
            with connection.begin():
                self.ready = self._prepared(connection)
        except OperationalError:
            raise
        except DBAPIError:
            self.ready = False  # the table is missing, or the user may not: the ordinary form tells it

    def _prepared(self, connection: Connection) -> bool:
        shape = self._shape
        types: dict[str, str] = dict(list(connection.exec_driver_sql(_COLUMNS, (shape.table,))))
        for name, kind in zip(shape.bare_columns, self._kinds, strict=True):
            suiting = _SUITS.get(kind, frozenset())
            if name not in types or (suiting is not None and types[name] not in suiting):
                return False
        run_as_is(connection, f"CREATE TEMPORARY TABLE {_STAGED} (LIKE {shape.table} INCLUDING CONSTRAINTS)")
        for name in types.keys() - set(shape.bare_columns):
            quoted = name.replace('"', '""')
            run_as_is(connection, f'ALTER TABLE {_STAGED} DROP COLUMN "{quoted}" CASCADE')
        undone = connection.begin_nested()  # triggers leave nothing
        run_as_is(connection, self._insert)  # no rows yet: the right to insert is checked
        undone.rollback()
        unique = 1 if shape.replaced_by or "(" in shape.on_conflict else _ANY_UNIQUE if shape.on_conflict else 0
        self.needs_trial = connection.exec_driver_sql(_REFUSES_MORE, (unique, shape.table)).scalar_one()
        return True

    def clear(self, connection: Connection) -> None:
        """Empty the temporary table."""
        run_as_is(connection, f"TRUNCATE {_STAGED}")

    def load(self, connection: Connection, rows: Sequence[RowValues]) -> None:
        """Copy rows into the temporary table, through psycopg's own connection."""
        own: Any = connection.connection.driver_connection
        with driver_errors(connection), own.cursor() as cursor, cursor.copy(self._copy) as copy:
            write = copy.write_row
            for row in rows:
                write(row)

    def insert(self, connection: Connection) -> None:
        """Insert the rows of the temporary table."""
        run_as_is(connection, self._insert)


class BulkTarget(IntervalTarget):
    """Copies rows into a temporary table while they come; the commit inserts them from there.

    The temporary table is gone with its connection, and holds the newest interval only: other intervals are copied
    from their files when they are committed. It locks nothing in the table that the sink writes.
    """

    def __init__(
        self,
        settings: JdbcSinkSettings,
        session: DatabaseSession,
        ledger: CommitLedger,
        bulk: BulkInsert,
        *,
        drops_refused: bool = False,
    ) -> None:
        super().__init__(settings, session, ledger, drops_refused=drops_refused)
        self._bulk = bulk
        self._newest: IntervalNumber | None = None
        #: The interval that is in the temporary table, as far as it has come, and the connection's number.
        self._staged: tuple[IntervalNumber, int] | None = None

    def _stage(self, number: IntervalNumber, rows: list[RowValues]) -> None:
        begins, self._newest = self._newest != number, number

        def load(connection: Connection) -> None:
            if not self._bulk.ready:
                return
            here = (number, self.session.connections)
            if begins:
                self._bulk.clear(connection)
                self._staged = here
            if self._staged == here:
                self._bulk.load(connection, rows)

        self._last_rows = rows
        self._transaction(load, "check")

    def _check(self, number: IntervalNumber, path: str) -> None:
        self.session.open()
        if not self._bulk.ready:
            super()._check(number, path)
        elif self._bulk.needs_trial or self._staged != (number, self.session.connections):

            def trial(connection: Connection) -> None:
                self._apply(connection, number, path)
                raise RollBack

            self._transaction(trial, "check")

    def _apply(self, connection: Connection, number: IntervalNumber, path: str) -> None:
        if not self._bulk.ready:
            super()._apply(connection, number, path)
            return
        if self._staged != (number, self.session.connections):
            # Nothing else may be in it after a rollback either: what was staged before is not trusted any more.
            self._staged = None
            self._bulk.clear(connection)
            for rows in read_rows(path, self.settings.values_type()):
                self._last_rows = rows
                self._bulk.load(connection, rows)
        self._bulk.insert(connection)


def bulk_insert_of(database: Database, settings: JdbcSinkSettings) -> BulkInsert | None:
    """Return the bulk form of a sink's statement, or None if the database or the statement has none."""
    shape = insert_shape(settings.sql)
    if shape is None or database.backend != "postgresql":
        return None
    return BulkInsert(shape, settings)
