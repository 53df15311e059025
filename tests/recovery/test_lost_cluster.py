"""A standalone cluster loses its executors, or its memory: the job says so and goes on, and Ctrl-C ends it at once."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.running_program import RunningProgram, seconds_until_gone
from tests.support.standalone_cluster import StandaloneCluster, standalone_cluster
from tests.support.waiting import becomes_true

pytestmark = [pytest.mark.integration, pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(400)]

#: Ctrl-C ends a program within five seconds; the time of a machine that is busy with other tests comes on top.
INTERRUPTED_S = 15.0
RESTARTS = ("restart-strategy.type=fixed-delay", "restart-strategy.fixed-delay.delay=0 s")


def endless(folder: Path, cluster: StandaloneCluster, *arguments: str) -> RunningProgram:
    return RunningProgram("endless.py", cluster.master, os.fspath(folder), *arguments, *RESTARTS)


def wait_until_flowing(program: RunningProgram, job: str, times: int = 1) -> None:
    said = f"{job}: flowing in 1"
    program.wait_for_line(said)
    assert becomes_true(lambda: sum(said in line for line in list(program.out)) >= times, 120.0), program.story()


def kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def assert_interrupted(program: RunningProgram) -> None:
    """Ctrl-C ends the program and all its processes."""
    interrupted_at = time.monotonic()
    program.interrupt()
    assert program.wait(INTERRUPTED_S) in (-signal.SIGINT, 128 + signal.SIGINT)
    seconds_until_gone(program.processes(), interrupted_at, INTERRUPTED_S)


def assert_no_java_stack(program: RunningProgram) -> None:
    assert not [line for line in program.errors if line.startswith("\tat ")], program.story()


def test_executors_that_go_before_the_slots_start_are_said_in_a_sentence_and_ctrl_c_ends_the_wait(
    tmp_path: Path,
) -> None:
    with standalone_cluster(workers=1, cores=2) as cluster:
        limits = ("slot.request.timeout=30 s", "restart-strategy.fixed-delay.attempts=1")
        with endless(tmp_path, cluster, "first", *limits) as program:
            wait_until_flowing(program, "first")
            executors = cluster.executors()
            assert executors
            # Spark's driver believes for some seconds that they are there: the look at the cluster finds them.
            kill([psutil.Process(worker.pid) for worker in cluster.workers] + executors)
            said = program.wait_for_line("first: ClusterError: ")
            assert "Spark did not start the 2 slots of job 'first' within 30 s (slot.request.timeout): no exec" in said
            assert_no_java_stack(program)
        with endless(tmp_path, cluster, "third") as program:
            assert becomes_true(lambda: len(cluster.state()["activeapps"]) == 1, 60.0), program.story()
            assert_interrupted(program)


def test_a_master_that_has_forgotten_the_application_gets_another_one(tmp_path: Path) -> None:
    with standalone_cluster(workers=1, cores=2) as cluster:
        with endless(tmp_path, cluster, "job", "restart-strategy.fixed-delay.attempts=3") as program:
            wait_until_flowing(program, "job")
            cluster.restart_master()
            assert becomes_true(lambda: cluster.alive_workers() == 1, 90.0)
            kill(cluster.executors())
            wait_until_flowing(program, "job", times=2)
            assert any("does not know its application any more" in line for line in program.errors), program.story()
            assert_no_java_stack(program)
            assert_interrupted(program)


def test_an_application_that_the_master_removed_is_replaced_and_a_master_that_is_away_is_not_waited_for(
    tmp_path: Path,
) -> None:
    with standalone_cluster(workers=1, cores=2, more="spark.deploy.maxExecutorRetries 1\n") as cluster:
        with endless(tmp_path, cluster, "job", "restart-strategy.fixed-delay.attempts=3") as program:
            wait_until_flowing(program, "job")
            kill(cluster.executors())  # the last one that may end
            wait_until_flowing(program, "job", times=2)
            assert any("Spark has stopped it" in line for line in program.errors), program.story()
            assert_no_java_stack(program)
            # Neither master nor workers: a session that is started again waits for the master, a minute long.
            kill([psutil.Process(each.pid) for each in cluster.processes] + cluster.executors())
            assert becomes_true(lambda: not program.slots(), 60.0)
            assert_interrupted(program)
