"""Operator state of restored jobs: split lists, union lists, `ListCheckpointed`, broadcast state."""

from __future__ import annotations

import pytest

from rekindle.common import Types
from rekindle.datastream import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
)
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.errors import IncompatibleStateError, TypeMismatchError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob, assert_survives
from tests.support.environments import checkpointed


class Holding(FlatMapFunction, CheckpointedFunction):
    """Keeps every record in operator state, and notes the restored records when it begins."""

    begun: list[tuple[int, bool, int | None, list[int]]] = []

    def __init__(self, union):
        self.union = union

    def open(self, runtime_context):
        restored, checkpoint_id, held = self.found
        self.begun.append((runtime_context.get_index_of_this_subtask(), restored, checkpoint_id, held))

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        get = store.get_union_list_state if self.union else store.get_list_state
        self.state = get(ListStateDescriptor("held", Types.LONG()))
        self.held = list(self.state.get())
        self.found = context.is_restored(), context.get_restored_checkpoint_id(), list(self.held)

    def snapshot_state(self, context):
        self.state.update(self.held)

    def flat_map(self, value):
        self.held.append(value)
        return ()


@pytest.fixture
def begun():
    Holding.begun.clear()
    return Holding.begun


def holding(parallelism, union=False):
    return checkpointed(parallelism).from_collection(list(range(7)), int).rebalance().flat_map(Holding(union))


def holding_cut(begun, union):
    job = InProcessJob.of(holding(2, union))
    assert begun == [(0, False, None, []), (1, False, None, [])]
    checkpoint = job.checkpoint()
    job.kill()
    begun.clear()
    return checkpoint


def test_split_lists_stay_with_their_subtask_or_are_dealt_out_again(begun):
    checkpoint = holding_cut(begun, union=False)
    own = [[1, 3, 5], [0, 2, 4, 6]]
    InProcessJob.of(holding(2), restore=checkpoint).kill()
    assert begun == [(0, True, 1, own[0]), (1, True, 1, own[1])]
    begun.clear()
    InProcessJob.of(holding(3), restore=checkpoint).kill()
    assert [subtask for subtask, *_ in begun] == [0, 1, 2]
    assert sorted(value for *_, held in begun for value in held) == list(range(7))
    assert max(len(held) for *_, held in begun) - min(len(held) for *_, held in begun) <= 1, "not dealt in turn"
    begun.clear()
    InProcessJob.of(holding(1), restore=checkpoint).kill()
    assert begun == [(0, True, 1, own[0] + own[1])]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_union_lists_go_to_everybody(begun, parallelism):
    checkpoint = holding_cut(begun, union=True)
    InProcessJob.of(holding(parallelism, union=True), restore=checkpoint).kill()
    assert [(subtask, sorted(held)) for subtask, _, _, held in begun] == [
        (subtask, list(range(7))) for subtask in range(parallelism)
    ]


class Listed(MapFunction, ListCheckpointed):
    """Numbers its records over all attempts."""

    def __init__(self):
        self.seen = 0

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.seen]

    def restore_state(self, state):
        self.seen = sum(state)

    def map(self, value):
        self.seen += 1
        return self.seen


def test_list_checkpointed():
    expected = assert_survives(
        lambda env: env.from_collection(list(range(12))).map(Listed()).set_parallelism(1), parallelisms=(1, 2)
    )
    assert expected == list(range(1, 13))


class Flushing(MapFunction):
    """Has `snapshot_state` but no `initialize_state`: the engine calls the one method that exists."""

    flushed: list[int] = []

    def snapshot_state(self, context):
        self.flushed.append(context.get_checkpoint_id())

    def map(self, value):
        return value


def test_a_function_that_only_flushes_is_told_of_every_snapshot():
    Flushing.flushed.clear()
    job = InProcessJob.of(checkpointed(1).from_collection([1, 2], int).map(Flushing()), max_records=1)
    job.checkpoint()
    job.checkpoint()
    assert Flushing.flushed == [1, 2]


class ListedNothing(Listed):
    """Returns None from its snapshot."""

    def snapshot_state(self, checkpoint_id, timestamp):
        return None


def test_list_checkpointed_with_none_is_an_empty_list():
    def program(env):
        return env.from_collection(list(range(4))).map(ListedNothing())

    job = InProcessJob.of(program(checkpointed(1)), max_records=3)
    checkpoint = job.checkpoint()
    job.kill()
    assert checkpoint.declined is None
    assert InProcessJob.of(program(checkpointed(1)), restore=checkpoint).run() == [1]


class Misdeclared(KeyedProcessFunction):
    """Keeps values that do not fit the declared type."""

    def open(self, runtime_context):
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.LONG()))

    def process_element(self, value, ctx):
        self.kept.update(str(value))
        yield value


def test_state_that_does_not_fit_its_declared_type_is_not_checkpointed():
    """Otherwise the checkpoint would complete, and no job could restore it."""
    env = checkpointed(1)
    job = InProcessJob.of(env.from_collection([1, 2]).key_by(lambda n: n).process(Misdeclared()), max_records=1)
    checkpoint = job.checkpoint(complete=False)
    # RocksDB encodes values when it captures them, so that the snapshot is declined; else its upload fails.
    refused = "Could not complete snapshot 1" if checkpoint.aborted else "'1' does not fit its declared type Long"
    with pytest.raises((TypeMismatchError, AssertionError), match=refused):
        job.complete(checkpoint)
    job.kill()


RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class Ruled(BroadcastProcessFunction):
    """Emits each element with the rules that it knows."""

    def process_element(self, value, ctx):
        rules = dict(ctx.get_broadcast_state(RULES).items())
        yield value, sorted(rules.items())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, value * value)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_broadcast_state_goes_to_everybody(parallelism):
    def program(width):
        env = checkpointed(width)
        rules = env.from_collection([1, 2, 3], int).broadcast(RULES)
        slow = env.from_collection(list(range(12)), int).rebalance()
        return slow.connect(rules).process(Ruled())

    job = InProcessJob.of(program(2), max_records=3)
    checkpoint = job.checkpoint()
    job.kill()
    results = InProcessJob.of(program(parallelism), max_records=3, restore=checkpoint).run()
    assert sorted(results) == [(value, [(1, 1), (2, 4), (3, 9)]) for value in range(3, 12)]


def test_broadcast_state_is_there_from_the_start(caplog):
    """Declared broadcast state exists before a function asks for it; a type that does not fit is refused at once."""

    def program(rules):
        env = checkpointed(1)
        broadcast = env.from_collection([1, 2, 3], int).broadcast(rules)
        return env.from_collection([], int).connect(broadcast).process(Ruled())

    job = InProcessJob.of(program(RULES))
    checkpoint = job.checkpoint()
    job.kill()
    job = InProcessJob.of(program(RULES), restore=checkpoint)
    job.checkpoint()
    job.kill()
    assert "nothing has asked" not in caplog.text
    with pytest.raises(OperatorFailure, match="Co-Process-Broadcast") as caught:
        InProcessJob.of(program(MapStateDescriptor("rules", Types.STRING(), Types.LONG())), restore=checkpoint)
    assert isinstance(caught.value.__cause__, IncompatibleStateError)
