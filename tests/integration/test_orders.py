"""The order system on Spark: with every fault, the results of every branch are those of plain Python.

All five branches are in every run, so each run is a row of the matrix: exceptions (one before each branch), a slot, an
executor, the driver, a stop with a savepoint, other parallelisms. The seed is printed with every failure.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.orders.faults import BRANCHES, Fault
from examples.orders.job import build, environment
from examples.orders.journal import read_journal
from examples.orders.model import expected
from examples.orders.results import compare
from examples.orders.settings import Feed, Settings
from rekindle.common import JobClient, JobStatus
from rekindle.errors import JobExecutionError
from tests.support.running_program import RunningProgram, is_alive, seconds_until_gone
from tests.support.slot_processes import slots_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

SEED = int(os.environ.get("REKINDLE_TEST_SEED", "20240607"))
FEED = Feed(
    seed=SEED,
    orders=1600,
    rate=900.0,
    splits=6,
    users=40,
    products=20,
    orders_per_hour=600,
    duplicates=0.15,
    out_of_order=0.4,
    cancellations=0.3,
    misfits=0.1,
)
DEADLINE_S = 150.0
EXECUTOR_JVM = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def settings_in(folder: Path, name: str, parallelism: int = 2) -> Settings:
    return Settings(
        directory=str(folder),
        job_name=name,
        parallelism=parallelism,
        sink="files",
        checkpoint_interval_s=0.3,
        checkpoint_pause_s=0.05,
        restart_delay_s=0.05,
        initial_stock=150,
    )


def start(settings: Settings, faults: tuple[Fault, ...] = (), resume: str | None = None) -> JobClient:
    more = {"rekindle.progress": "off"} | ({"execution.state-recovery.path": resume} if resume else {})
    env = environment(settings, **more)
    build(env, settings, FEED, faults)
    return env.execute_async(settings.job_name)


def assert_equal(settings: Settings, partial: int = 3) -> None:
    """Compare every stream of every branch with the model."""
    verdicts = compare(Path(settings.directory) / "output", expected(settings, FEED), settings.batch_size, partial)
    assert all(verdict.equal for verdict in verdicts), f"seed {SEED}: " + "; ".join(map(str, verdicts))
    assert sum(verdict.rows for verdict in verdicts) > 3 * (FEED.orders or 0), "there was something to compare"


def wait_for_checkpoints(client: JobClient, count: int) -> None:
    before = client.get_checkpoint_statistics().counts.completed
    wait_until(
        lambda: client.get_checkpoint_statistics().counts.completed >= before + count,
        f"seed {SEED}: checkpoint {count}",
        DEADLINE_S,
    )


# -- exceptions -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_function_fails_before_every_branch(spark, tmp_path):
    """The failing function of the text, five times: in each attempt before another branch, first after a checkpoint."""
    settings = settings_in(tmp_path, "exceptions")
    faults = tuple(Fault(branch, 50, attempt, int(attempt == 0)) for attempt, branch in enumerate(BRANCHES))
    client = start(settings, faults)
    client.get_job_execution_result().result(DEADLINE_S)
    assert client.get_checkpoint_statistics().counts.restored == len(BRANCHES)
    assert_equal(settings)


@pytest.mark.long
def test_one_that_fails_in_every_attempt_exhausts_the_restarts_and_ends_the_job_with_that_error(spark, tmp_path):
    settings = replace(settings_in(tmp_path, "exhausted"), restart_attempts=2)
    client = start(settings, (Fault("tracking", 100, attempt=None),))
    with pytest.raises(JobExecutionError, match="Simulated failure at record 100") as caught:
        client.get_job_execution_result().result(DEADLINE_S)
    assert any("used up the 2 restarts" in note for note in caught.value.__notes__)
    assert client.get_job_status().result() is JobStatus.FAILED


# -- processes that die -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_slot_is_killed_twice(spark, tmp_path):
    """With state in RocksDB, which goes with its slot; the other tests have the default backend."""
    settings = replace(settings_in(tmp_path, f"slot-{os.getpid()}"), backend="rocksdb")
    client = start(settings)
    for victim in (0, 1):
        wait_for_checkpoints(client, 1)
        slots_of(settings.job_name)[victim].send_signal(signal.SIGKILL)
        wait_until(
            lambda n=victim: client.get_checkpoint_statistics().counts.restored > n,
            f"seed {SEED}: the restart",
            DEADLINE_S,
        )
    client.get_job_execution_result().result(DEADLINE_S)
    assert_equal(settings)


class Orders:
    """The program as users run it."""

    def __init__(self, folder: Path, name: str, master: str) -> None:
        self.settings = settings_in(folder, name)
        self.journal = folder / "journal"
        self._master = master
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *more: str) -> RunningProgram:
        given = {**vars(self.settings), **vars(FEED)}
        defaults = {**vars(Settings()), **vars(Feed())}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value != defaults[name]]
        return RunningProgram(
            "examples.orders", *words, "--master", self._master, "--journal", os.fspath(self.journal), *more
        )

    def lines(self, what: str) -> list[dict[str, Any]]:
        return [line for line in read_journal(self.journal) if line["what"] == what]

    def wait_for(self, program: RunningProgram, what: str, count: int) -> None:
        def happened() -> bool:
            assert program.running(), program.story()
            return len(self.lines(what)) >= count

        wait_until(happened, f"seed {SEED}: {what} {count}", DEADLINE_S)

    def end(self, program: RunningProgram) -> None:
        assert program.wait(DEADLINE_S) == 0, program.story()
        seconds_until_gone(program.processes(), time.monotonic(), deadline_s=10.0)


@pytest.mark.cluster
@pytest.mark.long
def test_an_executor_is_killed(tmp_path):
    orders = Orders(tmp_path / "shop", "executor", "local-cluster[2,1,1024]")
    with orders.run() as program:
        orders.wait_for(program, "checkpoint", 2)
        executors = program.java(EXECUTOR_JVM)
        victim = next(parent for parent in program.slots()[1].parents() if parent in executors)
        victim.kill()
        orders.wait_for(program, "restored", 1)
        orders.end(program)
    assert_equal(orders.settings)


@pytest.mark.long
def test_the_driver_is_killed_and_the_program_run_again(tmp_path):
    orders = Orders(tmp_path / "shop", "driver", "local[2]")
    with orders.run() as program:
        orders.wait_for(program, "checkpoint", 2)
        family = program.processes()
        program.send_signal(signal.SIGKILL)
        seconds_until_gone(family, time.monotonic(), deadline_s=10.0)
        assert not any(map(is_alive, family))
    with orders.run("--resume", "latest") as program:
        orders.wait_for(program, "restored", 1)
        orders.end(program)
    assert_equal(orders.settings)


# -- stopped on purpose -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parallelisms", [pytest.param((2, 2), marks=pytest.mark.long), (2, 3, 1)], ids=["resumed", "rescaled 2-3-1"]
)
def test_stopped_with_a_savepoint_and_resumed(spark, tmp_path, parallelisms):
    savepoint = None
    for place, parallelism in enumerate(parallelisms):
        settings = settings_in(tmp_path, "stopped", parallelism)
        client = start(settings, resume=savepoint)
        if place < len(parallelisms) - 1:
            wait_for_checkpoints(client, 1)
            savepoint = client.stop_with_savepoint(False).result(DEADLINE_S)
        client.get_job_execution_result().result(DEADLINE_S)
        assert client.get_job_status().result() is JobStatus.FINISHED
    assert_equal(settings)


@pytest.mark.long
def test_cancelled_and_resumed_from_the_retained_checkpoint_at_other_parallelisms(spark, tmp_path):
    """Rescaled 2 → 3 → 1, from checkpoints: work after a checkpoint is lost and done again."""
    for place, parallelism in enumerate((2, 3, 1)):
        settings = settings_in(tmp_path, "cancelled", parallelism)
        client = start(settings, resume="latest" if place else None)
        if place < 2:
            wait_for_checkpoints(client, 1)
            client.cancel().result(DEADLINE_S)
        else:
            client.get_job_execution_result().result(DEADLINE_S)
    assert_equal(settings)
