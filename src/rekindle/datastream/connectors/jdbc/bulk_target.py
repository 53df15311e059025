"""The target of an exactly-once sink on PostgreSQL whose statement has a bulk form."""

from __future__ import annotations

from typing import Any

from rekindle.datastream.connectors.jdbc.bulk_insert import BulkInsert
from rekindle.datastream.connectors.jdbc.commit_ledger import CommitLedger
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession, RollBack
from rekindle.datastream.connectors.jdbc.interval_number import IntervalNumber
from rekindle.datastream.connectors.jdbc.interval_target import IntervalTarget
from rekindle.datastream.connectors.jdbc.row_file import read_rows
from rekindle.datastream.connectors.jdbc.sink_settings import JdbcSinkSettings


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

        def load(connection: Any) -> None:
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

            def trial(connection: Any) -> None:
                self._apply(connection, number, path)
                raise RollBack

            self._transaction(trial, "check")

    def _apply(self, connection: Any, number: IntervalNumber, path: str) -> None:
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
