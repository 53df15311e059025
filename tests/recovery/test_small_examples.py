"""The small examples run clean, killed, and restored at another parallelism, with equal output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest

from examples import count_per_key, small, temperature_alarm
from rekindle.datastream import DataStream, StreamExecutionEnvironment
from rekindle.testing import assert_survives
from tests.support.running_program import REPOSITORY, RunningProgram, is_alive, seconds_until_gone

SEED, RECORDS, THRESHOLD = 11, 300, 6.0
DEADLINE_S = 150.0


def alarms(env: StreamExecutionEnvironment) -> DataStream:
    return temperature_alarm.build(env, SEED, RECORDS, THRESHOLD)


def counts(env: StreamExecutionEnvironment) -> DataStream:
    return count_per_key.build(env, SEED, RECORDS)


def expected_of(program: str, records: int) -> list[Any]:
    if program == "count_per_key":
        return list(count_per_key.expected(map(count_per_key.Words(SEED), range(records))))
    readings = map(temperature_alarm.Readings(SEED), range(records))
    return list(temperature_alarm.expected(readings, THRESHOLD))


PROGRAMS: dict[str, Callable[[StreamExecutionEnvironment], DataStream]] = {
    "temperature_alarm": alarms,
    "count_per_key": counts,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_survives_wherever_it_is_cut_at_any_parallelism(program: str) -> None:
    found = assert_survives(PROGRAMS[program], records_per_epoch=60)
    wanted = expected_of(program, RECORDS)
    assert len(wanted) > 20, "too few results to show anything"
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def published(directory: Path) -> int:
    """The id of the newest complete checkpoint."""
    found = (directory / "checkpoints").glob("*/*/chk-*/_metadata")
    return max((int(path.parent.name[4:]) for path in found), default=0)


def wait_for_progress(program: RunningProgram, directory: Path) -> None:
    """Wait for a checkpoint that completes after the call."""
    known, until = published(directory), time.monotonic() + DEADLINE_S
    while published(directory) <= known:
        assert time.monotonic() < until, f"no checkpoint within {DEADLINE_S} s. {program.story()}"
        assert program.running(), f"the program ended too early. {program.story()}"
        Event().wait(0.02)


def kill_a_slot(program: RunningProgram) -> None:
    slots = [slot for slot in program.slots() if is_alive(slot)]
    slots[-1].send_signal(signal.SIGKILL)
    psutil.wait_procs(slots[-1:], timeout=DEADLINE_S)


@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("program", "options"),
    [
        pytest.param(
            "temperature_alarm", ["--readings", "30000", "--threshold", str(THRESHOLD)], marks=pytest.mark.long
        ),
        pytest.param("count_per_key", ["--words", "30000"], marks=pytest.mark.long),
    ],
)
def test_an_example_that_is_killed_and_resumed_writes_each_result_once(
    tmp_path: Path, program: str, options: list[str]
) -> None:
    """A slot dies, then the driver; the program is run again at another parallelism and processes the rest."""
    common = [*options, "--seed", str(SEED), "--interval-ms", "300", "--directory", os.fspath(tmp_path)]
    with RunningProgram(f"examples.{program}", *common, "--rate", "500", "--parallelism", "2") as first:
        wait_for_progress(first, tmp_path)
        kill_a_slot(first)
        wait_for_progress(first, tmp_path)
        family, killed_at = first.processes(), time.monotonic()
        first.send_signal(signal.SIGKILL)
        seconds_until_gone(family, killed_at, DEADLINE_S)
    with RunningProgram(f"examples.{program}", *common, "--resume", "--parallelism", "3") as second:
        assert second.wait(DEADLINE_S) == 0, second.story()
        assert any("They are those of plain Python, each once." in line for line in second.out), second.story()
    assert small.report(os.fspath(tmp_path), expected_of(program, 30_000)) == 0


def test_results_that_differ_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "part-0").write_text('["to",1]\n["to",1]\n')
    (results / ".part-1.inprogress").write_text('["be",1]\n')
    assert small.report(os.fspath(tmp_path), [("to", 1), ("be", 1)]) == 1
    assert "NOT those of plain Python: 1 are missing, 1 are too many." in capsys.readouterr().out


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_says_what_it_can_do(program: str) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", f"examples.{program}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=100)

    assert "--resume" in run("--help").stdout
    refused = run("--parallelism", "0")
    assert refused.returncode == 2
    assert "0 is too little, it must be 1 or more" in refused.stderr
