"""A process of a job dies, freezes or is interrupted: no process outlives the job, and the driver reports the cause."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.support.running_program import RunningProgram, is_alive, seconds_until_gone, stopped

pytestmark = pytest.mark.timeout(300)

# On a free core slots are gone in 0.3 s and errors are reported within 2 s. Other tests share the cores: these bounds
# only tell a noticed end from a missing heartbeat (50 s unless a test says otherwise).
SLOTS_GONE_S = 5.0
ALL_GONE_S = 30.0
ERROR_S = 15.0
HEARTBEAT_TIMEOUT_S = 2.0
HEARTBEATS = ("heartbeat.interval=200 ms", "heartbeat.timeout=2 s")
DRIVER_JVM = "org.apache.spark.deploy.SparkSubmit"
EXECUTOR_JVM = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@contextmanager
def endless(tmp_path: Path, master: str, *arguments: str) -> Iterator[RunningProgram]:
    with RunningProgram("endless.py", master, os.fspath(tmp_path), *arguments) as program:
        yield program


def wait_until_flowing(program: RunningProgram, job: str) -> list[psutil.Process]:
    """Returns the slots of a job when records reach both sinks."""
    for subtask in range(2):
        program.wait_for_line(f"{job}: flowing in {subtask}")
    slots = program.slots()
    assert [slot.info["cmdline"][-2:] for slot in slots] == [[job, "0"], [job, "1"]]
    return slots


def slot_directories(program: RunningProgram) -> list[str]:
    return [name for name in os.listdir(program.temporary) if name.startswith("rekindle-slot-")]


def assert_nothing_left(program: RunningProgram, killed_at: float) -> None:
    seconds_until_gone(program.processes(), killed_at, ALL_GONE_S)
    assert slot_directories(program) == []


# -- killed -----------------------------------------------------------------------------------------------------------


def test_a_killed_driver_leaves_nothing_even_when_a_slot_holds_the_interpreters_lock(tmp_path: Path) -> None:
    with endless(tmp_path, "local[2]", "stuck") as program:
        slots = wait_until_flowing(program, "stuck")
        wait_until_busy(slots[0])
        assert len(slot_directories(program)) == 2
        killed_at = time.monotonic()
        program.send_signal(signal.SIGKILL)
        seconds_until_gone(slots, killed_at, SLOTS_GONE_S)
        assert_nothing_left(program, killed_at)


@pytest.mark.long
def test_a_killed_jvm_of_the_driver_ends_a_job_without_restarts_and_the_next_one_gets_another(tmp_path: Path) -> None:
    with endless(tmp_path, "local[2]", "orphaned", "next") as program:
        slots = wait_until_flowing(program, "orphaned")
        (jvm,) = program.java(DRIVER_JVM)
        killed_at = time.monotonic()
        jvm.kill()
        seconds_until_gone(slots, killed_at, SLOTS_GONE_S)
        said = program.wait_for_line("orphaned: ", "Error: ", deadline_s=ERROR_S)
        assert time.monotonic() - killed_at < ERROR_S
        assert "SlotLostError" in said or "ClusterError" in said
        wait_until_flowing(program, "next")
        program.interrupt()
        assert program.wait(deadline_s=ALL_GONE_S) in (-signal.SIGINT, 128 + signal.SIGINT)
        # pyspark and py4j complain about their broken connections; none of it is an error of ours.
        before = program.errors[: program.errors.index("Traceback (most recent call last):")]
        assert not any("/src/rekindle/" in line for line in before), "\n".join(program.errors)
        assert_nothing_left(program, time.monotonic())
        assert os.listdir(program.temporary) == []


def test_what_a_killed_driver_and_its_jvm_left_is_nobody_elses_to_read_and_goes_with_the_next_job(
    tmp_path: Path,
) -> None:
    shared = Path(tempfile.mkdtemp(prefix="rk-test-"))  # a short path: slots put unix sockets into it
    places = {"TMPDIR": os.fspath(shared), "SPARK_LOCAL_DIRS": os.fspath(shared)}
    try:
        with RunningProgram("endless.py", "local[2]", os.fspath(tmp_path), "first", environment=places) as program:
            wait_until_flowing(program, "first")
            assert {path.stat().st_mode & 0o777 for path in shared.iterdir()} == {0o700}
            (jvm,) = program.java(DRIVER_JVM)
            for process in (psutil.Process(program.pid), jvm):
                process.suspend()  # so that neither process cleans up after the other
            for process in (psutil.Process(program.pid), jvm):
                process.kill()
            seconds_until_gone(program.processes(), time.monotonic(), ALL_GONE_S)
            left = set(shared.rglob("*")) - {shared / f"rekindle-{os.getuid()}"}  # the next driver has it, too
        assert any("blockmgr" in path.name for path in left), "the test needs something that is left"
        with RunningProgram("endless.py", "local[2]", os.fspath(tmp_path), "second", environment=places) as program:
            wait_until_flowing(program, "second")
            assert not {path for path in left if path.exists()}
    finally:
        shutil.rmtree(shared)


@pytest.mark.cluster
@pytest.mark.long
def test_a_killed_executor_and_then_a_killed_driver_of_a_cluster(tmp_path: Path) -> None:
    with endless(tmp_path, "local-cluster[2,1,1024]", "first", "second") as program:
        slots = wait_until_flowing(program, "first")
        executors = program.java(EXECUTOR_JVM)
        assert len(executors) == 2
        victim = next(parent for parent in slots[1].parents() if parent in executors)
        lost = [slot for slot in slots if victim in slot.parents()]
        killed_at = time.monotonic()
        victim.kill()
        seconds_until_gone(lost, killed_at, SLOTS_GONE_S)
        said = program.wait_for_line("first: SlotLostError: Slot ", deadline_s=ERROR_S)
        assert any(f"(process {slot.pid} " in said for slot in lost)
        seconds_until_gone(slots, killed_at, ERROR_S)

        # The session lives on with another executor, and so does the program.
        slots = wait_until_flowing(program, "second")
        killed_at = time.monotonic()
        program.send_signal(signal.SIGKILL)
        seconds_until_gone(slots, killed_at, SLOTS_GONE_S)
        assert_nothing_left(program, killed_at)


# -- frozen, and interrupted -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_silent_slot_a_silent_driver_and_ctrl_c(tmp_path: Path) -> None:
    """One program, so one session. A stopped process keeps its connections, as behind a cut network."""
    with endless(tmp_path, "local[2]", "slot", "driver", "interrupted", *HEARTBEATS) as program:
        slots = wait_until_flowing(program, "slot")
        with stopped(slots[1]):
            stopped_at = time.monotonic()
            said = program.wait_for_line("slot: SlotLostError: Slot 1 (", deadline_s=HEARTBEAT_TIMEOUT_S + ERROR_S)
            assert "it sent no heartbeat for 2 s" in said
            seconds_until_gone(slots, stopped_at, HEARTBEAT_TIMEOUT_S + ERROR_S)

        slots = wait_until_flowing(program, "driver")
        driver = psutil.Process(program.pid)
        with stopped(driver):
            stopped_at = time.monotonic()
            seconds_until_gone(slots, stopped_at, HEARTBEAT_TIMEOUT_S + SLOTS_GONE_S)
            assert time.monotonic() - stopped_at > HEARTBEAT_TIMEOUT_S / 2, "a short silence is no reason to end"
        program.wait_for_line("driver: SlotLostError: Slot ", deadline_s=ERROR_S)

        wait_until_flowing(program, "interrupted")
        program.interrupt()
        status = program.wait(deadline_s=ALL_GONE_S)
        ended_at = time.monotonic()
        assert status in (-signal.SIGINT, 128 + signal.SIGINT)
        assert {"interrupted-0.closed", "interrupted-1.closed"} <= set(os.listdir(tmp_path))
        assert program.errors[0] == "Traceback (most recent call last):"
        assert "KeyboardInterrupt" in program.errors, program.story()
        assert len(program.errors) < 20, "one short traceback:\n" + "\n".join(program.errors)
        assert_nothing_left(program, ended_at)
        assert os.listdir(program.temporary) == []


def test_sigterm_on_spark_stops_with_a_savepoint_and_leaves_nothing(tmp_path: Path) -> None:
    settings = ("rekindle.sigterm.action=savepoint", f"execution.checkpointing.savepoint-dir={tmp_path}/savepoints")
    with endless(tmp_path, "local[2]", "ended", "never", "rekindle.sigterm.grace-period=100 s", *settings) as program:
        wait_until_flowing(program, "ended")
        program.send_signal(signal.SIGTERM)
        assert program.wait(deadline_s=100.0) == 0, program.story()
        (savepoint,) = (tmp_path / "savepoints").iterdir()
        assert f"Job 'ended' has stopped: its savepoint is at {savepoint.as_uri()}." in program.errors
        assert (savepoint / "_metadata").exists()
        assert {"ended-0.closed", "ended-1.closed"} <= set(os.listdir(tmp_path))
        assert "Traceback" not in program.story()
        assert_nothing_left(program, time.monotonic())
        assert os.listdir(program.temporary) == []


@pytest.mark.long
def test_sigterm_to_every_process_as_systemd_sends_it_by_default_cancels_in_time(tmp_path: Path) -> None:
    """The JVM and the slots end before they could make a savepoint: the guide names systemd's KillMode=mixed."""
    settings = ("rekindle.sigterm.action=savepoint", f"execution.checkpointing.savepoint-dir={tmp_path}/savepoints")
    with endless(tmp_path, "local[2]", "ended", "rekindle.sigterm.grace-period=5 s", *settings) as program:
        wait_until_flowing(program, "ended")
        for process in program.processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
        assert program.wait(deadline_s=100.0) == 128 + signal.SIGTERM, program.story()
        assert_nothing_left(program, time.monotonic())


def wait_until_busy(slot: psutil.Process) -> None:
    """Wait until the slot has used the processor for a second: then it is in its regular expression."""
    before = slot.cpu_times().user
    deadline = time.monotonic() + 60.0
    while is_alive(slot):
        if slot.cpu_times().user > before + 1.0:
            return
        assert time.monotonic() < deadline, "the slot is not busy"
        threading.Event().wait(0.1)
    raise AssertionError("the slot ended")
