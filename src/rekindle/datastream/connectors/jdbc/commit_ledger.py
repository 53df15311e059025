"""The ledger: a table that says which intervals are committed, in the database that the sink writes (decision 0017).

A row is written by the very transaction that it is about, so it cannot say too much or too little. There is one row per
subtask of a sink and timeline; the writer makes it before its first committable exists. So a row that is not there is
never taken for "not committed".

Numbers of one subtask's intervals rise: a later attempt has a higher number than an earlier one, and within an attempt
they count its intervals. A restore by hand begins a new timeline, whose numbers are apart (I14).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateTable

from rekindle.datastream.connectors.jdbc.database import Database
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.sink_api import CommittableFile, InitContext
from rekindle.errors import ConnectorError

#: So many restores by hand back, a savepoint can still be restored.
KEPT_TIMELINES = 50


@dataclass(frozen=True)
class LedgerKey:
    """Names a row of the ledger: a subtask of a sink in a timeline.

    >>> LedgerKey.of(InitContext(job_name="shop", uid="orders", timeline="00000001-0a1b2c3d", subtask=2))
    LedgerKey(sink='shop/orders', timeline='00000001-0a1b2c3d', subtask=2)
    """

    sink: str
    timeline: str
    subtask: int

    @staticmethod
    def of(context: InitContext) -> LedgerKey:
        """The key of a writer."""
        return LedgerKey(f"{context.job_name}/{context.uid}", context.timeline, context.subtask)


@dataclass(frozen=True)
class IntervalNumber:
    """Names the rows of one interval for ever."""

    key: LedgerKey
    attempt: int
    count: int

    def committable(self, path: str, rows: int) -> CommittableFile:
        """Return the committable of this interval's file."""
        metadata = {**asdict(self.key), "attempt": self.attempt, "count": self.count, "rows": rows}
        return CommittableFile(path, metadata=metadata)

    @staticmethod
    def of(committable: Any) -> IntervalNumber:
        """Read a committable.

        >>> number = IntervalNumber(LedgerKey("shop/orders", "00000001-0a1b2c3d", 2), 3, 7)
        >>> IntervalNumber.of(number.committable("/scratch/interval-7", 100)) == number
        True
        """
        found = committable.metadata
        key = LedgerKey(found["sink"], found["timeline"], found["subtask"])
        return IntervalNumber(key, found["attempt"], found["count"])


class CommitLedger:
    """One ledger table."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._name = table
        self._table = _table(table, database.backend)

    def begin(self, session: DatabaseSession, key: LedgerKey) -> None:
        """Make the table and the row of a writer if they are not there."""
        if not session.transaction(self._exists, f"read the ledger table '{self._name}'"):
            self._make(session)
        doing = f"write into the ledger table '{self._name}'"
        if session.transaction(lambda connection: self._has_row(connection, key), doing):
            return
        row = self._table.insert().values(**asdict(key), attempt=0, interval_count=0, touched=_now())
        try:
            session.transaction(lambda connection: connection.execute(row), doing)
        except ConnectorError as refusal:
            # A zombie of the same subtask has made it at the same time.
            if not isinstance(refusal.__cause__, IntegrityError):
                raise

    def advance(self, connection: Connection, number: IntervalNumber) -> bool:
        """Note an interval inside its own transaction; False if it, or a later one, is noted already.

        The row is locked until the transaction ends: of two processes that commit the same interval one waits here,
        and then sees the other's note.
        """
        found = self._table.c
        same_attempt = sa.and_(found.attempt == number.attempt, found.interval_count < number.count)
        older = sa.or_(found.attempt < number.attempt, same_attempt)
        note = sa.update(self._table).where(self._is(number.key), older)
        done = connection.execute(
            note.values(attempt=number.attempt, interval_count=number.count, touched=_now())
        ).rowcount
        if done == 1:
            return True
        if done != 0:
            raise ConnectorError(
                f"The driver of {self._database.shown} does not say how many rows an UPDATE has changed, so the sink "
                "cannot write exactly once there: use JdbcSink.sink() with an upsert."
            )
        if not self._has_row(connection, number.key):
            raise ConnectorError(
                f"The ledger table '{self._name}' of {self._database.shown} has no row of subtask "
                f"{number.key.subtask} of sink '{number.key.sink}' in timeline {number.key.timeline}, so "
                "nobody knows whether the checkpoint's rows are in the database already: restore from a newer "
                "checkpoint, or bring the ledger back together with the tables."
            )
        return False

    def forget_old(self, session: DatabaseSession, key: LedgerKey) -> None:
        """Remove the rows of this sink's oldest timelines: those of the newest ones stay, and always this one's."""
        found, last_touched = self._table.c, sa.func.max(self._table.c.touched)
        newest = sa.select(found.timeline).where(found.sink == key.sink).group_by(found.timeline)
        newest = newest.order_by(last_touched.desc(), found.timeline.desc()).limit(KEPT_TIMELINES)
        # One more query around it, because MySQL refuses a limit in a query of IN, and the table that it deletes from.
        kept = sa.select(newest.subquery("newest").c.timeline)
        others = found.sink == key.sink, found.timeline != key.timeline, found.timeline.not_in(kept)
        session.transaction(
            lambda connection: connection.execute(sa.delete(self._table).where(*others)),
            f"remove old rows of the ledger table '{self._name}'",
        )

    def _is(self, key: LedgerKey) -> sa.ColumnElement[bool]:
        return sa.and_(*(self._table.c[name] == value for name, value in asdict(key).items()))

    def _has_row(self, connection: Connection, key: LedgerKey) -> bool:
        return connection.execute(sa.select(sa.literal(1)).where(self._is(key))).first() is not None

    # -- making -------------------------------------------------------------------------------------------------------

    def _exists(self, connection: Connection) -> bool:
        """Look before making: a user without the right to create tables may use one that is there."""
        return sa.inspect(connection).has_table(self._table.name, self._table.schema)

    def _make(self, session: DatabaseSession) -> None:
        try:
            session.transaction(
                lambda connection: connection.execute(CreateTable(self._table)),
                f"create the ledger table '{self._name}', in which the sink notes its commits",
            )
        except ConnectorError:
            # All but one of those who create the same table at the same time are refused.
            if not session.transaction(self._exists, f"read the ledger table '{self._name}'"):
                raise


def _table(name: str, backend: str) -> sa.Table:
    """The table with the types of a database: names of sinks that differ in case only are different everywhere."""
    if backend not in ("mysql", "mariadb"):
        name = name.lower()  # as databases read a name without quotes
    schema, _, bare = name.rpartition(".")
    return sa.Table(
        bare,
        sa.MetaData(),
        sa.Column("sink", _text(1000), primary_key=True),
        sa.Column("timeline", _text(64), primary_key=True),
        sa.Column("subtask", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("interval_count", sa.BigInteger, nullable=False),
        sa.Column("touched", sa.DateTime, nullable=False),
        schema=schema or None,
        mysql_engine="InnoDB",
        mariadb_engine="InnoDB",
    )


def _text(length: int) -> sa.String:
    # A key of MySQL has at most 3,072 bytes, four for a character; one of SQL Server 1,700.
    mysql = sa.String(min(length, 600), collation="utf8mb4_bin")
    mssql = sa.String(length, collation="Latin1_General_BIN2")
    return sa.String(length).with_variant(mysql, "mysql", "mariadb").with_variant(mssql, "mssql")


def _now() -> Any:
    return sa.func.current_timestamp()
