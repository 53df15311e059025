"""The JDBC sink when its server is killed, when transactions deadlock, and when a lock is held for long."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from rekindle.errors import ConnectorError
from tests.integration.jdbc.jdbc_jobs import (
    PAIRS,
    MariaDbTable,
    PostgresTable,
    RowByRowTable,
    SqliteTable,
    Table,
    job_of,
)
from tests.support.waiting import wait_until
from tools.servers.mariadb import MariaDbServer
from tools.servers.postgres import PostgresServer

DEADLINE_S = 20.0
AWAY_S = 30.0


def test_a_server_that_is_killed_between_barrier_and_commit_is_waited_for(own_postgres: PostgresServer) -> None:
    """Also between records, and for half a minute; the same job goes on, and nothing is lost or doubled."""
    once, again = PostgresTable(own_postgres).create(), PostgresTable(own_postgres)
    again.create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    jobs = [job_of(once.exactly_once(timeout_s=120)), job_of(again.at_least_once(again.upsert, timeout_s=120))]
    waiting = []
    for job in jobs:
        job.checkpoint()
        waiting.append(job.checkpoint(complete=False))
        job.epoch()
    own_postgres.kill()
    back = threading.Timer(AWAY_S, own_postgres.restart)
    back.start()

    for job, checkpoint in zip(jobs, waiting, strict=True):
        job.complete(checkpoint)
        job.run()

    back.join()
    assert once.rows() == again.rows() == PAIRS


@pytest.mark.parametrize("kind", [PostgresTable, MariaDbTable])
def test_a_server_that_stays_away_is_told_and_the_next_run_loses_nothing(
    kind: Callable[[Any], Table], request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("own_postgres" if kind is PostgresTable else "own_mariadb")
    table = kind(server).create()
    job = job_of(table.exactly_once(timeout_s=1))
    checkpoint = job.checkpoint(complete=False)
    server.kill()
    with pytest.raises(Exception) as caught:
        job.complete(checkpoint)
    assert "failed to answer within 1 s" in str(caught.value.__cause__)
    job.kill()
    server.restart()
    job_of(table.exactly_once(), 1, checkpoint).run()
    assert table.rows() == PAIRS


@pytest.mark.parametrize(("kind", "form"), [("at_least_once", RowByRowTable), ("exactly_once", PostgresTable)])
def test_a_deadlock_is_tried_again(
    postgres: PostgresServer, kind: str, form: type[PostgresTable], caplog: pytest.LogCaptureFixture
) -> None:
    """The sink's transaction has row 1 and wants row 2, the other one has row 2 and wants row 1."""
    table = form(postgres).create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    table.query(f"INSERT INTO {table.name} VALUES (1, 'old'), (2, 'old')")
    sink = getattr(table, kind)(table.upsert)
    job = job_of(sink, records=[(1, "new"), (2, "new")], max_records=10)
    with psycopg.connect(postgres.conninfo) as other:
        # Whoever looks first is the victim: the sink looks after a second.
        other.execute("SET deadlock_timeout = '10s'")
        other.execute(f"UPDATE {table.name} SET text = 'other' WHERE n = 2")
        running = threading.Thread(target=job.run)
        running.start()
        wait_until(lambda: table.waits_for_a_lock(table.name), "the sink waits for row 2", DEADLINE_S, pause_s=0.005)
        other.execute(f"UPDATE {table.name} SET text = 'other' WHERE n = 1")
    running.join(DEADLINE_S)
    assert not running.is_alive()
    assert table.rows() == [(1, "new"), (2, "new")]
    assert "(40P01). (try 1)" in caplog.text


@pytest.mark.parametrize("kind", ["at_least_once", "exactly_once"])
def test_a_deadlock_on_mariadb_is_tried_again(
    mariadb: MariaDbServer, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As above; the other transaction has written more, so the sink's is the victim."""
    table = MariaDbTable(mariadb).create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    table.query(f"INSERT INTO {table.name} VALUES " + ", ".join(f"({n}, 'old')" for n in range(50)))
    job = job_of(getattr(table, kind)(table.upsert), records=[(1, "new"), (2, "new")], max_records=10)
    other = mariadb.connect()
    with other.cursor() as cursor:
        cursor.execute(f"UPDATE {table.name} SET text = 'other' WHERE n >= 2")
        running = threading.Thread(target=job.run)
        running.start()
        waiting = f"SELECT 1 FROM information_schema.innodb_trx WHERE trx_query LIKE '%{table.name}%'"
        wait_until(
            lambda: table.query(f"{waiting} AND trx_state = 'LOCK WAIT'"), "the sink waits for row 2", DEADLINE_S
        )
        cursor.execute(f"UPDATE {table.name} SET text = 'other' WHERE n = 1")
    other.commit()
    other.close()
    running.join(DEADLINE_S)
    assert not running.is_alive()
    assert table.rows()[1:3] == [(1, "new"), (2, "new")]
    assert "(1213). (try 1)" in caplog.text


@pytest.mark.parametrize("kind", ["at_least_once", "exactly_once"])
def test_a_connection_that_mariadb_ends_is_opened_again(mariadb: MariaDbServer, kind: str) -> None:
    table = MariaDbTable(mariadb).create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    job = job_of(getattr(table, kind)(table.upsert))
    checkpoint = job.checkpoint(complete=False)
    connections = table.query("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()")
    for (number,) in connections:
        table.query(f"KILL {number}")
    assert connections
    job.complete(checkpoint)
    job.run()
    assert table.rows() == PAIRS


@pytest.mark.parametrize("kind", ["at_least_once", "exactly_once"])
def test_a_serialization_failure_is_tried_again(
    postgres: PostgresServer, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = PostgresTable(postgres).create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    table.query(f"INSERT INTO {table.name} VALUES (1, 'old')")
    options = quote("-c default_transaction_isolation=serializable")
    sink = getattr(table, kind)(table.upsert, url=f"{postgres.jdbc_url}?options={options}")
    job = job_of(sink, records=[(1, "new")])
    with psycopg.connect(postgres.conninfo) as other:
        other.execute(f"UPDATE {table.name} SET text = 'other' WHERE n = 1")
        running = threading.Thread(target=job.run)
        running.start()
        wait_until(lambda: table.waits_for_a_lock(table.name), "the sink waits for row 1", DEADLINE_S)
    running.join(DEADLINE_S)
    assert table.rows() == [(1, "new")]
    assert "(40001). (try 1)" in caplog.text


def test_a_connection_that_the_server_ends_is_opened_again(postgres: PostgresServer) -> None:
    table = PostgresTable(postgres).create()
    job = job_of(table.exactly_once(url=f"{postgres.jdbc_url}?ApplicationName={table.name}"))
    checkpoint = job.checkpoint(complete=False)
    ended = table.query(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{table.name}'"
    )
    assert ended == [(True,)]
    job.complete(checkpoint)
    job.run()
    assert table.rows() == PAIRS


def test_refusals_are_not_tried_again(postgres: PostgresServer, caplog: pytest.LogCaptureFixture) -> None:
    table = PostgresTable(postgres).create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    writer: Any = table.at_least_once(batch=1000).create_writer(None)  # type: ignore[arg-type]
    for _ in range(2):
        writer.write((1, "a"), None)
    with pytest.raises(ConnectorError, match="violates unique constraint"):
        writer.flush(False)
    assert "(try 1)" not in caplog.text
    writer.close()


def test_a_locked_sqlite_file_is_waited_for(tmp_path: Path) -> None:
    table: Any = SqliteTable(tmp_path / "pairs.db").create()
    job = job_of(table.exactly_once())
    other = sqlite3.connect(table.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release: Callable[[], Any] = lambda: other.execute("COMMIT")  # noqa: E731
    later = threading.Timer(0.3, release)
    later.start()
    job.run()
    later.join()
    other.close()
    assert table.rows() == PAIRS
