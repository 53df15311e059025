"""The table as one subtask of an exactly-once sink sees it: intervals are checked, then committed with the ledger."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

from rekindle.datastream.connectors.jdbc.commit_ledger import CommitLedger
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession, RollBack
from rekindle.datastream.connectors.jdbc.interval_number import IntervalNumber
from rekindle.datastream.connectors.jdbc.row_file import read_rows
from rekindle.datastream.connectors.jdbc.sink_settings import JdbcSinkSettings
from rekindle.errors import ConnectorError

_LOG = logging.getLogger("rekindle.jdbc")
T = TypeVar("T")


class IntervalTarget:
    """Runs the statement for each row: once for a check that is rolled back, once for the commit."""

    def __init__(
        self, settings: JdbcSinkSettings, session: DatabaseSession, ledger: CommitLedger, *, drops_refused: bool = False
    ) -> None:
        self.settings = settings
        self._drops_refused = drops_refused
        self.session = session
        self.ledger = ledger
        self._database = session.database
        self._last_rows: list[RowValues] = []

    def stage(self, number: IntervalNumber, rows: list[RowValues]) -> None:
        """Hear of rows that were added to an interval."""
        self._stage(number, rows)

    def check(self, number: IntervalNumber, path: str) -> None:
        """Let the database refuse an interval's rows now, without effects.

        After the checkpoint counts, rows that the database refuses would fail every restart. It cannot see what other
        subtasks and intervals will have written by then: `commit` has the last word.
        """
        self._check(number, path)

    def commit(self, number: IntervalNumber, path: str) -> bool:
        """Write the interval's rows and note them in the ledger, in one transaction; False if they are noted already.

        The note comes first, because it locks out every other process that commits the same interval.
        """
        try:
            return self._commit(number, lambda connection: self._write(connection, number, path))
        except ConnectorError as refusal:
            cause = refusal.__cause__
            if not isinstance(cause, self._database.errors) or not self._database.refuses_row(cause):
                raise
            if not self._drops_refused:
                raise ConnectorError(f"{refusal} {_way_out(number)}") from cause
        return self._commit(number, lambda connection: self._write_each(connection, path))

    def _commit(self, number: IntervalNumber, write: Callable[[Any], None]) -> bool:
        def write_once(connection: Any) -> bool:
            if not self.ledger.advance(connection, number):
                return False
            write(connection)
            return True

        return bool(self._transaction(write_once, "commit"))

    def close(self) -> None:
        """Close the connection."""
        self.session.close()

    # -- how rows are written -----------------------------------------------------------------------------------------

    def _stage(self, number: IntervalNumber, rows: list[RowValues]) -> None:
        """Do nothing: the rows are read from the file."""

    def _check(self, number: IntervalNumber, path: str) -> None:
        def trial(connection: Any) -> None:
            self._apply(connection, number, path)
            raise RollBack

        self._transaction(trial, "check")

    def _write(self, connection: Any, number: IntervalNumber, path: str) -> None:
        """Write an interval inside the transaction of its commit."""
        self._apply(connection, number, path)

    def _apply(self, connection: Any, number: IntervalNumber, path: str) -> None:
        for rows in read_rows(path, self.settings.values_type()):
            self._last_rows = rows
            self._database.execute_many(connection, self.settings.sql, rows)

    def _write_each(self, connection: Any, path: str) -> None:
        """Write an interval row by row, and leave out the rows that the database refuses."""
        for rows in read_rows(path, self.settings.values_type()):
            for row in rows:
                try:
                    with self._database.savepoint(connection):
                        self._database.execute(connection, self.settings.sql, row)
                except self._database.errors as error:
                    if not self._database.refuses_row(error):
                        raise
                    told = self._database.told(error, f"write the row {row!r} for {self.settings.target}")
                    _LOG.error("A row is dropped (with_refused_rows): %s", told)

    def _transaction(self, work: Callable[[Any], T], doing: str) -> T | None:
        sql = self.settings.sql
        return self.session.transaction(
            work,
            f"{doing} the rows of a checkpoint for {self.settings.target}",
            lambda connection: self._database.value_that_does_not_fit(connection, sql, self._last_rows),
        )


def _way_out(number: IntervalNumber) -> str:
    """The ways out for rows that passed the check of their subtask, and are in a checkpoint."""
    sink = f"--operator {shlex.quote(number.key.sink.rpartition('/')[2])} --subtask {number.key.subtask + 1}"
    return (
        "The checkpoint has these rows, so every restart tries them again: correct the table, or let the sink leave "
        "out such rows (JdbcExactlyOnceOptions.builder().with_refused_rows('drop')), or take them out of the "
        f"checkpoint with 'rekindle checkpoints take-out CHECKPOINT SAVEPOINT {sink} --into FOLDER' and go on from the "
        "savepoint."
    )
