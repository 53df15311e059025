"""Threads of sources (I7, I8): readers run on the task's thread, source functions on threads with bounded buffers."""

from __future__ import annotations

import threading

from rekindle.common import WatermarkStrategy
from rekindle.datastream import SourceFunction
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.runtime.operators.source_context import SOURCE_BUFFER
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed

DEADLINE_S = 30
#: Records that an epoch takes from a source function, and by which `run` may be ahead.
AHEAD = 100


class Threads:
    """The threads on which user code ran, by method."""

    seen: dict[str, int] = {}


class ThreadSource(Source):
    def boundedness(self):
        return Boundedness.BOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit("0", 0)]

    def create_reader(self, context, splits):
        return ThreadReader(splits)


class ThreadReader(SourceReader):
    def __init__(self, splits):
        self.left = list(splits)

    def poll(self, max_records):
        Threads.seen["poll"] = threading.get_ident()
        return [self.left.pop().position] if self.left else None

    def snapshot_state(self, checkpoint_id: int):
        Threads.seen["reader snapshot"] = threading.get_ident()
        return self.left


class Flood(SourceFunction):
    """Collects without an end, and counts its records."""

    collected = 0
    full = threading.Event()

    def run(self, ctx):
        Threads.seen["run"] = threading.get_ident()
        while True:
            ctx.collect(Flood.collected)
            Flood.collected += 1
            if Flood.collected == AHEAD:
                Flood.full.set()

    def cancel(self):
        """Nothing to do: the full buffer ends `run`."""


def test_readers_are_polled_on_the_tasks_thread():
    """I7: only `SourceFunction.run` has a thread of its own."""
    before = set(threading.enumerate())  # an earlier test's thread may still be about to end: only new ones count
    stream = checkpointed().from_source(ThreadSource(), WatermarkStrategy.no_watermarks(), "own", int)
    job = InProcessJob.of(stream, max_records=1)
    assert set(threading.enumerate()) <= before
    job.checkpoint()
    job.kill()
    here = threading.get_ident()
    assert (Threads.seen["poll"], Threads.seen["reader snapshot"]) == (here, here)


def test_a_source_function_fills_a_bounded_buffer_and_waits():
    """I7, I5: `run` goes on between epochs, up to the number of records that the next epoch takes."""
    Flood.collected = 0
    Flood.full.clear()
    job = InProcessJob.of(checkpointed().add_source(Flood(), type_info=int), max_records=AHEAD)
    assert Flood.full.wait(DEADLINE_S)
    assert Threads.seen["run"] != threading.get_ident()
    (task,) = (task for task in job.tasks.values() if task.chain.stage == 0)
    assert task._head.operator._source_context.buffered() == AHEAD
    assert Flood.collected == AHEAD, "it went on although the buffer is full"
    for _ in range(5):
        job.epoch()
        assert task._head.operator._source_context.buffered() <= AHEAD, "it is ahead by more than an epoch"
    job.kill()
    task._head.operator._thread.join(DEADLINE_S)
    assert not task._head.operator._thread.is_alive()


class UnderLock(SourceFunction):
    """More records than the buffer holds, all under the checkpoint lock; keeps its own count, as in Flink."""

    def __init__(self, count):
        self.count = count

    def run(self, ctx):
        with ctx.get_checkpoint_lock():
            for number in range(self.count):
                ctx.collect(number, offset=number)
        UnderLock.collected.set()
        UnderLock.go.wait(DEADLINE_S)

    def cancel(self):
        UnderLock.go.set()

    collected = threading.Event()
    go = threading.Event()


def test_what_is_collected_under_the_lock_is_before_or_after_a_barrier_as_a_whole():
    """I8: the source and the barrier do not wait for each other; the buffer may exceed its bound."""
    UnderLock.collected.clear()
    UnderLock.go.clear()
    count = SOURCE_BUFFER + 1000
    job = InProcessJob.of(checkpointed().add_source(UnderLock(count), type_info=int), max_records=10)
    taken = len(job.checkpoint().results)
    assert UnderLock.collected.wait(DEADLINE_S), "the source waits for room under the lock"
    rest = job.checkpoint()
    assert taken in (0, count), "a barrier fell into what the lock holds together"
    assert taken + len(rest.results) == count
    job.kill()
