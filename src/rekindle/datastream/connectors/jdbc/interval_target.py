"""The table as one subtask of an exactly-once sink sees it: intervals are checked, then committed with the ledger.

The rows of a checkpoint interval are in a file; a row that is not of the declared type is told when it is appended.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from rekindle.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from rekindle.datastream.connectors.interval_file import IntervalFile, read_frames
from rekindle.datastream.connectors.jdbc.commit_ledger import CommitLedger, IntervalNumber
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.datastream.connectors.jdbc.database_errors import refuses_row
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession, RollBack
from rekindle.datastream.connectors.jdbc.refused_value import refused_value
from rekindle.datastream.connectors.jdbc.settings import JdbcSinkSettings
from rekindle.errors import ConnectorError
from rekindle.serde import value_codec_for

_LOG = logging.getLogger("rekindle.jdbc")
T = TypeVar("T")


def row_file(path: str, values_type: TypeInformation) -> IntervalFile:
    """Begin an empty file of rows."""
    return IntervalFile(path, value_codec_for(values_type).encode_all, "JDBC")


def read_rows(path: str, values_type: TypeInformation) -> Iterator[list[RowValues]]:
    """Yield the rows of a file in order, frame by frame."""
    codec = value_codec_for(values_type)
    for frame in read_frames(path):
        yield codec.decode_all(frame)


def rows_of_committable(path: str, type_info: RowTypeInfo | TupleTypeInfo) -> Iterator[RowValues]:
    """Yield the rows of a file that `rekindle checkpoints take-out` has taken out; `type_info` is the sink's.

    >>> order = Types.ROW([Types.LONG(), Types.STRING()])
    >>> list(rows_of_committable("taken-out/subtask-2-1", order))  # doctest: +SKIP
    [(1, 'anna')]
    """
    for rows in read_rows(path, Types.TUPLE(type_info.get_field_types())):
        yield from rows


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
            if not refuses_row(refusal.__cause__):
                raise
            if not self._drops_refused:
                raise ConnectorError(f"{refusal} {_way_out(number)}") from refusal.__cause__
        return self._commit(number, lambda connection: self._write_each(connection, path))

    def _commit(self, number: IntervalNumber, write: Callable[[Connection], None]) -> bool:
        def write_once(connection: Connection) -> bool:
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
        def trial(connection: Connection) -> None:
            self._apply(connection, number, path)
            raise RollBack

        self._transaction(trial, "check")

    def _write(self, connection: Connection, number: IntervalNumber, path: str) -> None:
        """Write an interval inside the transaction of its commit."""
        self._apply(connection, number, path)

    def _apply(self, connection: Connection, number: IntervalNumber, path: str) -> None:
        for rows in read_rows(path, self.settings.values_type()):
            self._last_rows = rows
            self._database.execute_many(connection, self.settings.sql, rows)

    def _write_each(self, connection: Connection, path: str) -> None:
        """Write an interval row by row, and leave out the rows that the database refuses."""
        for rows in read_rows(path, self.settings.values_type()):
            for row in rows:
                try:
                    with connection.begin_nested():
                        self._database.execute(connection, self.settings.sql, row)
                except DBAPIError as error:
                    if not refuses_row(error):
                        raise
                    told = self._database.told(error, f"write the row {row!r} for {self.settings.target}")
                    _LOG.error("A row is dropped (with_refused_rows): %s", told)

    def _transaction(self, work: Callable[[Connection], T], doing: str) -> T | None:
        sql = self.settings.sql
        return self.session.transaction(
            work,
            f"{doing} the rows of a checkpoint for {self.settings.target}",
            lambda connection: refused_value(self._database, connection, sql, self._last_rows),
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
