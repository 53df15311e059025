"""An epoch is one Spark job: chunks reach their slot or the driver, and a failure is one sentence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekindle.errors import ClusterError, JobCancelledError, ProtocolError, SlotLostError
from rekindle.protocol import TO_DRIVER, CheckpointOrder, PumpHello
from rekindle.spark.epoch import EpochRunner, describe
from rekindle.spark.internals import own_local_properties
from tests.integration.epoch_runs import SECRET, Chunks, epoch_run
from tests.support.fake_slot import Behaviour, FakeSlot, fake_slots, silent
from tests.support.spark_blocks import block_folder, shuffle_files
from tests.support.waiting import becomes_true

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runner(spark: Any) -> EpochRunner:
    return EpochRunner(spark.sparkContext)


def all_to_all(index: int, slots: int, stages: int) -> Behaviour:
    """Each stage adds its name to its chunks and sends them to every slot; the last stage sends them to the driver."""

    def behave(hello: PumpHello, chunks: list[bytes]) -> Chunks:
        got = b"+".join(sorted(chunks)) or b"."
        chunk = b"%d/%d<%s>" % (hello.stage, index, got)
        if hello.stage == stages - 1:
            return [(TO_DRIVER, chunk)]
        return [(target, chunk) for target in range(slots)]

    return behave


def test_rows_reach_the_slot_they_are_for(runner: EpochRunner) -> None:
    with fake_slots(SECRET, [all_to_all(index, 3, 3) for index in range(3)]) as slots:
        chunks = runner.run(epoch_run(slots, 3))
    first = [b"0/%d<.>" % index for index in range(3)]
    second = [b"1/%d<%s>" % (index, b"+".join(first)) for index in range(3)]
    assert sorted(chunks) == [b"2/%d<%s>" % (index, b"+".join(second)) for index in range(3)]


def test_every_slot_sees_every_stage_once(runner: EpochRunner) -> None:
    with fake_slots(SECRET, [silent, silent]) as slots:
        assert runner.run(epoch_run(slots, 3, epoch=7, checkpoint=CheckpointOrder(4, 0), attempt=2)) == []
        for slot in slots:
            assert slot.hellos == [PumpHello(2, 7, stage, 1000, 100, CheckpointOrder(4, 0)) for stage in range(3)]
            assert {int(family) for family in slot.families} == {1}  # the unix socket, being on the same machine


def test_another_machine_is_reached_over_tcp(runner: EpochRunner) -> None:
    with fake_slots(SECRET, [all_to_all(index, 2, 2) for index in range(2)], unix=False) as slots:
        assert len(runner.run(epoch_run(slots, 2))) == 2
        assert {int(family) for slot in slots for family in slot.families} == {2}


def test_rows_for_the_driver_pass_later_stages_without_touching_a_slot(runner: EpochRunner) -> None:
    seen: list[list[bytes]] = []

    def early(hello: PumpHello, chunks: list[bytes]) -> Chunks:
        seen.append(chunks)
        return [(TO_DRIVER, b"from stage %d" % hello.stage)]

    with fake_slots(SECRET, [early, silent]) as slots:
        chunks = runner.run(epoch_run(slots, 3))
    assert sorted(chunks) == [b"from stage 0", b"from stage 1", b"from stage 2"]
    assert seen == [[], [], []]


@pytest.mark.parametrize("stages", [1, 2])
def test_large_and_many_rows_arrive_whole(runner: EpochRunner, stages: int) -> None:
    sizes = [1, 65_531, 65_535, 65_536, 3_000_000, *range(1, 500)]
    large = [bytes([index % 256]) * size for index, size in enumerate(sizes)]

    def send(hello: PumpHello, chunks: list[bytes]) -> Chunks:
        target = TO_DRIVER if hello.stage == stages - 1 else 1
        return [(target, chunk) for chunk in (large if hello.stage == 0 else chunks)]

    with fake_slots(SECRET, [send, send if stages == 2 else silent]) as slots:
        chunks = runner.run(epoch_run(slots, stages))
    # With two stages both slots send all of it to slot 1, which hands it on.
    assert sorted(chunks) == sorted(large * stages)


def test_a_slot_that_was_fed_refuses(runner: EpochRunner) -> None:
    with fake_slots(SECRET, [silent, silent]) as slots:
        runner.run(epoch_run(slots, 2))
        with pytest.raises(ProtocolError, match=r"^Slot \d refused: attempt 1, epoch 1, stage 0 was here before\.$"):
            runner.run(epoch_run(slots, 2))


def test_a_slot_that_breaks_off_is_named(runner: EpochRunner) -> None:
    def die(hello: PumpHello, chunks: list[bytes]) -> Chunks:
        raise ConnectionResetError

    with fake_slots(SECRET, [silent, die]) as slots:
        with pytest.raises(SlotLostError, match=r"^Slot 1 went away in epoch 1, stage 0 \(connection closed\)\.$"):
            runner.run(epoch_run(slots, 2))


def test_a_slot_that_does_not_listen_is_named(runner: EpochRunner) -> None:
    with fake_slots(SECRET, [silent, silent]) as slots:
        addresses = [slot.address for slot in slots]
    with pytest.raises(SlotLostError, match=r"^Slot \d on 127\.0\.0\.1 does not answer in epoch 1, stage 0 \("):
        runner.run(epoch_run(addresses, 2))


def test_a_wrong_secret_is_refused(runner: EpochRunner) -> None:
    with fake_slots(b"another", [silent]) as slots, pytest.raises(ClusterError):
        runner.run(epoch_run(slots, 1))


def test_java_stacks_only_when_asked_for(spark: Any, runner: EpochRunner) -> None:
    with fake_slots(SECRET, [silent]) as slots:
        addresses = [slot.address for slot in slots]
    with pytest.raises(SlotLostError) as short:
        runner.run(epoch_run(addresses, 1))
    assert "\n" not in str(short.value)
    with pytest.raises(SlotLostError) as long:
        EpochRunner(spark.sparkContext, java_stacks=True).run(epoch_run(addresses, 1))
    assert str(long.value).startswith(str(short.value))
    assert "org.apache.spark" in str(long.value)


def test_cancel_ends_a_running_epoch(runner: EpochRunner) -> None:
    with HangingEpoch(runner) as (failure, wait):
        runner.cancel()
        wait()
    assert isinstance(failure[0], JobCancelledError)


def test_a_kill_in_sparks_page_is_a_cancellation(spark: Any, runner: EpochRunner) -> None:
    for kill in (kill_job, kill_stage):
        with HangingEpoch(runner) as (failure, wait):
            kill(spark)
            wait()
        assert isinstance(failure[0], JobCancelledError), failure


def test_cancelling_nothing_is_nothing(runner: EpochRunner) -> None:
    runner.cancel()
    with fake_slots(SECRET, [silent]) as slots:
        assert runner.run(epoch_run(slots, 1)) == []


def test_sparks_page_names_job_epoch_checkpoint_and_chains(spark: Any, runner: EpochRunner) -> None:
    names = ("Source: orders -> Map", "Keyed count", "Sink: print")
    with fake_slots(SECRET, [silent, silent]) as slots:
        run = epoch_run(slots, 3, stage_names=names, epoch=12, checkpoint=CheckpointOrder(3, 0), job_id="cd" * 16)
        runner.run(run)
    jobs = [job for job in rest(spark, "jobs") if job.get("jobGroup") == "cd" * 16]
    assert [job["description"] for job in jobs] == [describe(run)] == ["orders · epoch 12 · checkpoint 3"]
    stages = {stage["stageId"]: stage["name"] for stage in rest(spark, "stages")}
    assert [stages[stage] for stage in sorted(jobs[0]["stageIds"])] == list(names)


def test_a_borrowed_thread_gets_its_properties_back(spark: Any, runner: EpochRunner) -> None:
    sc = spark.sparkContext
    with own_local_properties(sc):
        sc.setJobGroup("theirs", "their work")
        sc.setLocalProperty("spark.scheduler.pool", "fast")
        with fake_slots(SECRET, [silent]) as slots:
            runner.run(epoch_run(slots, 1))
        kept = {key: sc.getLocalProperty(key) for key in PROPERTIES}
    assert kept == {
        "spark.jobGroup.id": "theirs",
        "spark.job.description": "their work",
        "spark.scheduler.pool": "fast",
        "callSite.short": None,
    }
    assert {sc.getLocalProperty(key) for key in PROPERTIES} == {None}


PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool", "callSite.short")


def test_shuffle_files_do_not_pile_up(spark: Any, runner: EpochRunner) -> None:
    folder = block_folder(spark)
    payload = b"x" * 20_000

    def send(hello: PumpHello, chunks: list[bytes]) -> Chunks:
        return [(0, payload), (1, payload)] if hello.stage < 2 else []

    # A task that another test's cancelled job left running may have written after its shuffle was removed.
    before = most = shuffle_files(folder)
    with fake_slots(SECRET, [send, send]) as slots:
        for epoch in range(1, 51):
            runner.run(epoch_run(slots, 3, epoch=epoch))
            most = max(most, shuffle_files(folder))
    becomes_true(lambda: shuffle_files(folder) <= before, deadline_s=20.0)
    assert shuffle_files(folder) <= before
    # Spark removes files in the background: those of a few epochs may still exist, never those of all.
    assert most <= before + 10 * 2 * 2 * 3


#: Stops Spark in the middle of an epoch, and prints how that epoch and the next one ended.
WITHOUT_SPARK = """
    import logging, os, signal, sys, threading
    logging.disable(logging.CRITICAL)  # py4j tells the root logger
    from pyspark import SparkContext
    from rekindle.common import Configuration
    from rekindle.spark.epoch import EpochRunner
    from rekindle.spark.session import create_session
    from tests.support.fake_slot import FakeSlot
    from tests.integration.epoch_runs import SECRET, epoch_run

    session = create_session(Configuration().set_string("master", "local[2]"))
    runner = EpochRunner(session.sparkContext)
    lose = {"kill": lambda: os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL), "stop": session.stop}[sys.argv[1]]

    losing = threading.Thread(target=lose)

    def behave(hello, chunks):
        losing.start()
        threading.Event().wait(60)

    run = epoch_run([FakeSlot(SECRET, behave)], 2)
    for _ in range(2):
        try:
            runner.run(run)
        except Exception as error:
            print(type(error).__name__, error, flush=True)
        runner.cancel()
        losing.join()
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        pytest.param(
            "kill",
            ["ClusterError Spark's driver process ended while the job 'orders' ran."] * 2,
            marks=pytest.mark.long,
        ),
        pytest.param(
            "stop",
            [
                "ClusterError The Spark session was stopped while the job 'orders' ran.",
                "ClusterError The Spark session of the job 'orders' has been stopped.",
            ],
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_lost_session_is_said_in_a_sentence(how: str, said: list[str]) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_SPARK), how]
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, env=environment)
    assert ended.stdout.splitlines() == said


# -- tools ------------------------------------------------------------------------------------------------------------


class HangingEpoch:
    """An epoch whose slot does not answer until the block ends, on a thread of its own."""

    def __init__(self, runner: EpochRunner) -> None:
        self._runner = runner
        self._fed, self._release = threading.Event(), threading.Event()
        self._failure: list[BaseException] = []

    def __enter__(self) -> tuple[list[BaseException], Callable[[], None]]:
        def hang(hello: PumpHello, chunks: list[bytes]) -> Chunks:
            self._fed.set()
            self._release.wait(60)
            return ()

        self._slot = FakeSlot(SECRET, hang)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._fed.wait(60)
        return self._failure, lambda: self._thread.join(10)

    def _run(self) -> None:
        try:
            self._runner.run(epoch_run([self._slot], 2))
        except BaseException as error:
            self._failure.append(error)

    def __exit__(self, *_: object) -> None:
        self._release.set()
        self._slot.close()
        self._thread.join(30)
        assert self._failure


def kill_job(spark: Any) -> None:
    (job,) = spark.sparkContext.statusTracker().getActiveJobsIds()
    click_kill(spark, "jobs", f"jobs/job/kill/?id={job}")


def kill_stage(spark: Any) -> None:
    (stage,) = spark.sparkContext.statusTracker().getActiveStageIds()
    click_kill(spark, "stages", f"stages/stage/kill/?id={stage}")


def click_kill(spark: Any, page: str, action: str) -> None:
    """Post the form as a browser does, with the token of the page."""
    url = spark.sparkContext.uiWebUrl
    with urllib.request.urlopen(f"{url}/{page}/", timeout=20) as answer:
        token = re.search(rb'name="csrfToken" value="(\w+)"', answer.read())
    form = b"csrfToken=" + token[1] if token else b""
    urllib.request.urlopen(f"{url}/{action}", data=form, timeout=20).close()


def rest(spark: Any, what: str) -> list[dict[str, Any]]:
    sc = spark.sparkContext
    url = f"{sc.uiWebUrl}/api/v1/applications/{sc.applicationId}/{what}"
    with urllib.request.urlopen(url, timeout=20) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found
