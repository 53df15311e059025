"""`JdbcSink`, under PyFlink's names."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from rekindle.common.typeinfo import RowTypeInfo, TupleTypeInfo
from rekindle.datastream.connectors.jdbc.batch_writer import BatchWriter
from rekindle.datastream.connectors.jdbc.bulk_insert import BulkTarget, bulk_insert_of
from rekindle.datastream.connectors.jdbc.commit_ledger import CommitLedger, LedgerKey
from rekindle.datastream.connectors.jdbc.database import Database
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.jdbc.interval_target import IntervalTarget
from rekindle.datastream.connectors.jdbc.interval_writer import IntervalWriter, LedgerCommitter
from rekindle.datastream.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from rekindle.datastream.connectors.jdbc.settings import JdbcSinkSettings
from rekindle.datastream.connectors.sink_api import (
    Committer,
    CommitterInitContext,
    InitContext,
    Sink,
    SinkWriter,
    SupportsCommitter,
    WriterInitContext,
)
from rekindle.datastream.functions import SinkFunction
from rekindle.errors import GraphError


class JdbcSink(SinkFunction, Sink[Any]):
    """Writes rows into a database with a statement. Make one with `JdbcSink.sink` or `JdbcSink.exactly_once_sink`.

    `add_sink` and `sink_to` both take it.

    >>> from rekindle.common import Types
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> database = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:shop.db").build()
    >>> sink = JdbcSink.sink(
    ...     "INSERT INTO orders (id, total) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET total = EXCLUDED.total",
    ...     Types.ROW([Types.LONG(), Types.DOUBLE()]),
    ...     database,
    ...     JdbcExecutionOptions.builder().with_batch_size(1000).build(),
    ... )
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> added = env.from_collection([(1, 9.5)]).add_sink(sink).name("orders")
    """

    def __init__(self, settings: JdbcSinkSettings) -> None:
        """Do not call directly: use `JdbcSink.sink`."""
        self._settings = settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.target}, {self._settings.connection!r})"

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo | TupleTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Return an at-least-once sink: after a failure rows since the last checkpoint are written again.

        With a statement that writes a row by its key, such as an upsert, that changes nothing.
        """
        execution = jdbc_execution_options or JdbcExecutionOptions.defaults()
        settings = JdbcSinkSettings(sql, type_info, jdbc_connection_options, execution)
        Database(jdbc_connection_options)  # a missing client is told here
        return JdbcSink(settings)

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: RowTypeInfo | TupleTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Return an exactly-once sink: rows are written when their checkpoint is complete, once, whatever fails.

        Rows and a note of the commit are written in one transaction, so any statement will do, and no XA is needed.
        """
        execution = jdbc_execution_options or JdbcExecutionOptions.defaults()
        settings = JdbcSinkSettings(sql, type_info, jdbc_connection_options, execution)
        ledger = jdbc_exactly_once_options or JdbcExactlyOnceOptions.defaults()
        if not isinstance(ledger, JdbcExactlyOnceOptions):
            raise GraphError(f"exactly_once_sink() takes JdbcExactlyOnceOptions, not {type(ledger).__name__}.")
        Database(jdbc_connection_options)  # a missing client is told here
        return ExactlyOnceJdbcSink(settings, ledger)

    def invoke(self, value: Any, context: Any) -> None:
        """Never called: `add_sink` runs `as_sink()`."""
        raise GraphError("A JdbcSink belongs in add_sink() or sink_to().")

    def as_sink(self) -> JdbcSink:
        """Return the sink that `add_sink` runs."""
        return self

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """Return a writer with a connection of its own, after the database has taken the statement."""
        session = self._session()
        bulk = bulk_insert_of(session.database, self._settings)
        if bulk is not None:
            session.prepare = bulk.prepare
        self._check_statement(session)
        return BatchWriter(self._settings, session, bulk)

    def _session(self) -> DatabaseSession:
        settings = self._settings
        return DatabaseSession(Database(settings.connection), settings.execution.max_retries)

    def _check_statement(self, session: DatabaseSession) -> None:
        session.transaction(
            lambda connection: self._check(session.database, connection),
            f"prepare the statement for {self._settings.target}",
        )

    def _check(self, database: Database, connection: Connection) -> None:
        database.check_statement(connection, self._settings.sql)


class ExactlyOnceJdbcSink(JdbcSink, SupportsCommitter[Any]):
    """The sink with a ledger: `JdbcSink.exactly_once_sink` makes it. Writer and committer share a connection."""

    def __init__(self, settings: JdbcSinkSettings, options: JdbcExactlyOnceOptions) -> None:
        """Do not call directly: use `JdbcSink.exactly_once_sink`."""
        super().__init__(settings)
        self._options = options
        self._targets: dict[int, IntervalTarget] = {}

    def create_committer(self, context: CommitterInitContext) -> Committer[Any]:
        """Return a committer."""
        return LedgerCommitter(self._target(context), context)

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """Return a writer, after the ledger has a row for it and the database has taken the statement."""
        target = self._target(context)
        target.ledger.begin(target.session, LedgerKey.of(context))
        self._check_statement(target.session)
        return IntervalWriter(target, context)

    def _check(self, database: Database, connection: Connection) -> None:
        super()._check(database, connection)
        database.check_transactions(connection, self._settings.sql)

    def _target(self, context: InitContext) -> IntervalTarget:
        if context.subtask not in self._targets:
            self._targets[context.subtask] = self._new_target()
        return self._targets[context.subtask]

    def _new_target(self) -> IntervalTarget:
        settings, session = self._settings, self._session()
        ledger = CommitLedger(session.database, self._options.ledger_table)
        drops = self._options.refused_rows == "drop"
        bulk = bulk_insert_of(session.database, settings)
        if bulk is None:
            return IntervalTarget(settings, session, ledger, drops_refused=drops)
        session.prepare = bulk.prepare
        return BulkTarget(settings, session, ledger, bulk, drops_refused=drops)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_targets": {}}
