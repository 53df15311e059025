"""Jobs with a JDBC sink that run in the test process, epoch by epoch, and what they have written."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rekindle.common import Types
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob
from tools.servers.mariadb import MariaDbServer
from tools.servers.postgres import PostgresServer

PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])
PAIRS = [(number, f"v{number}") for number in range(24)]


class Table:
    """A table of numbers and texts in a database, with a ledger of its own."""

    def __init__(self, url: str, user: str | None = None, password: str | None = None) -> None:
        self.name = f"pairs_{uuid.uuid4().hex[:12]}"
        self.ledger = f"{self.name}_ledger"
        self._url, self._user, self._password = url, user, password

    def options(self, timeout_s: int = 20, **given: Any) -> JdbcConnectionOptions:
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(given.get("url", self._url))
        if self._user is not None:
            builder.with_user_name(self._user).with_password(given.get("password") or self._password or "")
        return builder.with_connection_check_timeout_seconds(timeout_s).build()

    @property
    def insert(self) -> str:
        return f"INSERT INTO {self.name} (n, text) VALUES (?, ?)"

    @property
    def upsert(self) -> str:
        return f"{self.insert} ON CONFLICT (n) DO UPDATE SET text = EXCLUDED.text"

    def at_least_once(self, sql: str | None = None, *, batch: int = 5, type_info: Any = PAIR, **given: Any) -> JdbcSink:
        interval_ms = given.pop("interval_ms", 0)
        execution = JdbcExecutionOptions.builder().with_batch_size(batch).with_batch_interval_ms(interval_ms).build()
        return JdbcSink.sink(sql or self.insert, type_info, self.options(**given), execution)

    def exactly_once(self, sql: str | None = None, *, batch: int = 5, type_info: Any = PAIR, **given: Any) -> JdbcSink:
        execution = JdbcExecutionOptions.builder().with_batch_size(batch).build()
        builder = JdbcExactlyOnceOptions.builder().with_ledger_table(self.ledger)
        ledger = builder.with_refused_rows(given.pop("refused_rows", "fail")).build()
        return JdbcSink.exactly_once_sink(sql or self.insert, type_info, self.options(**given), execution, ledger)

    def create(self, columns: str = "n BIGINT, text VARCHAR(40)") -> Any:
        self.query(f"CREATE TABLE {self.name} ({columns})")
        return self

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.query(f"SELECT * FROM {self.name}"))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError


class SqliteTable(Table):
    def __init__(self, path: Any) -> None:
        self.path = path
        super().__init__(f"jdbc:sqlite:{path}")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.path, timeout=20)
        try:
            with connection:
                return connection.execute(sql).fetchall()
        finally:
            connection.close()


class PostgresTable(Table):
    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        super().__init__(server.jdbc_url, server.user, server.password)

    def waits_for_a_lock(self, table: str) -> bool:
        """Whether a statement about a table waits for somebody else's transaction."""
        waiting = f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{table}%'"
        return bool(self.query(waiting))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.conninfo) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


class MariaDbTable(Table):
    def __init__(self, server: MariaDbServer) -> None:
        self.server = server
        super().__init__(server.jdbc_url, server.user, server.password)

    @property
    def upsert(self) -> str:
        return f"{self.insert} ON DUPLICATE KEY UPDATE text = VALUES(text)"

    def waits_for_a_lock(self, table: str) -> bool:
        """Whether a statement about a table waits for somebody else's transaction."""
        # InnoDB shows the same again to those who ask more often than each tenth of a second.
        time.sleep(0.15)
        waiting = f"trx_query LIKE '%{table}%' AND trx_state = 'LOCK WAIT'"
        return bool(self.query(f"SELECT 1 FROM information_schema.innodb_trx WHERE {waiting}"))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        connection = self.server.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                found = list(cursor.fetchall())
            connection.commit()
            return found
        finally:
            connection.close()


def table_on(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A table of a database: 'sqlite', 'mariadb', 'postgres', or 'row by row', which is PostgreSQL without COPY."""
    if database == "sqlite":
        return SqliteTable(tmp_path / "pairs.db")
    if database == "mariadb":
        return MariaDbTable(request.getfixturevalue("mariadb"))
    form = RowByRowTable if database == "row by row" else PostgresTable
    return form(request.getfixturevalue("postgres"))


class RowByRowTable(PostgresTable):
    """A table whose statements have no bulk form."""

    @property
    def insert(self) -> str:
        return f"INSERT INTO {self.name} (n, text) SELECT ?, ? WHERE true"


def job_of(
    sink: Any,
    parallelism: int = 1,
    restore: Any = None,
    *,
    records: Sequence[Any] = PAIRS,
    max_records: int = 3,
    uid: str = "sink",
) -> InProcessJob:
    """The job records -> sink; an epoch writes three records from each subtask of the source."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.enable_checkpointing(1000)
    env.from_collection(list(records)).add_sink(sink).uid(uid)
    plan = build_plan(env._program("jdbc sink"))
    env.close()
    return InProcessJob(plan, max_records=max_records, restore=restore)
