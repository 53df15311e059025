"""The exactly-once JDBC sink when jobs die: each rule of its ledger, and what happens without it.

The tables have no keys, and the statement is a plain INSERT: a row that is written twice shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Types
from rekindle.datastream.connectors.jdbc.commit_ledger import KEPT_TIMELINES, CommitLedger, IntervalNumber, LedgerKey
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.jdbc.interval_target import IntervalTarget
from rekindle.datastream.connectors.sink_api import WriterInitContext
from tests.integration.jdbc.jdbc_jobs import PAIRS, MariaDbTable, PostgresTable, SqliteTable, Table, job_of, table_on
from tests.support.waiting import wait_until
from tools.servers.postgres import PostgresServer

DEADLINE_S = 20.0


class Died(BaseException):
    """The process dies here."""


@pytest.fixture(params=["postgres", "row by row", "sqlite", "mariadb"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return table_on(request.param, request, tmp_path).create()


@pytest.fixture
def pg(postgres: PostgresServer) -> Any:
    return PostgresTable(postgres).create()


@pytest.fixture(params=["postgres", "mariadb"])
def locked(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A table of a database that locks rows, not files."""
    return table_on(request.param, request, tmp_path).create()


def finished_but_not_committed(table: Table, parallelism: int = 1) -> tuple[Any, Any]:
    """A job whose final checkpoint is published, but of which it has not heard."""
    job = job_of(table.exactly_once(), parallelism)
    while not job.finished:
        job.epoch()
    final = job.checkpoint(complete=False)
    assert final.manifest is not None
    return job, final


# -- where a job may die -----------------------------------------------------------------------------------------------

ADVANCE, WRITE, TRANSACTION = CommitLedger.advance, IntervalTarget._write, DatabaseSession.transaction


def before_the_note(patch: pytest.MonkeyPatch) -> None:
    def advance(self: CommitLedger, connection: Any, number: Any) -> bool:
        raise Died

    patch.setattr(CommitLedger, "advance", advance)


def between_note_and_rows(patch: pytest.MonkeyPatch) -> None:
    def write(self: IntervalTarget, connection: Any, number: Any, path: str) -> None:
        raise Died

    patch.setattr(IntervalTarget, "_write", write)


def between_rows_and_commit(patch: pytest.MonkeyPatch) -> None:
    def write(self: IntervalTarget, connection: Any, number: Any, path: str) -> None:
        WRITE(self, connection, number, path)
        raise Died

    patch.setattr(IntervalTarget, "_write", write)


def after_the_commit(patch: pytest.MonkeyPatch) -> None:
    def transaction(self: DatabaseSession, *arguments: Any) -> Any:
        TRANSACTION(self, *arguments)
        raise Died

    patch.setattr(DatabaseSession, "transaction", transaction)


PLACES = [before_the_note, between_note_and_rows, between_rows_and_commit, after_the_commit]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("place", PLACES)
def test_a_job_that_dies_in_its_commit_goes_on_without_loss_or_doubles(
    table: Table, place: Callable[[pytest.MonkeyPatch], None], parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(table.exactly_once(), 2)
    job.checkpoint()
    checkpoint = job.checkpoint(complete=False)
    with monkeypatch.context() as patch:
        place(patch)
        with pytest.raises(Died):
            job.complete(checkpoint)
    job.kill()

    job_of(table.exactly_once(), parallelism, checkpoint).run()

    assert table.rows() == PAIRS


def test_a_job_that_dies_in_its_recovery_recovers_again(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    job, final = finished_but_not_committed(table)
    job.kill()
    for place in PLACES:
        with monkeypatch.context() as patch:
            place(patch)
            with pytest.raises(Died):
                job_of(table.exactly_once(), 1, final)

    job_of(table.exactly_once(), 1, final).run()

    assert table.rows() == PAIRS


def test_two_sinks_of_a_job_have_notes_of_their_own(table: Table) -> None:
    other = type(table)(table.path if isinstance(table, SqliteTable) else table.server).create()  # type: ignore[attr-defined]
    other.ledger = table.ledger
    for each, uid in ((table, "one"), (other, "two")):
        job_of(each.exactly_once(), uid=uid).run()
    assert table.rows() == other.rows() == PAIRS


# -- zombies -----------------------------------------------------------------------------------------------------------


def test_a_zombie_that_wakes_up_after_the_recovery_writes_nothing(table: Table) -> None:
    zombie, final = finished_but_not_committed(table)
    job_of(table.exactly_once(), 1, final).run()
    zombie.complete(final)
    assert table.rows() == PAIRS


@pytest.mark.parametrize("zombie_succeeds", [True, False])
def test_a_recovery_waits_for_a_zombie_inside_its_commit_and_then_knows(
    locked: PostgresTable | MariaDbTable, zombie_succeeds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zombie has written its rows, not committed them, when the recovery begins."""
    zombie, final = finished_but_not_committed(locked)
    asleep, awake = threading.Event(), threading.Event()
    sleeper: list[threading.Thread] = []

    def write(self: IntervalTarget, connection: Any, number: Any, path: str) -> None:
        WRITE(self, connection, number, path)
        if threading.current_thread() in sleeper:
            asleep.set()
            assert awake.wait(DEADLINE_S)
            if not zombie_succeeds:
                raise RuntimeError("the zombie fails after all")

    monkeypatch.setattr(IntervalTarget, "_write", write)
    failed: list[Exception] = []

    def wake_up() -> None:
        try:
            zombie.complete(final)
        except Exception as error:
            failed.append(error)

    sleeper.append(threading.Thread(target=wake_up))
    sleeper[0].start()
    assert asleep.wait(DEADLINE_S)
    recovery = threading.Thread(target=lambda: job_of(locked.exactly_once(), 1, final).run())
    recovery.start()
    wait_until(lambda: locked.waits_for_a_lock(locked.ledger), "the recovery waits for the zombie's row", DEADLINE_S)
    awake.set()
    for thread in (sleeper[0], recovery):
        thread.join(DEADLINE_S)

    assert len(failed) == (0 if zombie_succeeds else 1)
    assert locked.rows() == PAIRS


# -- the ledger --------------------------------------------------------------------------------------------------------


def test_the_ledger_has_one_row_per_subtask_however_long_the_job_runs(table: Table) -> None:
    job = job_of(table.exactly_once(), 2, max_records=1)
    for _ in range(6):
        job.checkpoint()
    notes = table.query(f"SELECT sink, subtask, interval_count FROM {table.ledger}")
    assert [(subtask, count) for _, subtask, count in sorted(notes)] == [(0, 3), (1, 3)]
    job.close()


def test_the_ledger_forgets_the_oldest_timelines_of_its_own_sink(table: Table) -> None:
    sink: Any = table.exactly_once()
    for sink_uid, timelines in (("other", 1), ("sink", KEPT_TIMELINES + 5)):
        for number in range(timelines):
            context = WriterInitContext(uid=sink_uid, timeline=f"{number:08d}-0a1b2c3d")
            sink.create_writer(context)
    sink.create_committer(context).sweep()
    left = table.query(f"SELECT sink, timeline FROM {table.ledger}")
    assert len(left) == KEPT_TIMELINES + 1
    assert ("/sink", "00000000-0a1b2c3d") not in left
    assert ("/sink", context.timeline) in left
    assert ("/other", "00000000-0a1b2c3d") in left
    sink._target(context).close()


def test_a_lost_ledger_is_told_because_without_it_rows_could_be_doubled(table: Table) -> None:
    job, final = finished_but_not_committed(table)
    job.complete(final)
    job.kill()
    table.query(f"DELETE FROM {table.ledger}")

    with pytest.raises(Exception) as caught:
        job_of(table.exactly_once(), 1, final)

    assert f"The ledger table '{table.ledger}'" in str(caught.value.__cause__)
    assert "bring the ledger back together with the tables" in str(caught.value.__cause__)
    assert table.rows() == PAIRS


# -- broken on purpose, one rule at a time -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", [between_note_and_rows, between_rows_and_commit])
def test_with_the_note_in_a_transaction_of_its_own_rows_are_lost(
    pg: PostgresTable, place: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(self: IntervalTarget, number: IntervalNumber, path: str) -> bool:
        noted = self.session.transaction(lambda connection: self.ledger.advance(connection, number), "note")
        if noted:
            self.session.transaction(lambda connection: self._write(connection, number, path), "write")
        return bool(noted)

    monkeypatch.setattr(IntervalTarget, "commit", commit)
    job, final = finished_but_not_committed(pg)
    with monkeypatch.context() as patch:
        place(patch)
        with pytest.raises(Died):
            job.complete(final)
    job.kill()

    job_of(pg.exactly_once(), 1, final).run()

    assert pg.rows() == []


def test_without_the_note_rows_are_doubled(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommitLedger, "advance", lambda self, connection, number: True)
    job, final = finished_but_not_committed(table)
    job.complete(final)
    job.kill()

    job_of(table.exactly_once(), 1, final).run()

    assert table.rows() == sorted(PAIRS * 2)


def test_with_one_note_for_all_sinks_rows_are_lost(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerKey, "of", staticmethod(lambda context: LedgerKey("all", context.timeline, 0)))
    job_of(table.exactly_once(), 2).run()
    assert len(table.rows()) < len(PAIRS)


# -- the bulk form -----------------------------------------------------------------------------------------------------


def test_the_last_row_of_a_key_counts_also_within_an_interval(postgres: PostgresServer) -> None:
    table = PostgresTable(postgres).create(
        "extra SERIAL, n BIGINT PRIMARY KEY, text VARCHAR(40), day DATE DEFAULT now()"
    )
    records = [(n % 3, f"v{n}") for n in range(24)]
    for kind in (table.exactly_once, table.at_least_once):
        job_of(kind(table.upsert, batch=4), records=records, max_records=100).run()
        assert sorted(table.query(f"SELECT n, text FROM {table.name}")) == [(0, "v21"), (1, "v22"), (2, "v23")]
        table.query(f"DELETE FROM {table.name}")
        table.ledger += "_2"


def test_do_nothing_keeps_the_first_row_of_a_key(postgres: PostgresServer) -> None:
    table = PostgresTable(postgres).create("n BIGINT PRIMARY KEY, text VARCHAR(40)")
    records = [(n % 3, f"v{n}") for n in range(24)]
    job_of(table.exactly_once(f"{table.insert} ON CONFLICT DO NOTHING"), records=records, max_records=100).run()
    assert table.rows() == [(0, "v0"), (1, "v1"), (2, "v2")]


def test_a_type_that_copy_would_read_otherwise_is_written_row_by_row(postgres: PostgresServer) -> None:
    table = PostgresTable(postgres).create("n INTEGER, text VARCHAR(40)")
    kind = Types.TUPLE([Types.DOUBLE(), Types.STRING()])
    job_of(table.exactly_once(type_info=kind), records=[(1.6, "rounded as an assignment rounds")]).run()
    assert table.rows() == [(2, "rounded as an assignment rounds")]


@pytest.mark.parametrize("parent", [True, False])
def test_a_foreign_key_is_checked_before_the_checkpoint_counts(postgres: PostgresServer, parent: bool) -> None:
    parents, table = PostgresTable(postgres).create("n BIGINT PRIMARY KEY"), PostgresTable(postgres)
    parents.query(f"INSERT INTO {parents.name} VALUES (1)")
    table.create(f"n BIGINT REFERENCES {parents.name}, text VARCHAR(40)")
    job = job_of(table.exactly_once(), records=[(1 if parent else 2, "child")])
    if parent:
        job.run()
        assert table.rows() == [(1, "child")]
        return
    with pytest.raises(Exception) as caught:
        job.checkpoint(complete=False)
    assert "violates foreign key constraint" in str(caught.value.__cause__)
    job.kill()


def test_what_was_staged_on_a_lost_connection_is_staged_again(postgres: PostgresServer) -> None:
    """The connection ends between two batches of an interval, and again between barrier and commit."""
    table = PostgresTable(postgres).create()
    job = job_of(table.exactly_once(batch=2, url=f"{postgres.jdbc_url}?ApplicationName={table.name}"))
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{table.name}'"
    job.epoch()
    assert table.query(end) == [(True,)]
    job.epoch()
    checkpoint = job.checkpoint(complete=False)
    assert table.query(end) == [(True,)]
    job.complete(checkpoint)
    assert table.rows() == PAIRS[:9]
    job.run()
    assert table.rows() == PAIRS
