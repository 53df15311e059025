"""Checkpoints and savepoints on request, a stop with a savepoint, and a start from a moved one (I17)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rekindle.common import JobStatus, Types, WatermarkStrategy
from rekindle.coordinator import results
from rekindle.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    KeyedProcessFunction,
    MapFunction,
)
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import CheckpointError, IncompatibleStateError, JobCancelledError
from tests.integration.savepoint_jobs import (
    AT_ONCE,
    DEADLINE_S,
    EXPECTED,
    KEYS,
    PAIR,
    PER_SECOND,
    RECORDS,
    Running,
    with_savepoints,
)
from tests.support.environments import environment
from tests.support.waiting import wait_until


class Count(KeyedProcessFunction):
    """Emits the count per key; at the end of event time, the last count as a negative number."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(1 << 62)
        yield ctx.get_current_key(), count

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), -self.count.value()


class Told(MapFunction, CheckpointListener):
    """Notes the checkpoints whose completion it is told."""

    def __init__(self, folder: Path):
        self.folder = str(folder)

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        (Path(self.folder) / f"complete-{checkpoint_id}").touch()


class FailingSnapshot(MapFunction, CheckpointedFunction):
    """Its snapshots fail while the file is there."""

    def __init__(self, switch: Path):
        self.switch = str(switch)

    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        if Path(self.switch).exists():
            raise RuntimeError("no snapshot on purpose")


def counts(env, before_count=None, records: int = RECORDS, per_second: int = PER_SECOND):
    source = DataGeneratorSource(lambda n: n, records, RateLimiterStrategy.per_second(per_second))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
    if before_count is not None:
        numbers = numbers.map(before_count, int).uid("before")
    return numbers.key_by(lambda n: n % KEYS, int).process(Count(), PAIR).uid("count")


def steps(results):
    """The counts without the negative ones from the end of event time."""
    return sorted(each for each in results if each[1] > 0)


@pytest.mark.long
def test_a_savepoint_moved_elsewhere_restores_at_another_parallelism_while_its_job_goes_on(spark, tmp_path):
    running = Running(counts(with_savepoints(tmp_path)), "goes on")
    running.read(1000)
    path = running.client.trigger_savepoint().result(DEADLINE_S)
    assert steps(running.rest()) == EXPECTED, "the job goes on as if nothing had been"
    folder = Path(path.removeprefix("file://"))
    assert folder.parent == tmp_path / "savepoints"
    moved = tmp_path / "elsewhere" / "kept"
    shutil.move(folder, moved)
    shutil.rmtree(tmp_path / "checkpoints")  # a savepoint needs no file outside its folder
    env = with_savepoints(tmp_path, 3, **{"execution.state-recovery.path": str(moved)})
    again = steps(Running(counts(env, per_second=AT_ONCE), "moved").rest())
    for key in range(KEYS):
        own = [count for each, count in again if each == key]
        assert own == list(range(own[0], RECORDS // KEYS + 1)), "nothing lost, nothing twice"
        assert 1 < own[0] < RECORDS // KEYS
    assert (moved / "_metadata").exists(), "savepoints belong to the user"


@pytest.mark.parametrize(
    ("interval_ms", "backends"),
    [
        pytest.param(300, ("hashmap", "hashmap"), marks=pytest.mark.long),
        (None, ("hashmap", "rocksdb")),
        (300, ("rocksdb", "hashmap")),
    ],
)
def test_stopped_with_a_savepoint_and_continued(spark, tmp_path, interval_ms, backends):
    """Without drain, also in another backend: the results of both runs together are exactly the undisturbed result."""
    before, after = ({"state.backend.type": backend} for backend in backends)
    running = Running(counts(with_savepoints(tmp_path, interval_ms=interval_ms, **before)), "stopped")
    running.read(1000)
    path = running.client.stop_with_savepoint(False).result(DEADLINE_S)
    first = running.rest()
    assert running.client.get_job_status().result() is JobStatus.FINISHED
    assert all(count > 0 for _, count in first), "no timer fires"
    path = {"execution.state-recovery.path": path}
    env = with_savepoints(tmp_path, 1, interval_ms=interval_ms, **path, **after)
    second = Running(counts(env, per_second=AT_ONCE), "stopped").rest()
    assert steps(first + second) == EXPECTED
    assert first
    assert steps(second)


@pytest.mark.long
def test_stopped_again_and_again_and_always_started_with_latest(spark, tmp_path):
    """The checkpoints are older than the savepoint, and results after them have been handed out (I16, I17)."""
    latest = {"execution.state-recovery.path": "latest"}
    seen = []
    for parallelism in (2, 3):
        running = Running(counts(with_savepoints(tmp_path, parallelism, **latest)), "stopped often")
        running.read(1000)
        running.client.stop_with_savepoint(False).result(DEADLINE_S)
        seen += running.rest()
    env = with_savepoints(tmp_path, 1, **latest)
    seen += Running(counts(env, per_second=AT_ONCE), "stopped often").rest()
    assert steps(seen) == EXPECTED
    assert Running(counts(with_savepoints(tmp_path, 2, **latest)), "stopped often").rest() == [], "it had ended"


@pytest.mark.parametrize("interval_ms", [300, pytest.param(None, marks=pytest.mark.long)])
def test_stopped_with_a_savepoint_while_nobody_reads_the_results(spark, tmp_path, interval_ms, monkeypatch):
    """A reader who is far behind slows the job, but a stop still works; the waiting results stay for the reader."""
    monkeypatch.setattr(results, "_WAITING_BATCHES", 2)
    running = Running(counts(with_savepoints(tmp_path, interval_ms=interval_ms)), "unread")
    job = running.results._job
    wait_until(lambda: not job._receiver.has_room(), "the reader is far behind", DEADLINE_S)
    running.client.trigger_savepoint().result(DEADLINE_S)
    assert running.client.get_job_status().result() is JobStatus.RUNNING
    path = running.client.stop_with_savepoint(False).result(DEADLINE_S)
    assert running.client.get_job_status().result() is JobStatus.FINISHED
    first = running.rest()
    assert first
    assert len(steps(first)) < RECORDS, "the reader did not slow the job"
    env = with_savepoints(tmp_path, 1, interval_ms=interval_ms, **{"execution.state-recovery.path": path})
    assert steps(first + Running(counts(env, per_second=AT_ONCE), "unread").rest()) == EXPECTED


def test_drained_everything_fires_and_nothing_is_left(spark, tmp_path):
    running = Running(counts(with_savepoints(tmp_path)), "drained")
    running.read(1000)
    path = running.client.stop_with_savepoint(True).result(DEADLINE_S)
    results = running.rest()
    assert running.client.get_job_status().result() is JobStatus.FINISHED
    last = {key: max(count for each, count in results if each == key) for key in range(KEYS)}
    assert sorted(each for each in results if each[1] < 0) == sorted((key, -count) for key, count in last.items())
    assert len(steps(results)) < RECORDS
    env = with_savepoints(tmp_path, **{"execution.state-recovery.path": path})
    assert Running(counts(env, per_second=AT_ONCE), "drained").rest() == []


def test_a_savepoint_in_between_is_told_to_no_listener(spark, tmp_path):
    told = tmp_path / "told"
    told.mkdir()
    running = Running(counts(with_savepoints(tmp_path, interval_ms=200), Told(told)), "told")
    running.read(500)
    path = running.client.trigger_savepoint().result(DEADLINE_S)
    running.rest()
    overview = running.client.get_checkpoint_statistics()
    assert overview.latest_savepoint is not None
    assert overview.latest_savepoint.external_path == path
    heard = {int(each.name.removeprefix("complete-")) for each in told.iterdir()}
    assert heard
    assert overview.latest_savepoint.id not in heard


def test_a_checkpoint_by_hand_and_what_it_took(spark, tmp_path):
    """Without an interval: a checkpoint on request, with figures per task, subtask and operator."""
    running = Running(counts(with_savepoints(tmp_path, interval_ms=None), records=10**9), "by hand")
    running.read(1000)
    assert running.client.trigger_checkpoint().result(DEADLINE_S) == 1
    assert running.client.trigger_checkpoint().result(DEADLINE_S) == 2
    overview = running.client.get_checkpoint_statistics()
    assert overview.counts.completed == 2
    assert overview.latest_completed is not None
    assert overview.latest_completed.id == 2
    task = overview.latest_completed.tasks[-1]
    assert task.num_acknowledged_subtasks == task.num_subtasks == 2
    assert overview.latest_completed.state_size > 0
    assert overview.latest_completed.end_to_end_duration_ms > 0
    names = {op.operator for each in overview.latest_completed.acknowledged for op in each.snapshot.operators}
    assert names == {"Source: numbers", "KEYED PROCESS", "Sink: Collect Stream Sink"}
    assert running.client.cancel_with_savepoint().result(DEADLINE_S)
    with pytest.raises(JobCancelledError):
        running.rest()
    assert running.client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(CheckpointError, match=r"has ended \(CANCELED\)"):
        running.client.trigger_checkpoint().result(DEADLINE_S)


def test_a_savepoint_that_fails_leaves_the_job_running(spark, tmp_path):
    """I17, I19: no directory, an unwritable one, a snapshot that fails; the job goes on and its result is right."""
    switch = tmp_path / "switch"
    env = with_savepoints(tmp_path, **{"execution.checkpointing.tolerable-failed-checkpoints": "1000"})
    running = Running(counts(env, FailingSnapshot(switch)), "fails")
    running.read(300)
    blocked = tmp_path / "a file"
    blocked.touch()
    with pytest.raises(CheckpointError, match="a file"):
        running.client.trigger_savepoint(str(blocked)).result(DEADLINE_S)
    switch.touch()
    with pytest.raises(CheckpointError, match="no snapshot on purpose"):
        running.client.stop_with_savepoint(False).result(DEADLINE_S)
    assert not list((tmp_path / "savepoints").glob("*/*")), "nothing is left of it"
    switch.unlink()
    assert steps(running.rest()) == EXPECTED
    assert running.client.get_job_status().result() is JobStatus.FINISHED


def test_a_drain_that_fails_restarts_the_job_from_its_last_checkpoint(spark, tmp_path):
    switch = tmp_path / "switch"
    env = with_savepoints(tmp_path, **{"execution.checkpointing.tolerable-failed-checkpoints": "1000"})
    running = Running(counts(env, FailingSnapshot(switch)), "drain fails")
    running.read(300)
    switch.touch()
    with pytest.raises(CheckpointError, match="no snapshot on purpose"):
        running.client.stop_with_savepoint(True).result(DEADLINE_S)
    switch.unlink()
    assert steps(running.rest()) == EXPECTED


def test_without_any_directory_the_sentence_says_what_to_set(spark, tmp_path):
    running = Running(counts(environment(), records=4000), "nowhere")
    with pytest.raises(CheckpointError, match=r"execution\.checkpointing\.savepoint-dir"):
        running.client.trigger_savepoint().result(DEADLINE_S)
    assert len(steps(running.rest())) == 4000


def test_state_whose_operator_is_gone_is_refused_unless_that_is_allowed(spark, tmp_path):
    running = Running(counts(with_savepoints(tmp_path)), "gone")
    running.read(500)
    path = running.client.stop_with_savepoint(False).result(DEADLINE_S)
    running.rest()

    def only_numbers(**settings):
        env = with_savepoints(tmp_path, **{"execution.state-recovery.path": path, **settings})
        source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(AT_ONCE))
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers").map(abs, int)

    with pytest.raises(IncompatibleStateError, match=r"'KEYED PROCESS'.*ignore-unclaimed-state"):
        list(only_numbers().execute_and_collect("gone"))
    allowed = {"execution.state-recovery.ignore-unclaimed-state": "true"}
    left = list(only_numbers(**allowed).execute_and_collect("gone"))
    assert 0 < len(left) < RECORDS
    assert max(left) == RECORDS - 1


class CountAsText(Count):
    """Declares another type under the same name."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))


def test_state_that_a_changed_program_cannot_take_is_refused_at_once(spark, tmp_path, caplog):
    """No restart can heal it, so none is tried; the savepoint stays as it was, and the old program goes on from it."""
    running = Running(counts(with_savepoints(tmp_path)), "changed")
    running.read(500)
    path = running.client.stop_with_savepoint(False).result(DEADLINE_S)
    first = running.rest()

    def keyed(start=path):
        env = with_savepoints(tmp_path, **{"execution.state-recovery.path": start})
        source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(AT_ONCE))
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
        return numbers.key_by(lambda n: n % KEYS, int)

    saved = state_files(tmp_path)
    sentence = (
        "Operator 'KEYED PROCESS' of job 'changed' cannot take its state: State 'count': each value was saved as Long, "
        "but the program declares String"
    )
    with pytest.raises(IncompatibleStateError, match=sentence):
        list(keyed().process(CountAsText(), PAIR).uid("count").execute_and_collect("changed"))
    with pytest.raises(IncompatibleStateError, match=sentence):
        list(keyed("latest").process(CountAsText(), PAIR).uid("count").execute_and_collect("changed"))
    with pytest.raises(IncompatibleStateError, match=r"but the program has a rolling aggregation under the same uid"):
        list(keyed().reduce(max).uid("count").execute_and_collect("changed"))
    assert not [record for record in caplog.records if "restart in" in record.getMessage()]
    assert state_files(tmp_path) == saved
    second = Running(keyed("latest").process(Count(), PAIR).uid("count"), "changed").rest()
    assert steps(first + second) == EXPECTED


def state_files(folder):
    """The content of all checkpoints and savepoints: metadata and state files, without claims and notes."""
    files = [path for path in folder.rglob("*") if path.name == "_metadata" or path.suffix == ".state"]
    assert files
    return {path: path.read_bytes() for path in files}
