"""The way of a job at the command line: started detached on Spark, listed, saved, stopped, and run again from there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.running_program import PROGRAM_VARIABLE, PROGRAMS, REPOSITORY, RunningProgram, seconds_until_gone
from tests.support.waiting import wait_until
from tests.unit.cli.conftest import rekindle

TOTAL = 20_000
PER_SECOND = 20
DEADLINE_S = 150.0
PROGRAM = PROGRAMS / "counting.py"


@dataclass(frozen=True)
class Detached:
    """What `rekindle run --detached` has printed, and where the job's checkpoints are."""

    document: dict[str, Any]
    directory: Path

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.document["pid"])


@contextmanager
def none_left(name: str) -> Iterator[str]:
    """End what was started with the marker in its environment, also if its start took too long."""
    marker = f"{name}-{uuid.uuid4().hex}"
    try:
        yield marker
    finally:
        started = [each for each in psutil.process_iter(["environ"]) if is_marked(each, marker)]
        for process in started:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        seconds_until_gone(started, time.monotonic(), DEADLINE_S)


def is_marked(process: psutil.Process, marker: str) -> bool:
    return (process.info["environ"] or {}).get(PROGRAM_VARIABLE) == marker


@pytest.fixture(scope="module")
def detached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Detached]:
    """A job on Spark in a session of its own."""
    directory = tmp_path_factory.mktemp("detached")
    settings = {
        "execution.checkpointing.interval": "500 ms",
        "execution.checkpointing.dir": f"{directory}/checkpoints",
        "execution.checkpointing.savepoint-dir": f"{directory}/savepoints",
        "rest.port": "0",
    }
    options = tuple(part for key, value in settings.items() for part in ("-D", f"{key}={value}"))
    command = ["run", "--detached", "--json", "-p", "1", "--master", "local[1]", *options]
    with none_left(directory.name) as marker:
        # Not in this process: the session that other tests share must not be marked.
        own = {
            PROGRAM_VARIABLE: marker,
            "XDG_RUNTIME_DIR": os.fspath(directory / "run"),
            "XDG_STATE_HOME": os.fspath(directory / "state"),
        }
        answer = subprocess.run(
            [sys.executable, "-m", "rekindle", *command, PROGRAM, str(TOTAL), str(PER_SECOND)],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            env=os.environ | own,
        )
        assert answer.returncode == 0, answer.stderr
        yield Detached(json.loads(answer.stdout), directory)


@pytest.mark.timeout(400)
def test_a_job_is_started_saved_stopped_and_run_again(detached, spark, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.fspath(detached.directory / "run"))
    job_id, driver = detached.document["job-id"], detached.process
    assert os.getsid(driver.pid) == driver.pid  # it outlives this terminal
    (job,) = rekindle("list", "--json").document["jobs"]
    assert (job["jid"], job["name"], job["pid"]) == (job_id, "counting", driver.pid)
    wait_until(lambda: counts()["completed"] > 0, "a checkpoint", DEADLINE_S)

    savepoint = rekindle("savepoint", "counting", "--json").document["savepoint"]
    assert savepoint.startswith(f"file://{detached.directory}/savepoints/")
    listed = rekindle("checkpoints", "list", detached.directory / "checkpoints", "--json").document["checkpoints"]
    assert {each["job-name"] for each in listed} == {"counting"}
    rows = rekindle("state", "query", savepoint, "count", "--json").document["rows"]
    assert {row["key"] for row in rows} <= {0, 1}

    stopped = rekindle("stop", job_id[:8], "--json").document["savepoint"]
    seconds_until_gone([driver], time.monotonic(), DEADLINE_S)
    assert rekindle("list", "--json").document == {"jobs": []}
    assert "[counting] running" in Path(detached.document["log"]).read_text()
    changed = rekindle("state", "diff", savepoint, stopped, "--json").document["operators"]
    assert [each["name"] for each in changed] == ["count"]

    options = ("-D", "rest.port=0", "-D", "rekindle.progress=off", "-p", 1)
    ended = rekindle("run", *options, "-s", stopped, PROGRAM, TOTAL)
    assert ended.code == 0, ended.errors
    # Each number once, whichever run has seen it.
    assert sorted(re.findall(r"parity (\d): (\d+)", ended.out)) == [("0", str(TOTAL // 2)), ("1", str(TOTAL // 2))]
    lost = rekindle("run", *options, "-s", tmp_path / "nowhere", PROGRAM, TOTAL)
    assert lost.code == 3
    assert lost.errors.splitlines()[-1].startswith("rekindle.errors.CheckpointNotFoundError: ")


def counts() -> dict[str, int]:
    document: dict[str, int] = rekindle("watch", "--once", "--json").document["checkpoints"]
    return document


@pytest.mark.timeout(400)
def test_state_is_asked_in_sql(spark, tmp_path):
    from tests.unit.cli.made_checkpoints import make_checkpoints

    made = make_checkpoints(tmp_path)
    sql = "SELECT count(*) AS keys, sum(total) AS total FROM state"
    ended = rekindle("state", "query", made.second, "totals", "--sql", sql, "--json")
    assert ended.document == {"rows": [{"keys": 4, "total": 21}], "more": False}


def without_spark(*arguments: object) -> RunningProgram:
    path = {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    return RunningProgram("command_line_without_spark.py", *map(str, arguments), environment=path)


def test_ctrl_c_cancels_the_job(tmp_path):
    settings = ("-D", f"execution.checkpointing.dir={tmp_path}", "-D", "rest.port=0", "-p", 1)
    with without_spark("run", *settings, PROGRAM, TOTAL, PER_SECOND) as program:
        wait_until(lambda: any("[counting] running" in line for line in program.errors), program.story(), DEADLINE_S)
        program.interrupt()
        assert program.wait() == 130, program.story()
        assert program.errors[-1] == "Interrupted: the program has ended, and its jobs are cancelled."
        assert "Traceback" not in program.story()


def test_a_function_that_fails_shows_its_own_traceback(tmp_path):
    with without_spark("run", "-D", "rekindle.rest.enabled=false", "-p", 1, PROGRAM, -10) as program:
        assert program.wait() == 1, program.story()
        errors = "\n".join(program.errors)
        assert "ValueError: -1 is no number to count\n\nJob 'counting' failed in operator 'count', subtask 1" in errors
        traceback = errors[errors.index("Traceback") :]
        assert traceback.count("Traceback") == 1
        assert "rekindle/cli" not in traceback
