"""Sources of restored jobs: they go on from their positions, and do not run again after their end (I8, I9)."""

from __future__ import annotations

import threading

import pytest

from rekindle.common import WatermarkStrategy
from rekindle.datastream import ParallelSourceFunction, SourceFunction
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.errors import IncompatibleStateError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed
from tests.support.waiting import becomes_true
from tests.unit.runtime.checkpoint_programs import Gathered, every_kind_of_state

# -- sources: positions and their end (I8, I9) -------------------------------------------------------------------------


class Remembering(SourceFunction):
    """Notes the offset at which it started; waits in the middle if its test says so."""

    started: list[object] = []
    paused = threading.Event()
    go = threading.Event()

    def __init__(self, count, pause_at=None):
        self.count = count
        self.pause_at = pause_at

    def run(self, ctx):
        self.started.append(ctx.restored_offset)
        start = -1 if ctx.restored_offset is None else ctx.restored_offset
        for number in range(start + 1, self.count):
            ctx.collect(number, offset=number)
            if number == self.pause_at:
                self.paused.set()
                self.go.wait(10)

    def cancel(self):
        self.go.set()


@pytest.fixture
def started():
    Remembering.started.clear()
    Remembering.paused.clear()
    Remembering.go.clear()
    return Remembering.started


def wait_until_returned(job):
    for task in job.tasks.values():
        if (
            task.chain.stage == 0
            and hasattr(task._head.operator, "_thread")
            and task._head.operator._thread.ident is not None
        ):
            task._head.operator._thread.join(10)
            assert not task._head.operator._thread.is_alive()


def test_a_source_function_goes_on_after_the_offset_of_the_cut(started):
    """I8: the offset of the last record before the cut, whatever was collected after it."""
    job = InProcessJob.of(checkpointed(1).add_source(Remembering(10, pause_at=5), type_info=int))
    assert Remembering.paused.wait(10)
    checkpoint = job.checkpoint()
    Remembering.go.set()
    wait_until_returned(job)
    job.epoch()
    job.kill()
    restored = InProcessJob.of(checkpointed(1).add_source(Remembering(10), type_info=int), restore=checkpoint)
    wait_until_returned(restored)
    assert restored.run() == [6, 7, 8, 9]
    assert started == [None, 5]


def finished_and_not(parallelism):
    env = checkpointed(parallelism)
    done = env.add_source(Remembering(3), type_info=int)
    return done.union(env.from_collection(list(range(100, 110)), int)).key_by(lambda n: n % 2, int).process(Gathered())


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_source_that_had_ended_is_not_run_again(started, parallelism):
    """I9: its end is sent again after a restore, and the job ends with the records of the other sources."""
    job = InProcessJob.of(finished_and_not(2), max_records=4)
    wait_until_returned(job)
    job.epoch()
    checkpoint = job.checkpoint()
    job.kill()
    assert started == [None]
    restored = InProcessJob.of(finished_and_not(parallelism), max_records=4, restore=checkpoint)
    results = restored.run()
    assert started == [None], "the source that had ended was run again"
    assert sorted(results) == [(0, [0, 2, 100, 102, 104, 106, 108]), (1, [1, 101, 103, 105, 107, 109])]


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("tail", [(1, 1), (2, 2), (2, 3), (3, 1)])
def test_one_subtask_has_ended_and_another_has_not(before, after, tail):
    """I9: tasks behind a subtask that ended early end with it, and run again when other subtasks send to them now."""
    tail_before, tail_after = tail

    def program(parallelism, tail_parallelism):
        env = checkpointed(parallelism)
        # Three splits of unequal length, so that subtasks end in different epochs.
        numbers = env.from_source(Uneven(), WatermarkStrategy.no_watermarks(), "uneven", int)
        mapped = numbers.map(lambda n: n + 1).disable_chaining()
        again = mapped.map(lambda n: n - 1).disable_chaining()
        return again.key_by(lambda n: n % 2, int).process(Gathered()).set_parallelism(tail_parallelism)

    job = InProcessJob.of(program(before, tail_before), max_records=2)
    for _ in range(2):
        checkpoint = job.checkpoint()
        assert checkpoint.results == []
    job.kill()
    restored = InProcessJob.of(program(after, tail_after), max_records=2, restore=checkpoint)
    gathered = run_at_most(restored, 20)
    assert sorted(gathered) == [(rest, [n for n in Uneven.everything() if n % 2 == rest]) for rest in (0, 1)]


class Uneven(Source):
    """Splits "1", "4" and "9": the numbers below each, times a hundred."""

    LENGTHS = (1, 4, 9)

    @classmethod
    def everything(cls):
        return [length * 100 + number for length in cls.LENGTHS for number in range(length)]

    def boundedness(self):
        return Boundedness.BOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit(str(length), 0) for length in self.LENGTHS]

    def create_reader(self, context, splits):
        return UnevenReader(splits)


class UnevenReader(SourceReader):
    def __init__(self, splits):
        self.left = list(splits)

    def poll(self, max_records):
        while self.left:
            split = self.left[0]
            length, until = int(split.split_id), min(int(split.split_id), split.position + max_records)
            records = [length * 100 + number for number in range(split.position, until)]
            if records:
                self.left[0] = SourceSplit(split.split_id, until)
                return records
            self.left.pop(0)
        return None

    def snapshot_state(self, checkpoint_id: int):
        return list(self.left)


def run_at_most(job, epochs):
    """A job that does not end is a failure, not an endless test."""
    collected = []
    for _ in range(epochs):
        if job.finished:
            return collected + job.run()
        collected += job.epoch()
    raise AssertionError(f"the job did not end within {epochs} epochs")


def test_a_restore_from_the_last_checkpoint_of_a_job_gives_nothing_new():
    """I9: everything had ended, so nothing is emitted, fired or finished again."""
    job = InProcessJob.of(every_kind_of_state(checkpointed(2)), max_records=10)
    while not job.finished:
        job.epoch()
    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(every_kind_of_state(checkpointed(2)), restore=checkpoint)
    assert run_at_most(restored, 3) == []


# -- offsets without splits, and killed jobs ---------------------------------------------------------------------------


def test_offsets_without_splits_keep_their_parallelism(started):
    """I8: an offset per subtask says nothing about another number of subtasks."""

    class EachItsOwn(ParallelSourceFunction):
        def run(self, ctx):
            ctx.collect(1, offset=1)
            Remembering.go.wait(10)

        def cancel(self):
            Remembering.go.set()

    def program(parallelism):
        return checkpointed(parallelism).add_source(EachItsOwn(), "each its own", int)

    job = InProcessJob.of(program(2))
    assert becomes_true(lambda: all(task.has_input() for task in job.tasks.values()), deadline_s=10.0)
    checkpoint = job.checkpoint()
    job.kill()
    with pytest.raises(OperatorFailure) as refused:
        InProcessJob.of(program(3), restore=checkpoint)
    assert isinstance(refused.value.__cause__, IncompatibleStateError)
    assert "'Source: each its own' keeps an offset per subtask" in str(refused.value.__cause__)


def test_a_killed_job_ends_the_threads_of_its_sources():
    class Forever(SourceFunction):
        def run(self, ctx):
            number = 0
            while True:
                ctx.collect(number)
                number += 1

        def cancel(self):
            """Nothing to do: the full buffer ends `run`."""

    job = InProcessJob.of(checkpointed(1).add_source(Forever(), type_info=int), max_records=10)
    job.epoch()
    threads = [task._head.operator._thread for task in job.tasks.values() if task.chain.stage == 0]
    job.kill()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
