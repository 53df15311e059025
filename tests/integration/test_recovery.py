"""Jobs that fail and restart: every record counts exactly once, whichever process died."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from rekindle.checkpoint.paths import BEGUN, COMPLETED
from rekindle.common import JobStatus, RestartStrategies, Types, WatermarkStrategy
from rekindle.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    SinkFunction,
    SourceFunction,
)
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.errors import JobExecutionError
from tests.support.environments import checkpointed
from tests.support.slot_processes import slots_of

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
RECORDS, KEYS, PER_SECOND = 6000, 10, 3000
EXPECTED = sorted((key, count) for key in range(KEYS) for count in range(1, RECORDS // KEYS + 1))


class Count(KeyedProcessFunction):
    """Counts per key; fails at the record `fail_at`."""

    def __init__(self, fail_at: int | None = None, every_attempt: bool = False):
        self.fail_at = fail_at
        self.every_attempt = every_attempt

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.fails = self.every_attempt or runtime_context.get_attempt_number() == 0
        self.seen = 0

    def process_element(self, value, ctx):
        self.seen += 1
        if self.fails and self.seen == self.fail_at:
            raise RuntimeError(f"record number {self.seen} on purpose")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % KEYS, count


def counted(env, function, name: str):
    source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    stream = numbers.key_by(lambda n: n % KEYS, int).process(function, PAIR)
    with stream.execute_and_collect(name) as results:
        return list(results)


@pytest.mark.parametrize("fail_at", [100, pytest.param(2000, marks=pytest.mark.long)])
def test_a_function_that_fails_once_changes_nothing_in_the_result(spark, tmp_path, fail_at):
    env = checkpointed(2, 300, directory=tmp_path, restarts=3)
    assert sorted(counted(env, Count(fail_at), "fails once")) == EXPECTED


def test_checkpoints_in_the_drivers_memory(spark):
    assert sorted(counted(checkpointed(2, 300, restarts=3), Count(1500), "in memory")) == EXPECTED


def test_without_restarts_the_job_fails_with_that_error(spark, tmp_path):
    env = checkpointed(2, 300, directory=tmp_path, restarts=3)
    env.set_restart_strategy(RestartStrategies.no_restart())
    with pytest.raises(JobExecutionError, match="record number 100 on purpose"):
        counted(env, Count(100), "no restart")


def test_one_that_fails_in_every_attempt_exhausts_the_strategy(spark, tmp_path):
    with pytest.raises(JobExecutionError, match="record number 5 on purpose") as caught:
        counted(checkpointed(2, 300, directory=tmp_path, restarts=3), Count(5, every_attempt=True), "exhausted")
    assert any("used up the 3 restarts" in note for note in caught.value.__notes__)


def test_slots_killed_at_any_moment(spark, tmp_path):
    """SIGKILL, three times, while the job runs: the result is the undisturbed one."""
    killed = []
    done = threading.Event()

    def kill_now_and_then() -> None:
        while len(killed) < 3 and not done.wait(1.2):
            for victim in slots_of("killed slots")[:1]:
                victim.send_signal(signal.SIGKILL)
                killed.append(victim.pid)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        results = counted(checkpointed(2, 300, directory=tmp_path, restarts=3), Count(), "killed slots")
    finally:
        done.set()
        killer.join()
    assert sorted(results) == EXPECTED
    assert killed, "nobody was killed: the job was too quick for this test"


def test_finished_jobs_leave_no_checkpoint_files(spark, tmp_path):
    counted(checkpointed(2, 300, directory=tmp_path, restarts=3), Count(), "cleaned")
    left = [path for path in tmp_path.rglob("*") if path.is_file() and not {"owners", "_history"} & {*path.parts}]
    assert {path.name for path in left} == {BEGUN, COMPLETED}, "more than the notes of the run stays"


class Offsets(SourceFunction):
    """The engine keeps its offsets; it notes the checkpoints whose completion it is told."""

    def __init__(self, directory: str):
        self.directory = directory
        self.running = True

    def run(self, ctx):
        self.ctx = ctx
        start = 0 if ctx.restored_offset is None else ctx.restored_offset + 1
        Path(self.directory, f"started-at-{start}").touch()
        for number in range(start, 3000):
            if not self.running:
                return
            ctx.collect(number, offset=number)
            if number % 20 == 0:
                time.sleep(0.02)

    def cancel(self):
        self.running = False

    def notify_checkpoint_complete(self, checkpoint_id):
        Path(self.directory, f"completed-{checkpoint_id}-{self.ctx.completed_offset(checkpoint_id)}").touch()


def test_a_source_functions_offsets(spark, tmp_path):
    """I8: the offset in the snapshot is that of the last record before the barrier."""
    marks = tmp_path / "marks"
    marks.mkdir()
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=3)
    numbers = env.add_source(Offsets(str(marks)), type_info=int)
    stream = numbers.key_by(lambda n: n % KEYS, int).process(Count(1200), PAIR)
    with stream.execute_and_collect("offsets") as results:
        assert sorted(results) == sorted((key, count) for key in range(KEYS) for count in range(1, 301))
    starts = sorted(int(path.name.rsplit("-", 1)[1]) for path in marks.glob("started-at-*"))
    assert starts[0] == 0
    assert len(starts) == 2
    completed = [path.name.split("-")[1:] for path in marks.glob("completed-*")]
    assert completed
    offsets = [int(offset) for _, offset in sorted(completed, key=lambda each: int(each[0])) if offset != "None"]
    assert offsets == sorted(offsets)


class KeepsItsPlace(SourceFunction, CheckpointedFunction):
    """S2's source: collects a record, then notes its position; takes no lock."""

    running = True
    last = -1

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("last", Types.LONG()))
        for last in self.state.get():
            self.last = last

    def snapshot_state(self, context):
        self.state.update([self.last])

    def run(self, ctx):
        for number in range(self.last + 1, RECORDS):
            if not self.running:
                return
            ctx.collect(number)
            self.last = number
            if number % 10 == 0:
                time.sleep(0.003)

    def cancel(self):
        self.running = False


class Flushing(MapFunction, CheckpointedFunction):
    """Takes 50 ms at each barrier, as a sink that flushes; fails in the first attempt."""

    def open(self, runtime_context):
        self.fails = runtime_context.get_attempt_number() == 0

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        time.sleep(0.05)

    def map(self, value):
        if self.fails and value == RECORDS * 3 // 4:
            raise RuntimeError("on purpose")
        return value


@pytest.mark.parametrize("chained", [True, False])
def test_a_source_that_keeps_its_own_place_without_the_lock_loses_nothing(spark, tmp_path, chained):
    """I8: `collect` waits while the snapshots are taken, so the place is at most one record behind, never ahead."""
    env = checkpointed(1, 200, directory=tmp_path, restarts=3)
    numbers = env.add_source(KeepsItsPlace(), type_info=int)
    flushed = (numbers if chained else numbers.rebalance()).map(Flushing(), int)
    with flushed.execute_and_collect(f"own place {chained}") as results:
        seen = list(results)
    assert sorted(set(seen)) == list(range(RECORDS)), f"{RECORDS - len(set(seen))} records were lost"
    assert len(seen) <= RECORDS + 1, "more than one record came again"


class Buffering(SinkFunction, CheckpointedFunction, CheckpointListener):
    """The text's buffering sink, with a file per event."""

    def __init__(self, directory: str, threshold: int):
        self.directory = directory
        self.threshold = threshold

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("buffered", Types.STRING()))
        self.buffered = list(self.state.get()) if context.is_restored() else []

    def snapshot_state(self, context):
        self.state.update(self.buffered)
        self.note(f"snapshot-{context.get_checkpoint_id()}", self.buffered)

    def invoke(self, value, context):
        self.buffered.append(value)
        if len(self.buffered) == self.threshold:
            self.note(f"flush-{value}", self.buffered)
            self.buffered = []

    def notify_checkpoint_complete(self, checkpoint_id):
        self.note(f"complete-{checkpoint_id}", [])

    def note(self, what, elements):
        Path(self.directory, f"{what}-{self.subtask}").write_text(" ".join(elements))


class Words(SourceFunction):
    """Emits a1 to a12; each word waits until the checkpoint before it in the trace is complete."""

    AFTER_CHECKPOINT = {3: 1, 8: 2, 9: 3, 12: 4}

    def run(self, ctx):
        self.completed = 0
        self.changed = threading.Condition()
        self.running = True
        for number in range(1, 13):
            with self.changed:
                self.changed.wait_for(lambda n=number: self.completed >= self.AFTER_CHECKPOINT.get(n, 0))
            ctx.collect(f"a{number}")
        with self.changed:
            self.changed.wait_for(lambda: self.completed >= 5)

    def notify_checkpoint_complete(self, checkpoint_id):
        with self.changed:
            self.completed = checkpoint_id
            self.changed.notify_all()

    def cancel(self):
        with self.changed:
            self.completed = 99
            self.changed.notify_all()


def test_the_trace_of_the_buffering_sink(spark, tmp_path):
    """Mission, section 4: parallelism 2, threshold 5, words a1 to a12, a checkpoint now and then."""
    notes = tmp_path / "notes"
    notes.mkdir()
    env = checkpointed(2, 1500, directory=tmp_path / "checkpoints", restarts=3)
    env.add_source(Words(), type_info=str).rebalance().add_sink(Buffering(str(notes), 5)).set_parallelism(2)
    env.execute("trace")

    def noted(what: str) -> list[str]:
        return [(notes / f"{what}-{subtask}").read_text() for subtask in (0, 1)]

    assert noted("snapshot-1") == ["a2", "a1"]
    assert noted("snapshot-2") == ["a2 a4 a6", "a1 a3 a5 a7"]
    assert noted("snapshot-3") == ["a2 a4 a6 a8", "a1 a3 a5 a7"]
    assert (notes / "flush-a9-1").read_text() == "a1 a3 a5 a7 a9"
    assert (notes / "flush-a10-0").read_text() == "a2 a4 a6 a8 a10"
    assert noted("snapshot-4") == ["", "a11"]
    assert noted("snapshot-5") == ["a12", "a11"]


class SlowSnapshot(MapFunction, ListCheckpointed):
    """Sleeps two seconds in its snapshot, and notes the times."""

    def __init__(self, path: str):
        self.path = path

    def map(self, value):
        return value

    def snapshot_state(self, checkpoint_id, timestamp):
        started = time.time()
        time.sleep(1.0)
        with open(self.path, "a") as file:
            file.write(f"{checkpoint_id} {started} {time.time()}\n")
        return []

    def restore_state(self, state):
        pass


@pytest.mark.parametrize("chained", [True, False])
def test_chained_operators_snapshot_in_turn_and_split_ones_side_by_side(spark, tmp_path, chained):
    """I2: the pump is released before the snapshot, so the next stage does not wait for it."""
    env = checkpointed(1, 500, directory=tmp_path / "checkpoints", restarts=3)
    source = DataGeneratorSource(lambda n: n, 3000, RateLimiterStrategy.per_second(1000))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    first = numbers.map(SlowSnapshot(str(tmp_path / "first")), int)
    second = (first if chained else first.rebalance()).map(SlowSnapshot(str(tmp_path / "second")), int)
    second.add_sink(lambda n: None)
    env.execute("chained" if chained else "split")
    spans = {}
    for name in ("first", "second"):
        for line in (tmp_path / name).read_text().splitlines():
            checkpoint_id, begin, end = line.split()
            spans.setdefault(int(checkpoint_id), {})[name] = (float(begin), float(end))
    first_span, second_span = spans[1]["first"], spans[1]["second"]
    if chained:
        assert second_span[1] <= first_span[0], "tail to head: the sink's side first"
    else:
        assert first_span[0] < second_span[1]
        assert second_span[0] < first_span[1]


def test_cancelled_and_resumed_from_latest_at_another_parallelism(spark, tmp_path):
    """Retained on cancellation; the program run again goes on from there, with three subtasks instead of two."""
    keys = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    env = checkpointed(2, 300, directory=tmp_path, restarts=3, **keys)
    source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(PER_SECOND))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
    stream = numbers.key_by(lambda n: n % KEYS, int).process(Count(), PAIR).uid("count")
    first = []
    with stream.execute_and_collect("resumed") as results:
        for result in results:
            first.append(result)
            if len(first) > RECORDS // 3:
                break
        client = results._job
    client.result().exception()
    assert client.status() is JobStatus.CANCELED
    env = checkpointed(3, 300, directory=tmp_path, restarts=3, **keys, **{"execution.state-recovery.path": "latest"})
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int).uid("numbers")
    stream = numbers.key_by(lambda n: n % KEYS, int).process(Count(), PAIR).uid("count")
    with stream.execute_and_collect("resumed") as results:
        second = list(results)
    assert not set(first) & set(second), "what a completed checkpoint contains is not handed out again"
    for key in range(KEYS):
        counts = sorted(count for each, count in second if each == key)
        assert counts == list(range(counts[0], RECORDS // KEYS + 1)), "nothing lost, nothing twice"
        assert counts[0] > 1, "it began anew"


def test_a_dataframe_source_is_read_on_from_its_position(spark, tmp_path):
    """I10: the position of a DataFrame is the set of partitions that the checkpoint does not contain yet."""
    frame = spark.range(0, 4000, 1, 40).selectExpr("id")
    env = checkpointed(2, 100, directory=tmp_path, restarts=3)
    numbers = env.from_dataframe(frame).map(slowly, Types.LONG())
    stream = numbers.key_by(lambda n: n % KEYS, int).process(Count(1200), PAIR)
    with stream.execute_and_collect("frame") as results:
        assert sorted(results) == sorted((key, count) for key in range(KEYS) for count in range(1, 401))


def slowly(row):
    if row.id % 50 == 0:
        time.sleep(0.05)
    return row.id
