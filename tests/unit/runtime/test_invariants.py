"""Invariants that no other test names, in process: I1, I2, I7, I8, I13, I19, I20."""

from __future__ import annotations

import contextlib
import pickle
import threading
from typing import Any

import pytest

from rekindle import wire
from rekindle.checkpoint import resolve
from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import (
    CheckpointingMode,
    KeyedProcessFunction,
    MapFunction,
    SourceFunction,
)
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.errors import GraphError, SerializationError
from rekindle.protocol import (
    END_OF_STAGE,
    CheckpointOrder,
    PumpHello,
    decode_pump_reply,
    encode_pump,
)
from rekindle.runtime.operators.source_context import SOURCE_BUFFER
from rekindle.runtime.pump_server import PumpServer
from rekindle.testing import InProcessJob, assert_survives
from tests.environments import checkpointed, environment

DEADLINE_S = 30
#: What an epoch takes of a source function, and so what `run` may be ahead.
AHEAD = 100


# -- I1 ----------------------------------------------------------------------------------------------------------------


class Alarm(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.get_current_key()


@pytest.mark.parametrize("restored", [False, True])
def test_timers_of_equal_time_fire_by_key_bytes(restored):
    """I1: whatever order they were registered or restored in."""
    records = [(key, time) for time in (20, 10) for key in (5, 300, 1, 2, 70000)]

    def program():
        stream = (
            checkpointed()
            .from_collection(records)
            .assign_timestamps_and_watermarks(
                WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 0)
            )
        )
        return stream.key_by(lambda pair: pair[0], int).process(Alarm())

    job = InProcessJob.of(program(), max_records=len(records))
    if restored:
        checkpoint = job.checkpoint()
        assert checkpoint.results == []
        job.kill()
        job = InProcessJob.of(program(), restore=checkpoint)
    assert job.run() == [(time, key) for time in (10, 20) for key in (1, 2, 5, 300, 70000)]


class Where(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.subtask, value


def test_the_first_record_of_a_subtask_goes_to_the_next_channel():
    """I1: round robin begins at channel (i + 1) mod n for subtask i."""
    stream = checkpointed(3).from_sequence(0, 2).rebalance().map(Where())
    assert sorted(InProcessJob.of(stream).run()) == [(0, 2), (1, 0), (2, 1)]


# -- I2 ----------------------------------------------------------------------------------------------------------------


class Host:
    """A slot's place: notes what happens, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.may_end = threading.Event()
        self.ended = threading.Event()

    def accept_row(self, row):
        self.events.append("row")

    def run_stage(self, hello):
        self.events.append("run")
        yield 0, b"out"

    @contextlib.contextmanager
    def releasing(self, hello):
        self.events.append("snapshots queued")
        yield
        self.may_end.wait(DEADLINE_S)
        self.events.append("released")
        self.ended.set()


def test_the_pump_is_released_before_the_snapshot_and_the_snapshot_is_queued_before_the_pump_goes(tmp_path):
    """I2: Spark need not wait for a slow snapshot, and no input of the next epoch can overtake it."""
    host = Host()
    server = PumpServer(str(tmp_path), b"secret", 1, host, loopback_only=True)
    pump = wire.connect_unix(server.unix_path, b"secret")
    pump.set_timeout(DEADLINE_S)
    pump.send(encode_pump(PumpHello(1, 1, 0, 10, 10, CheckpointOrder(1, 0))))
    assert decode_pump_reply(pump.receive()).refused is None
    pump.send(b"in")
    pump.send(b"")
    assert pump.receive().endswith(b"out")
    assert pump.receive() == END_OF_STAGE, "the pump waits for the snapshot"
    assert host.events == ["row", "run", "snapshots queued"]
    host.may_end.set()
    assert host.ended.wait(DEADLINE_S)
    pump.close()


# -- I7, I8 ------------------------------------------------------------------------------------------------------------


class Threads:
    """Where user code ran."""

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

    def snapshot_state(self):
        Threads.seen["reader snapshot"] = threading.get_ident()
        return self.left


class Flood(SourceFunction):
    """Collects for ever; knows how far it came."""

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
        """The full buffer ends it."""


def test_readers_are_polled_on_the_tasks_thread():
    """I7: no thread fights for the interpreter's lock; only `SourceFunction.run` has one of its own."""
    before = set(threading.enumerate())  # an earlier test's thread may still be about to end: only new ones count
    stream = checkpointed().from_source(ThreadSource(), WatermarkStrategy.no_watermarks(), "own", int)
    job = InProcessJob.of(stream, max_records=1)
    assert set(threading.enumerate()) <= before
    job.checkpoint()
    job.kill()
    here = threading.get_ident()
    assert (Threads.seen["poll"], Threads.seen["reader snapshot"]) == (here, here)


def test_a_source_function_fills_a_bounded_buffer_and_waits():
    """I7, I5: `run` goes on while no epoch runs, up to what the next one takes."""
    Flood.collected = 0
    Flood.full.clear()
    job = InProcessJob.of(checkpointed().add_source(Flood(), type_info=int), max_records=AHEAD)
    assert Flood.full.wait(DEADLINE_S)
    assert Threads.seen["run"] != threading.get_ident()
    (task,) = (task for task in job.tasks.values() if task.chain.stage == 0)
    assert task._head._source_context.buffered() == AHEAD
    assert Flood.collected == AHEAD, "it went on although the buffer is full"
    for _ in range(5):
        job.epoch()
        assert task._head._source_context.buffered() <= AHEAD, "it is ahead by more than an epoch"
    job.kill()
    task._head._thread.join(DEADLINE_S)
    assert not task._head._thread.is_alive()


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
    """I8: neither the source nor the barrier waits for the other, and the bound gives way."""
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


# -- I13 ---------------------------------------------------------------------------------------------------------------


class Mutating(KeyedProcessFunction):
    """Changes what it keeps in place, before and after the barrier."""

    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.PICKLED_BYTE_ARRAY()))
        mapped = MapStateDescriptor("mapped", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
        self.mapped = runtime_context.get_map_state(mapped)
        self.listed = runtime_context.get_list_state(ListStateDescriptor("listed", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        held = self.value.value() or {"seen": []}
        held["seen"].append(value)
        self.value.update(held)
        inner = self.mapped.get("inner") or []
        inner.append(value)
        self.mapped.put("inner", inner)
        self.listed.add([value])
        yield list(held["seen"]), list(inner), [list(each) for each in self.listed.get()]


def test_what_user_code_changes_in_place_after_the_barrier_is_not_in_the_snapshot():
    """I13: mutable values are encoded in the synchronous part, though the upload comes much later."""

    def program():
        return checkpointed().from_collection(list(range(8)), int).key_by(lambda n: 0, int).process(Mutating())

    job = InProcessJob.of(program(), max_records=2)
    first = job.checkpoint(complete=False)
    second = job.checkpoint(complete=False)
    job.epoch()
    for taken in (first, second):  # encoded only now
        job.complete(taken)
    job.kill()
    for taken, seen in ((first, 2), (second, 4)):
        after = InProcessJob.of(program(), max_records=2, restore=taken).run()
        numbers = list(range(seen + 1))
        assert after[0] == (numbers, numbers, [[number] for number in numbers])


# -- I19 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unaligned", [False, True])
def test_at_least_once_and_unaligned_are_accepted_and_give_exactly_once(unaligned):
    """I19: barriers are always aligned here; there is no second code path."""

    def program(env):
        checkpoints = env.get_checkpoint_config()
        mode = CheckpointingMode.EXACTLY_ONCE if unaligned else CheckpointingMode.AT_LEAST_ONCE
        checkpoints.set_checkpointing_mode(mode)
        checkpoints.enable_unaligned_checkpoints(unaligned)
        numbers = env.from_sequence(1, 30)
        return numbers.key_by(lambda n: n % 3, int).reduce(lambda a, b: a + b)

    totals = assert_survives(program, parallelism=1, parallelisms=(1, 2))
    assert len(totals) == 30


# -- I20 ---------------------------------------------------------------------------------------------------------------


class Opaque:
    """Only pickle can write it."""

    def __init__(self, number):
        self.number = number


class KeepOpaque(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        before = self.last.value()
        self.last.update(Opaque(value))
        yield None if before is None else before.number


def opaque_program(**settings: str) -> Any:
    stream = environment(**settings).from_collection(list(range(6)), int)
    return stream.key_by(lambda n: 0, int).process(KeepOpaque(), Types.LONG())


def test_metadata_is_read_without_pickle(monkeypatch):
    """I20: whatever the state is made of, finding, verifying and sharing out a checkpoint runs no code of it."""
    job = InProcessJob.of(opaque_program(), max_records=3)
    checkpoint = job.checkpoint()
    manifest = checkpoint.manifest
    job.kill()

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("pickle was asked to read metadata")

    with monkeypatch.context() as patch:
        for name in ("load", "loads", "Unpickler"):
            patch.setattr(pickle, name, refuse)
        assert resolve.load(checkpoint.store, checkpoint.path, deep=True).manifest == manifest
    assert InProcessJob.of(opaque_program(), restore=checkpoint).run() == [2, 3, 4]


def test_pickled_state_is_refused_where_the_settings_say_so():
    """I20: undeclared elements when the job is built, values of a declared-as-anything state when they are written."""
    refuse = {"state.pickle": "refuse"}
    job = InProcessJob.of(opaque_program(**refuse))
    declined = job.checkpoint().declined
    assert declined is not None
    assert isinstance(declined.__cause__, SerializationError)
    assert "Opaque" in str(declined.__cause__)
    job.kill()
    with pytest.raises(GraphError, match=r"state.pickle is 'refuse', but the job would pickle records from"):
        InProcessJob.of(environment(2, **refuse).from_collection([1]).key_by(lambda n: n).process(KeepOpaque()))
