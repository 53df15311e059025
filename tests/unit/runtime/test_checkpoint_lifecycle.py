"""A checkpoint in the tasks: snapshots, declines, slow uploads, aborts, deltas, and the calls that functions get."""

from __future__ import annotations

from collections import Counter

import pytest

from rekindle.checkpoint.manifest import FileRef, ManifestKind, PartKind
from rekindle.common import WatermarkStrategy
from rekindle.datastream import CheckpointedFunction, CheckpointListener, KeyedProcessFunction, MapFunction
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.snapshot import SnapshotDeclinedError
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed
from tests.unit.runtime.checkpoint_programs import every_kind_of_state, keyed_sums


class Trace(MapFunction, CheckpointedFunction, CheckpointListener):
    """Notes the calls that it gets, in order."""

    calls: list[str] = []

    def __init__(self, name, fails=False):
        self.name = name
        self.fails = fails

    def initialize_state(self, context):
        self.calls.append(f"initialize {self.name}")

    def open(self, runtime_context):
        self.calls.append(f"open {self.name}")

    def snapshot_state(self, context):
        self.calls.append(f"snapshot {self.name} {context.get_checkpoint_id()}")
        if self.fails:
            raise ValueError("no snapshot today")

    def notify_checkpoint_complete(self, checkpoint_id):
        self.calls.append(f"complete {self.name} {checkpoint_id}")

    def notify_checkpoint_aborted(self, checkpoint_id):
        self.calls.append(f"aborted {self.name} {checkpoint_id}")

    def close(self):
        self.calls.append(f"close {self.name}")

    def map(self, value):
        return value


@pytest.fixture
def calls():
    Trace.calls.clear()
    return Trace.calls


def traced(fails=False):
    env = checkpointed(1)
    stream = env.from_collection([1, 2, 3, 4], int).map(Trace("head")).map(Trace("middle", fails))
    return stream.rebalance().map(Trace("tail"))


def test_chained_functions_begin_snapshot_and_hear_from_tail_to_head(calls):
    """I2: in each chain the sink's side first, the source's last; a savepoint sends no notification."""
    job = InProcessJob.of(traced(), max_records=1)
    begin = ["initialize middle", "initialize head", "open middle", "open head", "initialize tail", "open tail"]
    assert calls == begin
    calls.clear()
    job.checkpoint()
    snapshots = ["snapshot middle 1", "snapshot head 1", "snapshot tail 1"]
    assert calls == [*snapshots, "complete tail 1", "complete middle 1", "complete head 1"]
    calls.clear()
    job.abort(job.checkpoint(complete=False))
    assert calls[3:] == ["aborted tail 2", "aborted middle 2", "aborted head 2"]
    calls.clear()
    assert job.checkpoint(savepoint=True).manifest.kind is ManifestKind.SAVEPOINT
    assert calls == ["snapshot middle 3", "snapshot head 3", "snapshot tail 3"]
    calls.clear()
    job.run()
    assert calls[:3] == ["snapshot middle 4", "snapshot head 4", "snapshot tail 4"], "no final checkpoint"
    assert calls[3:6] == ["complete tail 4", "complete middle 4", "complete head 4"]
    assert calls[6:] == ["close middle", "close head", "close tail"]


def test_a_snapshot_that_fails_is_declined_with_its_cause(calls):
    """I19: a failed checkpoint is not a failed epoch; every function is told that it was aborted."""
    job = InProcessJob.of(traced(fails=True), max_records=1)
    checkpoint = job.checkpoint()
    assert isinstance(checkpoint.declined, SnapshotDeclinedError)
    assert str(checkpoint.declined).startswith("Could not complete snapshot 1 for operator Map")
    assert isinstance(checkpoint.declined.__cause__, ValueError)
    assert calls[-3:] == ["aborted tail 1", "aborted middle 1", "aborted head 1"]
    assert checkpoint.results + job.epoch() == [1, 2]
    with pytest.raises(AssertionError, match="Could not complete snapshot 1"):
        InProcessJob.of(traced(), restore=checkpoint)
    job.kill()


def test_what_came_after_the_barrier_is_not_in_a_slow_upload():
    """I13: snapshots are encoded long after the cut, while user code has changed everything."""
    job = InProcessJob.of(every_kind_of_state(checkpointed(2)), max_records=5)
    checkpoint = job.checkpoint(complete=False)
    collected = list(checkpoint.results)
    for _ in range(3):
        job.epoch()
    job.complete(checkpoint)  # written only now
    job.kill()
    collected += InProcessJob.of(every_kind_of_state(checkpointed(2)), restore=checkpoint).run()
    clean = InProcessJob.of(every_kind_of_state(checkpointed(2))).run()
    assert Counter(map(repr, collected)) == Counter(map(repr, clean))


def test_an_aborted_checkpoint_leaves_its_changes_to_the_next():
    """I12, I19: deltas stand on the last completed checkpoint; the next one contains the changes of an aborted one."""
    job = InProcessJob.of(keyed_sums(checkpointed(2)), max_records=4)
    collected = list(job.checkpoint().results)
    lost = job.checkpoint(complete=False)
    collected += lost.results + job.epoch()
    job.abort(lost)
    with pytest.raises(AssertionError, match="was aborted"):
        lost.manifest  # noqa: B018
    checkpoint = job.checkpoint()
    collected += checkpoint.results
    assert checkpoint.order.base_id == 1
    job.kill()
    collected += InProcessJob.of(keyed_sums(checkpointed(2)), restore=checkpoint).run()
    assert sorted(collected) == sorted(InProcessJob.of(keyed_sums(checkpointed(2))).run())


def test_checkpoints_that_are_not_incremental_hold_everything():
    env = checkpointed(2)
    env.get_configuration().set_string("execution.checkpointing.incremental", "false")
    job = InProcessJob.of(keyed_sums(env), max_records=4)
    checkpoints = [job.checkpoint() for _ in range(3)]
    assert [kinds(checkpoint.manifest) for checkpoint in checkpoints] == [{PartKind.FULL}] * 3
    collected = [result for checkpoint in checkpoints for result in checkpoint.results]
    job.kill()
    collected += InProcessJob.of(keyed_sums(checkpointed(2)), restore=checkpoints[-1]).run()
    assert sorted(collected) == sorted(InProcessJob.of(keyed_sums(checkpointed(2))).run())


def test_later_checkpoints_hold_deltas_and_savepoints_everything():
    """I12: a savepoint stands on no checkpoint, and no checkpoint stands on it."""
    job = InProcessJob.of(keyed_sums(checkpointed(2)), max_records=4)
    first, second = job.checkpoint().manifest, job.checkpoint().manifest
    savepoint, third = job.checkpoint(savepoint=True).manifest, job.checkpoint()
    assert kinds(first) == kinds(savepoint) == {PartKind.FULL}
    assert PartKind.DELTA in kinds(second)
    assert third.order.base_id == 2
    assert any(isinstance(blob, FileRef) for blob in third.manifest.blobs())
    job.kill()


def kinds(manifest):
    return {part.kind for state in manifest.operators for subtask in state.subtasks for part in subtask.keyed}


def test_processing_time_timers_fire_after_the_restore_when_their_time_has_come():
    """I4: a timer that comes due after barrier n is in snapshot n, and what it emits belongs to a later epoch."""

    class Alarm(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(1000 * (1 + value))

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    def program(parallelism):
        env = checkpointed(parallelism)
        return (
            env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "none", int)
            .key_by(lambda n: n)
            .process(Alarm())
        )

    job = InProcessJob.of(program(2), ManualClock())
    checkpoint = job.checkpoint()
    assert checkpoint.results == []
    job.kill()
    clock = ManualClock()
    restored = InProcessJob.of(program(3), clock, restore=checkpoint)
    assert restored.epoch() == []
    clock.advance(2000)
    assert sorted(restored.epoch()) == [(0, 1000), (1, 2000)]
    clock.advance(1000)
    assert restored.epoch() == [(2, 3000)]
    restored.kill()


class Endless(Source):
    """Emits three numbers, then nothing; never ends."""

    def boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit("0", 0)]

    def create_reader(self, context, splits):
        return EndlessReader(splits)


class EndlessReader(SourceReader):
    def __init__(self, splits):
        self.splits = splits

    def poll(self, max_records):
        if not self.splits or self.splits[0].position:
            return []
        self.splits = [SourceSplit("0", 3)]
        return [0, 1, 2]

    def snapshot_state(self, checkpoint_id: int):
        return self.splits


def test_a_restored_function_sees_another_attempt_number():
    class Attempt(MapFunction):
        def open(self, runtime_context):
            self.attempt = runtime_context.get_attempt_number()

        def map(self, value):
            return self.attempt

    def program():
        return checkpointed(1).from_collection([1, 2], int).map(Attempt())

    job = InProcessJob.of(program(), max_records=1)
    checkpoint = job.checkpoint()
    job.kill()
    assert (checkpoint.results, InProcessJob.of(program(), restore=checkpoint).run()) == ([0], [1])


def test_the_error_of_a_function_comes_out_of_the_checkpoint_s_epoch():
    job = InProcessJob.of(checkpointed(1).from_collection([0], int).map(lambda n: 1 // n))
    with pytest.raises(OperatorFailure):
        job.checkpoint()
    job.kill()
