"""Drivers that die and are run again, and two drivers that claim the same job."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path
from threading import Event

import psutil
import pytest

from rekindle.crash_points import CRASH_AT, CRASH_ONCE
from tests.recovery.driver_commits import DEADLINE_S, wait_for_commits
from tests.recovery.programs.matrix import KEYS, expected
from tests.recovery.programs.staged_lines import committed
from tests.support.running_program import RunningProgram

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SEED = int(os.environ.get("REKINDLE_TEST_SEED", "11"))
PROGRAM = "tests.recovery.programs.matrix"


def timelines(directory: Path) -> list[Path]:
    return sorted((directory / "checkpoints" / "job").glob("0*"))


@pytest.mark.long
def test_a_killed_driver_is_resumed_from_latest(tmp_path: Path) -> None:
    """SIGKILL at a random moment, twice; the program, run again, ends with the output of an undisturbed run (I14)."""
    print(f"REKINDLE_TEST_SEED={SEED}")
    chance = random.Random(SEED)
    order = "job,rounds=20,resume=latest"
    for _ in range(2):
        with RunningProgram(PROGRAM, os.fspath(tmp_path), order) as program:
            wait_for_commits(program, tmp_path, 1)
            Event().wait(chance.uniform(0.0, 0.6))
            program.send_signal(signal.SIGKILL)
            assert program.wait() == -signal.SIGKILL
    with RunningProgram(PROGRAM, os.fspath(tmp_path), order) as program:
        assert program.wait() == 0, program.story()
    assert committed(tmp_path / "job") == expected(20)
    assert len(timelines(tmp_path)) >= 2, "it never had to resume"


def assert_each_once(directory: Path) -> None:
    """The job's length depends on when it was told to end; but every key counted from 1, without a gap."""
    output = committed(directory / "job")
    assert output == sorted((key, count) for key in range(KEYS) for count in range(1, len(output) // KEYS + 1))


def assert_lost_ownership(program: RunningProgram) -> None:
    """The driver has stopped with a sentence that names the new owner of the job."""
    assert program.wait(DEADLINE_S) == 1, program.story()
    # Spark's own processes may say something after it, while they end.
    sentence = "OwnershipLostError: The checkpoints of job 'job' at "
    said = next((line for line in program.errors if sentence in line), None)
    assert said is not None, program.story()
    assert " now belong to the driver " in said
    assert " so this driver stops" in said


@pytest.mark.long
def test_the_older_of_two_living_drivers_stops(tmp_path: Path) -> None:
    """I14: once the second driver has claimed the job, the first can neither publish nor commit."""
    order = f"job,rounds=100000,until={tmp_path / 'go'},resume=latest"
    with RunningProgram(PROGRAM, os.fspath(tmp_path), order) as older:
        wait_for_commits(older, tmp_path, 1)
        with RunningProgram(PROGRAM, os.fspath(tmp_path), order) as newer:
            assert_lost_ownership(older)
            wait_for_commits(newer, tmp_path, 2)
            (tmp_path / "go").touch()
            assert newer.wait(DEADLINE_S) == 0, newer.story()
    assert_each_once(tmp_path)


@pytest.mark.long
def test_a_driver_that_was_frozen_wakes_up_to_find_another_one(tmp_path: Path) -> None:
    """I14: all processes of the first driver are stopped while the second takes over; later they change nothing."""
    order = f"job,rounds=100000,until={tmp_path / 'go'},resume=latest"
    with RunningProgram(PROGRAM, os.fspath(tmp_path), order) as older:
        wait_for_commits(older, tmp_path, 2)
        frozen = older.processes()
        for process in frozen:
            process.suspend()
        try:
            with RunningProgram(PROGRAM, os.fspath(tmp_path), order) as newer:
                wait_for_commits(newer, tmp_path, 2)
                for process in frozen:
                    process.resume()
                assert_lost_ownership(older)
                wait_for_commits(newer, tmp_path, 2)
                (tmp_path / "go").touch()
                assert newer.wait(DEADLINE_S) == 0, newer.story()
        finally:
            for process in frozen:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()
    assert_each_once(tmp_path)


def wait_until_it_stands(program: RunningProgram, sign: Path) -> None:
    """Wait until the driver has reached the point at which it stops itself."""
    until = time.monotonic() + DEADLINE_S
    process = psutil.Process(program.pid)
    while not (sign.exists() and process.status() == psutil.STATUS_STOPPED):
        assert time.monotonic() < until, f"it never stood still. {program.story()}"
        assert program.running(), f"the program ended too early. {program.story()}"
        Event().wait(0.01)


@pytest.mark.parametrize(
    ("point", "stops"), [pytest.param("before-metadata:2", False, marks=pytest.mark.long), ("before-metadata", True)]
)
def test_what_a_driver_publishes_after_its_successor_has_begun_does_not_count(
    tmp_path: Path, point: str, stops: bool
) -> None:
    """I21: the first driver stops between its check of the claims and `_metadata`. The second begins from the newest
    checkpoint, aborts the other open transactions, and dies before its first checkpoint. Then the first writes its
    `_metadata`. The third begins where the second did: the transactions of the late checkpoint are gone, and the sink
    would not notice it.
    """
    order, sign = "job,sink=Fenced,rounds=6,resume=latest", tmp_path / "stands"
    older_order = f"{order},interval=600000,stop={tmp_path / 'savepoints'}" if stops else order
    stand = {CRASH_AT: f"{point}@driver/stop", CRASH_ONCE: os.fspath(sign)}
    with RunningProgram(PROGRAM, os.fspath(tmp_path), older_order, environment=stand) as older:
        wait_until_it_stands(older, sign)
        die = {CRASH_AT: "before-cut@driver"}
        with RunningProgram(PROGRAM, os.fspath(tmp_path), order, environment=die) as second:
            assert second.wait(DEADLINE_S) == -signal.SIGKILL, second.story()
        older.send_signal(signal.SIGCONT)
        assert older.wait(DEADLINE_S) == 1, older.story()
    came_late = timelines(tmp_path)[0].glob("*/_stopped" if stops else "chk-2/_metadata")
    assert list(came_late), "the first wrote nothing"
    with RunningProgram(PROGRAM, os.fspath(tmp_path), order) as third:
        assert third.wait(DEADLINE_S) == 0, third.story()
    assert committed(tmp_path / "job") == expected(6)
