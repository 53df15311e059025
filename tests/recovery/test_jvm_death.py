"""The driver's JVM is killed: Rekindle starts its own session again; a job on a borrowed one ends with a sentence."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from threading import Event

import psutil
import pytest

from tests.recovery.driver_commits import wait_for_commits
from tests.recovery.programs.matrix import expected
from tests.recovery.programs.staged_lines import committed
from tests.support.running_program import RunningProgram, seconds_until_gone

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

DRIVER_JVM = "org.apache.spark.deploy.SparkSubmit"
DEADLINE_S = 90.0


def jvm_of(program: RunningProgram, other_than: psutil.Process | None = None) -> psutil.Process:
    """Wait for the driver's JVM, and return it."""
    until = time.monotonic() + DEADLINE_S
    while True:
        found = [each for each in program.java(DRIVER_JVM) if each.info["name"] == "java" and each != other_than]
        if found:
            return found[0]
        assert time.monotonic() < until, f"no JVM within {DEADLINE_S} s. {program.story()}"
        assert program.running(), f"the program ended too early. {program.story()}"
        Event().wait(0.05)


def kill_jvm(program: RunningProgram, other_than: psutil.Process | None = None) -> psutil.Process:
    """Wait for the driver's JVM, and kill it. A JVM that only finds out how to start Spark's may end first."""
    while True:
        found = jvm_of(program, other_than)
        with suppress(psutil.NoSuchProcess):
            found.kill()
            return found


def test_a_job_whose_jvm_is_killed_twice_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Also while the JVM starts: the second kill comes as soon as the process exists."""
    with RunningProgram("tests.recovery.programs.matrix", os.fspath(tmp_path), "job,rounds=8") as program:
        wait_for_commits(program, tmp_path, 1)
        killed = kill_jvm(program)
        kill_jvm(program, other_than=killed)
        assert program.wait() == 0, program.story()
        assert "job: ended" in program.out
        seconds_until_gone(program.processes(), time.monotonic(), DEADLINE_S)
    assert committed(tmp_path / "job") == expected(8)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        pytest.param(
            "borrowed",
            "ClusterGoneError: The Spark session that this program made has ended (its driver's JVM has ended, ",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "dataframe",
            "ClusterGoneError: The job reads a DataFrame of a Spark session that has ended (its driver's JVM",
            marks=pytest.mark.long,
        ),
        (
            "unstartable",
            "ClusterGoneError: Spark could not be started again 10 times in a row: there is no Java for start 10",
        ),
    ],
)
def test_spark_that_cannot_be_had_again_ends_the_job_in_a_sentence(tmp_path: Path, kind: str, sentence: str) -> None:
    with RunningProgram("tests.recovery.programs.lost_spark", kind, os.fspath(tmp_path)) as program:
        program.wait_for_line(f"{kind}: flowing")
        kill_jvm(program)
        said = program.wait_for_line(f"{kind}: ", "Error: ", deadline_s=DEADLINE_S)
        assert said.startswith(f"{kind}: {sentence}"), program.story()
        assert program.wait() == 0, program.story()
