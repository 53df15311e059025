"""The ledger: a table that says which intervals are committed, in the database that the sink writes (decision 0017).

A row is written by the very transaction that it is about, so it cannot say too much or too little. There is one row per
subtask of a sink and timeline; the writer makes it before its first committable exists. So a row that is not there is
never taken for "not committed".
"""

from __future__ import annotations

from typing import Any

from rekindle.datastream.connectors.jdbc.database import Database
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.jdbc.interval_number import IntervalNumber, LedgerKey
from rekindle.errors import ConnectorError

_COLUMNS = (
    "sink VARCHAR(1000) NOT NULL, timeline VARCHAR(64) NOT NULL, subtask INTEGER NOT NULL, attempt BIGINT NOT NULL, "
    "interval_count BIGINT NOT NULL, touched TIMESTAMP NOT NULL, PRIMARY KEY (sink, timeline, subtask)"
)
_KEY = "sink = ? AND timeline = ? AND subtask = ?"
#: So many restores by hand back, a savepoint can still be restored.
KEPT_TIMELINES = 50


class CommitLedger:
    """One ledger table."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._table = table

    def begin(self, session: DatabaseSession, key: LedgerKey) -> None:
        """Make the table and the row of a writer if they are not there."""
        if not session.transaction(self._exists, f"read the ledger table '{self._table}'"):
            self._make(session)
        columns = "(sink, timeline, subtask, attempt, interval_count, touched)"
        sql = f"INSERT INTO {self._table} {columns} VALUES (?, ?, ?, 0, 0, CURRENT_TIMESTAMP) ON CONFLICT DO NOTHING"
        values = (key.sink, key.timeline, key.subtask)
        session.transaction(
            lambda connection: self._database.execute(connection, sql, values),
            f"write into the ledger table '{self._table}'",
        )

    def advance(self, connection: Any, number: IntervalNumber) -> bool:
        """Note an interval inside its own transaction; False if it, or a later one, is noted already.

        The row is locked until the transaction ends: of two processes that commit the same interval one waits here,
        and then sees the other's note.
        """
        key = (number.key.sink, number.key.timeline, number.key.subtask)
        set_to = "attempt = ?, interval_count = ?, touched = CURRENT_TIMESTAMP"
        older = "(attempt < ? OR (attempt = ? AND interval_count < ?))"
        done = self._database.execute(
            connection,
            f"UPDATE {self._table} SET {set_to} WHERE {_KEY} AND {older}",
            (number.attempt, number.count, *key, number.attempt, number.attempt, number.count),
        )
        if done.rowcount == 1:
            return True
        found = self._database.execute(connection, f"SELECT 1 FROM {self._table} WHERE {_KEY}", key).fetchone()
        if found is None:
            raise ConnectorError(
                f"The ledger table '{self._table}' of {self._database.shown} has no row of subtask "
                f"{number.key.subtask} of sink '{number.key.sink}' in timeline {number.key.timeline}, so "
                "nobody knows whether the checkpoint's rows are in the database already: restore from a newer "
                "checkpoint, or bring the ledger back together with the tables."
            )
        return False

    def forget_old(self, session: DatabaseSession, key: LedgerKey) -> None:
        """Remove the rows of this sink's oldest timelines: those of the newest ones stay, and always this one's."""
        newest = (
            f"SELECT timeline FROM (SELECT timeline, MAX(touched) AS last_touched FROM {self._table} WHERE sink = ? "
            f"GROUP BY timeline ORDER BY last_touched DESC, timeline DESC LIMIT {KEPT_TIMELINES}) AS newest"
        )
        sql = f"DELETE FROM {self._table} WHERE sink = ? AND timeline <> ? AND timeline NOT IN ({newest})"
        session.transaction(
            lambda connection: self._database.execute(connection, sql, (key.sink, key.timeline, key.sink)),
            f"remove old rows of the ledger table '{self._table}'",
        )

    # -- making -------------------------------------------------------------------------------------------------------

    def _exists(self, connection: Any) -> bool:
        """Look before making: a user without the right to create tables may use one that is there."""
        try:
            with self._database.savepoint(connection):
                self._database.execute(connection, f"SELECT 1 FROM {self._table} WHERE 1 = 0")
        except self._database.errors as error:
            if self._database.is_missing_table(error):
                return False
            raise
        return True

    def _make(self, session: DatabaseSession) -> None:
        def make(connection: Any) -> None:
            self._database.execute(connection, f"CREATE TABLE IF NOT EXISTS {self._table} ({_COLUMNS})")

        try:
            session.transaction(make, f"create the ledger table '{self._table}', in which the sink notes its commits")
        except ConnectorError:
            # PostgreSQL refuses all but one of those who create the same table at the same time.
            if not session.transaction(self._exists, f"read the ledger table '{self._table}'"):
                raise
