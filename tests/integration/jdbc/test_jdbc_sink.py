"""The JDBC sink on PostgreSQL and SQLite: when rows are written, and what it says when something is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Row, Types
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.jdbc.interval_target import IntervalTarget
from rekindle.datastream.connectors.sink_api import WriterInitContext
from rekindle.errors import ConnectorError
from tests.integration.jdbc.jdbc_jobs import (
    PAIRS,
    MariaDbTable,
    PostgresTable,
    RowByRowTable,
    SqliteTable,
    Table,
    job_of,
    table_on,
)
from tests.support.waiting import wait_until
from tools.servers.mariadb import MariaDbServer
from tools.servers.ports import LOOPBACK, free_ports
from tools.servers.postgres import PostgresServer


@pytest.fixture(params=["postgres", "row by row", "sqlite", "mariadb"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return table_on(request.param, request, tmp_path)  # type: ignore[no-any-return]


@pytest.fixture(params=[PostgresTable, RowByRowTable])
def pg(request: pytest.FixtureRequest, postgres: PostgresServer) -> PostgresTable:
    return request.param(postgres)  # type: ignore[no-any-return]


def cause_of(run: Callable[[], Any]) -> str:
    """The sentence with which a job fails."""
    with pytest.raises(Exception) as caught:
        run()
    cause = caught.value.__cause__
    assert isinstance(cause, ConnectorError), repr(cause)
    return str(cause)


# -- at least once -----------------------------------------------------------------------------------------------------


def test_rows_are_written_when_a_batch_is_full_and_at_the_barrier(table: Table) -> None:
    table.create()
    job = job_of(table.at_least_once(batch=5))
    job.epoch()
    assert table.rows() == []
    job.epoch()
    assert table.rows() == PAIRS[:5]
    job.checkpoint(complete=False)
    assert table.rows() == PAIRS[:9], "nothing is pending when the checkpoint counts"
    job.run()
    assert table.rows() == PAIRS


def test_rows_are_written_again_after_a_restart_and_an_upsert_hides_it(table: Table) -> None:
    table.create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    job = job_of(table.at_least_once(table.upsert))
    checkpoint = job.checkpoint()
    job.checkpoint(complete=False)
    job.kill()
    job_of(table.at_least_once(table.upsert), restore=checkpoint).run()
    assert table.rows() == PAIRS


def test_rows_are_written_after_an_interval_without_further_records(table: Table) -> None:
    table.create()
    job = job_of(table.at_least_once(batch=1000, interval_ms=50))
    job.epoch()
    wait_until(lambda: table.rows() == PAIRS[:3], "the interval is over", 20)
    job.run()
    assert table.rows() == PAIRS


def test_an_error_in_the_background_is_raised_by_the_next_call(table: Table) -> None:
    table.create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    table.query(f"INSERT INTO {table.name} VALUES (1, 'other')")
    writer: Any = table.at_least_once(batch=1000, interval_ms=20).create_writer(WriterInitContext())
    writer.write((1, "own"), None)
    wait_until(lambda: writer._failure is not None, "the write in the background fails", 20)

    for next_call in (lambda: writer.write((2, "b"), None), lambda: writer.flush(False)):
        with pytest.raises(ConnectorError, match="failed to write 1 rows") as caught:
            next_call()
        assert "correct the records, or the table's constraints" in str(caught.value)
    writer.close()


def test_types_of_values(table: Table) -> None:
    raw = "BLOB" if isinstance(table, MariaDbTable) else "BYTEA"
    table.create(f"n BIGINT, text VARCHAR(40), exact NUMERIC(10, 2), day DATE, at TIMESTAMP, raw {raw}, flag BOOLEAN")
    kinds = [Types.LONG(), Types.STRING(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIMESTAMP()]
    kind = Types.ROW([*kinds, Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.BOOLEAN()])
    row: tuple[Any, ...] = (
        2**40,
        "ü?%s",
        Decimal("1.50"),
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5),
        b"\x00\xff",
        True,
    )
    nulls = (None,) * 7
    sql = f"INSERT INTO {table.name} VALUES (?, ?, ?, ?, ?, ?, ?) /* '?' */"
    for sink in (table.at_least_once(sql, type_info=kind), table.exactly_once(sql, type_info=kind)):
        job_of(sink, records=[Row(*row), nulls]).run()
    stored = [each for each in table.query(f"SELECT * FROM {table.name}") if each[0] is not None]
    if isinstance(table, SqliteTable):
        row = (2**40, "ü?%s", 1.5, "2026-01-02", "2026-01-02 03:04:05", b"\x00\xff", 1)
    assert stored == [row, row]


# -- what is wrong is told ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["at_least_once", "exactly_once"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_missing_table_is_told_at_the_start(table: Table, kind: str) -> None:
    told = cause_of(lambda: job_of(getattr(table, kind)()))
    assert f"failed to prepare the statement for table '{table.name}'" in told
    assert "create the table, or correct its name" in told


def test_a_missing_column_is_told_at_the_start(pg: PostgresTable, kind: str) -> None:
    pg.create("n BIGINT")
    told = cause_of(lambda: job_of(getattr(pg, kind)()))
    assert 'column "text" of relation' in told
    assert "add the column" in told


def test_a_wrong_password_is_told_without_the_password(
    pg: PostgresTable, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    began = time.monotonic()
    told = cause_of(lambda: job_of(getattr(pg, kind)(password="open barley")))
    assert f"PostgreSQL at {LOOPBACK}:{pg.server.port}/postgres failed to let user 'postgres' in" in told
    assert "check the user name and the password" in told
    assert "barley" not in told + caplog.text
    assert time.monotonic() - began < 10, "it is not tried again"


def test_a_missing_database_is_told(pg: PostgresTable, kind: str) -> None:
    url = pg.server.jdbc_url.replace("/postgres", "/nowhere")
    told = cause_of(lambda: job_of(getattr(pg, kind)(url=url)))
    assert 'database "nowhere" does not exist' in told
    assert "create the database, or correct its name" in told


def test_a_server_that_is_not_there_is_told_within_the_configured_time(pg: PostgresTable, kind: str) -> None:
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    began = time.monotonic()
    told = cause_of(lambda: job_of(getattr(pg, kind)(url=f"jdbc:postgresql://{address}/shop", timeout_s=1)))
    assert f"PostgreSQL at {address}/shop failed to answer within 1 s" in told
    assert "see that the server runs and that the URL names it" in told
    assert time.monotonic() - began < 10


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, kind: str) -> None:
    table = SqliteTable(tmp_path / "nowhere" / "pairs.db")
    told = cause_of(lambda: job_of(getattr(table, kind)()))
    assert f"SQLite at {tmp_path}/nowhere/pairs.db" in told
    assert "see that its folder exists" in told


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("n BIGINT, text VARCHAR(2)", ["value 'v10' does not fit column 'text' (character varying)", "value too long"]),
        ("n SMALLINT, text TEXT", ["value 100000 does not fit column 'n' (smallint)", "out of range"]),
        ("n BIGINT, text INTEGER", ["column 'text' (integer)", "invalid input syntax for type integer"]),
        ("n BIGINT, text TEXT NOT NULL", ["null value in column", "violates not-null constraint"]),
        ("n BIGINT CHECK (n < 10), text TEXT", ["violates check constraint", "correct the records"]),
        ("n BIGINT UNIQUE, text TEXT", ["violates unique constraint", "already exists"]),
    ],
)
def test_a_value_that_does_not_fit_fails_before_the_checkpoint_counts(
    pg: PostgresTable, kind: str, columns: str, words: list[str]
) -> None:
    pg.create(columns)
    records = [(1, "1"), (100000 if "SMALLINT" in columns else 10, None if "NOT NULL" in columns else "v10"), (1, "1")]
    job = job_of(getattr(pg, kind)(), records=records, max_records=10)
    told = cause_of(lambda: job.checkpoint(complete=False))
    assert f"table '{pg.name}'" in told
    for word in words[-1:] if isinstance(pg, RowByRowTable) else words:
        assert word in told
    assert pg.rows() == []
    job.kill()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("n BIGINT, text VARCHAR(2)", ["row (10, 'v10')", "Data too long for column 'text'", "correct the records"]),
        ("n SMALLINT, text TEXT", ["row (100000, 'v10')", "Out of range value for column 'n'", "correct the records"]),
        ("n BIGINT, text INTEGER", ["row (10, 'v10')", "Incorrect integer value", "correct the records"]),
        ("n BIGINT, text TEXT NOT NULL", ["row (10, None)", "Column 'text' cannot be null", "correct the records"]),
        ("n BIGINT CHECK (n < 10), text TEXT", ["row (10, 'v10')", "CONSTRAINT", "correct the records"]),
        ("n BIGINT UNIQUE, text TEXT", ["row (1, '1')", "Duplicate entry", "correct the records"]),
    ],
)
def test_a_value_that_mariadb_refuses_fails_before_the_checkpoint_counts(
    mariadb: MariaDbServer, kind: str, columns: str, words: list[str]
) -> None:
    table = MariaDbTable(mariadb).create(columns)
    records = [(1, "1"), (100000 if "SMALLINT" in columns else 10, None if "NOT NULL" in columns else "v10"), (1, "1")]
    if "UNIQUE" in columns:
        records = [(1, "1"), (1, "1")]
    job = job_of(getattr(table, kind)(), records=records, max_records=10)
    told = cause_of(lambda: job.checkpoint(complete=False))
    for word in (f"table '{table.name}'", *words):
        assert word in told
    assert table.rows() == []
    job.kill()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"password": "open barley"}, ["failed to let user 'rekindle' in", "check the user name and the password"]),
        ({"url": "nowhere"}, ["Unknown database 'nowhere'", "create the database, or correct its name"]),
        ({"url": "away", "timeout_s": 1}, ["failed to answer within 1 s", "see that the server runs"]),
    ],
)
def test_a_mariadb_that_cannot_be_connected_to_is_told(
    mariadb: MariaDbServer, kind: str, given: dict[str, Any], words: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    urls = {
        "nowhere": mariadb.jdbc_url.replace("/shop", "/nowhere"),
        "away": f"jdbc:mariadb://{LOOPBACK}:{free_ports(1)[0]}/shop",
    }
    chosen = {**given, "url": urls.get(given.get("url", ""), mariadb.jdbc_url)}
    began = time.monotonic()
    told = cause_of(lambda: job_of(getattr(MariaDbTable(mariadb), kind)(**chosen)))
    for word in ("MariaDB at", *words):
        assert word in told
    assert "barley" not in told + caplog.text
    assert time.monotonic() - began < 10


def test_names_of_sinks_that_differ_in_case_have_notes_of_their_own(mariadb: MariaDbServer) -> None:
    """MariaDB's texts are equal in small letters and in capitals; those of the ledger are not."""
    tables = [MariaDbTable(mariadb).create(), MariaDbTable(mariadb).create()]
    tables[1].ledger = tables[0].ledger
    for table, uid in zip(tables, ("sink", "SINK"), strict=True):
        job_of(table.exactly_once(), uid=uid).run()
    assert tables[0].rows() == tables[1].rows() == PAIRS


def test_a_table_without_transactions_is_refused_for_exactly_once(mariadb: MariaDbServer) -> None:
    table = MariaDbTable(mariadb)
    table.query(f"CREATE TABLE {table.name} (n BIGINT, text VARCHAR(40)) ENGINE = MyISAM")
    assert "is of the engine MyISAM" in cause_of(lambda: job_of(table.exactly_once()))
    job_of(table.at_least_once()).run()
    assert table.rows() == PAIRS


def test_without_the_check_at_the_barrier_no_restart_helps(pg: PostgresTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IntervalTarget, "stage", lambda self, number, rows: None)
    monkeypatch.setattr(IntervalTarget, "check", lambda self, number, path: None)
    pg.create("n BIGINT, text VARCHAR(2)")
    job = job_of(pg.exactly_once(), records=[(1, "v10")])
    checkpoint = job.checkpoint(complete=False)
    assert checkpoint.manifest is not None
    job.kill()
    for _ in range(2):
        assert "value too long" in cause_of(lambda: job_of(pg.exactly_once(), restore=checkpoint))


def test_a_user_who_may_not_create_the_ledger_is_told(pg: PostgresTable) -> None:
    pg.create()
    role = f"{pg.name}_role"
    pg.query(f"CREATE ROLE {role} LOGIN PASSWORD 'tiger'; GRANT ALL ON {pg.name} TO {role}")
    url = f"{pg.server.jdbc_url}?ApplicationName=x&reWriteBatchedInserts=true"
    limited = PostgresTable(pg.server)
    limited.name, limited.ledger, limited._user, limited._password = pg.name, pg.ledger, role, "tiger"
    told = cause_of(lambda: job_of(limited.exactly_once(url=url)))
    assert f"failed to create the ledger table '{pg.ledger}'" in told
    assert "give this user the right" in told
    job_of(pg.exactly_once(), records=[]).run()  # somebody else makes it
    pg.query(f"GRANT ALL ON {pg.ledger} TO {role}")
    job_of(limited.exactly_once(url=url)).run()
    assert pg.rows() == PAIRS


def test_passwords_are_in_no_repr_and_no_plan(kind: str) -> None:
    in_url = Table("jdbc:postgresql://localhost/shop?user=anna&password=tiger-7&sslpassword=tiger-9")
    beside = Table("jdbc:postgresql://localhost/shop", "anna", "tiger-8")
    for table in (in_url, beside):
        sink = getattr(table, kind)()
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([(1, "a")]).sink_to(sink)
        shown = [repr(sink), str(sink), repr(table.options()), repr(sink._settings), env.get_execution_plan()]
        env.close()
        assert not any("tiger" in text for text in shown)
        assert "anna" in shown[0]
