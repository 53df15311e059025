"""`is_restored()`: whether the operator's state comes from a checkpoint; False for a task without state (S1, S4)."""

from __future__ import annotations

import threading

import pytest

from rekindle.common import Types
from rekindle.datastream.functions import (
    CheckpointedFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    SourceFunction,
)
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.testing import InProcessJob
from tests.support.environments import environment

DEADLINE_S = 30.0


class Told:
    """The answers of `is_restored()` in each function, and an event that lets the source go on."""

    said: list[tuple[str, bool, int | None]] = []
    go = threading.Event()


@pytest.fixture(autouse=True)
def told():
    Told.said.clear()
    Told.go.clear()
    yield Told.said
    Told.go.set()


class Tells(CheckpointedFunction):
    """Notes the answer of `is_restored()`."""

    def initialize_state(self, context):
        self.begin(context)
        Told.said.append((type(self).__name__, context.is_restored(), context.get_restored_checkpoint_id()))

    def begin(self, context):
        """Ask for state."""

    def snapshot_state(self, context):
        """Nothing to write: the state is always up to date."""


class Stateless(Tells, MapFunction):
    def map(self, value):
        return value


class WithEmptyList(Stateless):
    def begin(self, context):
        context.get_operator_state_store().get_list_state(ListStateDescriptor("empty", Types.LONG()))


class Keyed(Tells, KeyedProcessFunction):
    def begin(self, context):
        self.count = context.get_keyed_state_store().get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value


class Quiet(Tells, SourceFunction):
    """A source that remembers nothing, or the offset of its one record."""

    def __init__(self, offset):
        self.offset = offset

    def run(self, ctx):
        if ctx.restored_offset is None:
            ctx.collect(1, offset=self.offset)
        Told.go.wait(DEADLINE_S)

    def cancel(self):
        Told.go.set()


def begun_from(program, told, parallelism=2):
    """The notes of the functions after a restore from the first checkpoint."""
    job = InProcessJob.of(program(2), max_records=2)
    assert all(not restored and found is None for _, restored, found in told), "restored on a first run"
    checkpoint = job.checkpoint()
    job.kill()
    told.clear()
    InProcessJob.of(program(parallelism), restore=checkpoint).kill()
    return told


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_task_without_state_is_never_restored(told, parallelism):
    def program(parallelism):
        return environment(parallelism).from_collection([1, 2, 3, 4], int).rebalance().map(Stateless())

    assert begun_from(program, told, parallelism) == [("Stateless", False, None)] * parallelism


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_state_that_is_empty_on_a_subtask_is_state(told, parallelism):
    """A list that is empty on every subtask, and keys that are all on another subtask."""

    def program(parallelism):
        numbers = environment(parallelism).from_collection([1, 1, 1, 1], int)
        return numbers.key_by(lambda n: n, int).process(Keyed(), int).rebalance().map(WithEmptyList())

    begun = begun_from(program, told, parallelism)
    assert sorted(begun) == [("Keyed", True, 1)] * parallelism + [("WithEmptyList", True, 1)] * parallelism


@pytest.mark.parametrize(("offset", "restored"), [(None, False), (7, True)])
def test_a_source_is_restored_if_it_has_an_offset(told, offset, restored):
    def program(parallelism):
        return environment(1).add_source(Quiet(offset), "quiet", int)

    job = InProcessJob.of(program(1))
    while not job.epoch():
        pass
    checkpoint = job.checkpoint()
    job.kill()
    told.clear()
    Told.go.clear()
    InProcessJob.of(program(1), restore=checkpoint).kill()
    assert told == [("Quiet", restored, 1 if restored else None)]


def test_an_operator_that_is_new_in_the_program_begins_anew(told):
    class Listed(MapFunction, ListCheckpointed):
        def map(self, value):
            return value

        def snapshot_state(self, checkpoint_id, timestamp):
            return []

        def restore_state(self, state):
            Told.said.append(("Listed", True, None))

    def program(more):
        numbers = environment(1).from_collection([1, 2, 3, 4], int).uid("numbers").rebalance()
        stream = numbers.map(WithEmptyList()).uid("old")
        return stream.map(WithEmptyList()).uid("new").map(Listed()).uid("listed") if more else stream

    job = InProcessJob.of(program(False), max_records=2)
    checkpoint = job.checkpoint()
    job.kill()
    told.clear()
    InProcessJob.of(program(True), restore=checkpoint).kill()
    assert sorted(told) == [("WithEmptyList", False, None), ("WithEmptyList", True, 1)]
