"""The table as one subtask of an exactly-once sink sees it: intervals are checked, then committed with the ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rekindle.datastream.connectors.jdbc.commit_ledger import Ledger
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.datastream.connectors.jdbc.database_session import RollBack, Session
from rekindle.datastream.connectors.jdbc.interval_number import IntervalNumber
from rekindle.datastream.connectors.jdbc.jdbc_sink_settings import JdbcSinkSettings
from rekindle.datastream.connectors.jdbc.row_file import read_rows

T = TypeVar("T")


class IntervalTarget:
    """Runs the statement for each row: once for a check that is rolled back, once for the commit."""

    def __init__(self, settings: JdbcSinkSettings, session: Session, ledger: Ledger) -> None:
        self.settings = settings
        self.session = session
        self.ledger = ledger
        self._database = session.database
        self._last_rows: list[RowValues] = []

    def stage(self, number: IntervalNumber, rows: list[RowValues]) -> None:
        """Hear of rows that were added to an interval."""
        self._stage(number, rows)

    def check(self, number: IntervalNumber, path: str) -> None:
        """Let the database refuse an interval's rows now, without effects.

        After the checkpoint counts, rows that the database refuses would fail every restart.
        """
        self._check(number, path)

    def commit(self, number: IntervalNumber, path: str) -> bool:
        """Write the interval's rows and note them in the ledger, in one transaction; False if they are noted already.

        The note comes first, because it locks out every other process that commits the same interval.
        """

        def write_once(connection: Any) -> bool:
            if not self.ledger.advance(connection, number):
                return False
            self._write(connection, number, path)
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

    def _transaction(self, work: Callable[[Any], T], doing: str) -> T | None:
        sql = self.settings.sql
        return self.session.transaction(
            work,
            f"{doing} the rows of a checkpoint for {self.settings.target}",
            lambda connection: self._database.value_that_does_not_fit(connection, sql, self._last_rows),
        )
