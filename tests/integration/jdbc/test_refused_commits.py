"""Rows that pass the check of their subtask, and that the database refuses when they are committed: the ways out."""

from __future__ import annotations

import json
import logging
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rekindle.checkpoint import take_out_committables
from rekindle.checkpoint.store.local import LocalStore
from rekindle.cli.command_line import app
from rekindle.datastream.connectors.jdbc import rows_of_committable
from rekindle.errors import CheckpointError
from rekindle.testing import StoredCheckpoint
from tests.integration.jdbc.jdbc_jobs import PAIR, SqliteTable, job_of, table_on

#: Each of two subtasks reads a row with the key 1.
FIRST, SECOND = [(1, "first"), (2, "first")], [(1, "second"), (3, "second")]
COLLIDING = [FIRST[0], SECOND[0], FIRST[1], SECOND[1]]
TAKE_OUT = re.compile(
    r"rekindle checkpoints take-out CHECKPOINT SAVEPOINT --operator (?P<uid>\w+) --subtask (?P<subtask>[12]) --into"
)
KEYED = "n BIGINT PRIMARY KEY, text VARCHAR(40)"


@pytest.fixture(params=["postgres", "row by row", "sqlite", "mariadb"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return table_on(request.param, request, tmp_path).create(KEYED)


def refused(table: Any, directory: Path | None = None) -> tuple[Any, str]:
    """A checkpoint with rows of two subtasks that collide, and the error of its commit."""
    job = job_of(table.exactly_once(), 2, records=COLLIDING)
    if directory is not None:
        job._lineage.store = LocalStore(directory)
    checkpoint = job.checkpoint(complete=False)
    with pytest.raises(Exception) as caught:
        job.complete(checkpoint)
    job.kill()
    return checkpoint, str(caught.value.__cause__)


def test_the_error_of_a_refused_commit_says_the_ways_out(table: Any) -> None:
    checkpoint, error = refused(table)
    assert "with_refused_rows('drop')" in error
    assert TAKE_OUT.search(error) is not None
    with pytest.raises(Exception) as caught:  # and a restart meets it again
        job_of(table.exactly_once(), 2, checkpoint, records=COLLIDING)
    assert "take-out" in str(caught.value.__cause__)


def test_a_sink_that_drops_refused_rows_goes_on(table: Any, caplog: pytest.LogCaptureFixture) -> None:
    checkpoint, _ = refused(table)
    with caplog.at_level(logging.ERROR, "rekindle.jdbc"):
        job_of(table.exactly_once(refused_rows="drop"), 2, checkpoint, records=COLLIDING).run()
    written = table.rows()  # whichever subtask commits first
    assert written in ([FIRST[0], FIRST[1], SECOND[1]], [SECOND[0], FIRST[1], SECOND[1]])
    (dropped,) = set(COLLIDING) - set(written)
    assert str(dropped) in caplog.text
    assert caplog.text.count("A row is dropped") == 1


def test_a_statement_that_fails_drops_nothing(table: Any) -> None:
    job = job_of(table.exactly_once(refused_rows="drop"), 1, records=FIRST)
    checkpoint = job.checkpoint(complete=False)
    table.query(f"ALTER TABLE {table.name} RENAME TO {table.name}_away")
    with pytest.raises(Exception) as caught:
        job.complete(checkpoint)
    job.kill()
    assert table.name in str(caught.value.__cause__)
    table.query(f"ALTER TABLE {table.name}_away RENAME TO {table.name}")
    job_of(table.exactly_once(), 1, checkpoint, records=FIRST).run()
    assert table.rows() == FIRST


def test_a_checkpoint_whose_refused_rows_are_taken_out_is_restored(table: Any, tmp_path: Path) -> None:
    checkpoint, error = refused(table, tmp_path / "checkpoints")
    path = f"{tmp_path}/checkpoints/{checkpoint.path}"
    named = TAKE_OUT.search(error)
    assert named is not None
    options = ["--operator", named["uid"], "--subtask", named["subtask"], "--into", str(tmp_path / "out")]

    ended = CliRunner().invoke(app, ["checkpoints", "take-out", path, str(tmp_path / "savepoint"), *options])

    assert ended.exit_code == 0, ended.output
    index = json.loads((tmp_path / "out" / "committables.json").read_text())
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    (taken,) = index["committables"]
    rows = list(rows_of_committable(str(tmp_path / "out" / taken["file"]), PAIR))
    assert (str(taken["subtask"]), taken["metadata"]["rows"]) == (named["subtask"], len(rows))
    assert len({FIRST[0], SECOND[0]} & set(rows)) == 1
    restored = StoredCheckpoint.at(str(tmp_path / "savepoint"))
    job_of(table.exactly_once(), 2, restored, records=COLLIDING).run()
    assert table.rows() == sorted(set(COLLIDING) - set(rows))


def test_committables_that_are_not_there_are_told(tmp_path: Path) -> None:
    table = SqliteTable(tmp_path / "db").create(KEYED)
    checkpoint, _ = refused(table, tmp_path / "checkpoints")
    path = f"{tmp_path}/checkpoints/{checkpoint.path}"
    into, target = str(tmp_path / "out"), str(tmp_path / "savepoint")
    with pytest.raises(CheckpointError, match=r"no such operator, 'orders': .* by its ID: '\w{32}' \(Sink: Writer\)"):
        take_out_committables(path, target, into, operator="orders")
    with pytest.raises(CheckpointError, match="'sink' has no committables in subtask 3"):
        take_out_committables(path, target, into, operator="sink", subtask=2)
    (tmp_path / "out").mkdir()
    with pytest.raises(CheckpointError, match="name a new folder for the committables"):
        take_out_committables(path, target, into, operator="sink")
    assert not (tmp_path / "savepoint").exists() or not list((tmp_path / "savepoint").iterdir())
