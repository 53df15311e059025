"""Raw state (S3): functions write it, checkpoints save it, restores deal it out; and the errors of a snapshot."""

from __future__ import annotations

import json
import logging
from collections import Counter

import pytest

from rekindle.common import Configuration, Types
from rekindle.datastream.functions import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    MapFunction,
    StateInitializationContext,
    StateSnapshotContext,
)
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.errors import IncompatibleStateError, StateAccessError
from rekindle.graph.nodes import OperatorKind, OperatorNode
from rekindle.graph.settings import JobSettings
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.context import Accumulators, OperatorContext
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.snapshot import CaptureInput, SnapshotDeclinedError, capture_operator
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.task_metrics import TaskMetricGroup
from rekindle.runtime.timers import InternalTimers
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed, environment

CUSTOM_RAW_KEYED = (
    "Attempting to snapshot timers to raw keyed state, but this operator has custom raw keyed state to write."
)
KEYS, RECORDS = 7, 70
MAX_PARALLELISM = {"pipeline.max-parallelism": "16"}


# -- raw operator state ------------------------------------------------------------------------------------------------


class Remembers(MapFunction, CheckpointedFunction):
    """Writes each record that it saw as a partition of raw operator state."""

    begun: list[list[int]] = []

    def initialize_state(self, context):
        assert isinstance(context, StateInitializationContext)
        assert isinstance(context, FunctionInitializationContext)
        self.seen = [json.load(each.get_stream()) for each in context.get_raw_operator_state_inputs()]
        assert list(context.get_raw_keyed_state_inputs()) == []
        self.begun.append(list(self.seen))

    def snapshot_state(self, context):
        assert isinstance(context, StateSnapshotContext)
        assert isinstance(context, FunctionSnapshotContext)
        output = context.get_raw_operator_state_output()
        for number in self.seen:
            output.start_new_partition()
            output.write(json.dumps(number).encode())
        assert output.get_number_of_partitions() == len(self.seen)

    def map(self, value):
        self.seen.append(value)
        return value


def remembering(parallelism):
    return environment(parallelism, **MAX_PARALLELISM).from_collection(list(range(9)), int).rebalance().map(Remembers())


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_partitions_of_raw_operator_state_stay_or_are_dealt_in_turn(parallelism):
    job = InProcessJob.of(remembering(2))
    checkpoint = job.checkpoint()
    job.kill()
    Remembers.begun.clear()
    InProcessJob.of(remembering(parallelism), restore=checkpoint).kill()
    assert sorted(number for own in Remembers.begun for number in own) == list(range(9))
    sizes = list(map(len, Remembers.begun))
    assert max(sizes) - min(sizes) <= 1
    if parallelism == 2:
        assert [{number % 2 for number in own} for own in Remembers.begun] == [{1}, {0}]


def test_what_is_written_without_a_partition_is_the_first_one():
    class Writes(MapFunction, CheckpointedFunction):
        def initialize_state(self, context):
            Remembers.begun.append([each.get_stream().read() for each in context.get_raw_operator_state_inputs()])

        def snapshot_state(self, context):
            output = context.get_raw_operator_state_output()
            output.write(b"one")
            output.write(b" piece")
            output.start_new_partition()

        def map(self, value):
            return value

    def program():
        return environment(1, **MAX_PARALLELISM).from_collection([1, 2], int).map(Writes())

    checkpoint = InProcessJob.of(program(), max_records=1).checkpoint()
    Remembers.begun.clear()
    InProcessJob.of(program(), restore=checkpoint).kill()
    assert Remembers.begun == [[b"one piece", b""]]


# -- raw keyed state, beside the other three kinds ---------------------------------------------------------------------


class FourKinds(KeyedProcessFunction, CheckpointedFunction):
    """Counts in all four kinds of state, so that they must agree."""

    def __init__(self, timer=None):
        self.timer = timer

    def initialize_state(self, context):
        self.by_key = {}
        for group in context.get_raw_keyed_state_inputs():
            entries = dict(json.load(group.get_stream()))
            assert {key_group(key, 16) for key in entries} == {group.get_key_group_id()}
            self.by_key.update(entries)
        self.raw_total = sum(int(each.get_stream().read()) for each in context.get_raw_operator_state_inputs())
        self.managed = context.get_keyed_state_store().get_state(ValueStateDescriptor("count", Types.LONG()))
        self.listed = context.get_operator_state_store().get_list_state(ListStateDescriptor("total", Types.LONG()))
        self.total = sum(self.listed.get())

    def snapshot_state(self, context):
        self.listed.update([self.total])
        context.get_raw_operator_state_output().write(str(self.raw_total).encode())
        output = context.get_raw_keyed_operator_state_output()
        by_group = {}
        for key, count in self.by_key.items():
            by_group.setdefault(output.assign_to_key_group(key), []).append((key, count))
        for group in sorted(by_group, reverse=True):
            assert group in output.get_key_group_list()
            assert not output.is_key_group_already_started(group)
            output.start_new_key_group(group)
            assert output.get_current_key_group() == group
            output.write(json.dumps(by_group[group]).encode())
        assert all(map(output.is_key_group_already_started, by_group))

    def process_element(self, value, ctx):
        if value == self.timer:
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10)
        key = ctx.get_current_key()
        self.total += 1
        self.raw_total += 1
        self.managed.update((self.managed.value() or 0) + 1)
        self.by_key[key] = self.by_key.get(key, 0) + 1
        assert self.managed.value() == self.by_key[key], "raw and managed keyed state differ"
        assert self.raw_total == self.total, "raw and managed operator state differ"
        yield key, self.by_key[key]

    def on_timer(self, timestamp, ctx):
        return ()


def four_kinds(parallelism, deltas=False, **timer):
    env = checkpointed(parallelism, **MAX_PARALLELISM) if deltas else environment(parallelism, **MAX_PARALLELISM)
    numbers = env.from_collection(list(range(RECORDS)), int).set_parallelism(1)
    return numbers.key_by(lambda n: f"key {n % KEYS}", str).process(FourKinds(**timer)).uid("four")


@pytest.mark.parametrize("deltas", [False, True], ids=["whole", "deltas"])
def test_all_four_kinds_of_state_go_on_at_any_parallelism(deltas):
    """3 -> 2 -> 4 -> 1; raw keyed state by key group, raw operator state dealt out."""
    checkpoint, seen = None, []
    for parallelism in (3, 2, 4, 1):
        job = InProcessJob.of(four_kinds(parallelism, deltas), max_records=8, restore=checkpoint)
        seen += job.checkpoint().results
        checkpoint = job.checkpoint()
        seen += checkpoint.results
        job.kill()
    (saved,) = (operator for operator in checkpoint.manifest.operators if operator.name == "KEYED PROCESS")
    (subtask,) = saved.subtasks
    assert subtask.keyed
    assert subtask.raw_keyed
    assert subtask.operator_state is not None
    assert len(subtask.raw_operator) == 1
    seen += InProcessJob.of(four_kinds(2, deltas), restore=checkpoint).run()
    assert Counter(seen) == Counter((f"key {n % KEYS}", n // KEYS + 1) for n in range(RECORDS))


def test_timers_beside_custom_raw_keyed_state_are_refused_until_they_are_gone():
    """S3's refusal: timers go to raw keyed state here."""
    clock = ManualClock()
    job = InProcessJob.of(four_kinds(1, timer=12), clock, max_records=10)
    first = job.checkpoint()
    assert first.declined is None
    refused = job.checkpoint()
    assert isinstance(refused.declined, SnapshotDeclinedError)
    assert str(refused.declined) == "Could not complete snapshot 2 for operator KEYED PROCESS (1/1)."
    assert str(refused.declined.__cause__).startswith(CUSTOM_RAW_KEYED)
    assert CUSTOM_RAW_KEYED in refused.declined.full_message()
    clock.advance(100)
    later = job.checkpoint()
    assert later.declined is None, "no timer is left"
    job.kill()
    seen = first.results + refused.results + later.results
    seen += InProcessJob.of(four_kinds(2), restore=later).run()
    assert len(seen) == RECORDS


# -- refusals ----------------------------------------------------------------------------------------------------------


class Writes(MapFunction, CheckpointedFunction):
    """Calls the given function with the snapshot's context."""

    def __init__(self, write):
        self.write = write

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        self.write(context)

    def map(self, value):
        return value


def declined(write, keyed=True):
    numbers = environment(2, **MAX_PARALLELISM).from_collection([1, 2, 3], int)
    stream = numbers.key_by(lambda n: n, int) if keyed else numbers.rebalance()
    job = InProcessJob.of(stream.map(Writes(write)))
    error = job.checkpoint().declined
    job.kill()
    assert error is not None
    return error


def test_raw_keyed_state_needs_keys():
    error = declined(lambda context: context.get_raw_keyed_operator_state_output(), keyed=False)
    assert isinstance(error.__cause__, StateAccessError)
    assert "its input is not keyed: call key_by(...)" in str(error.__cause__)


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([], "call start_new_key_group"),
        ([12], "this subtask has the key groups 0 to 7"),
        ([3, 4, 3], "Key group 3 was started before"),
    ],
)
def test_raw_keyed_state_is_written_by_key_group(groups, sentence):
    def write(context):
        output = context.get_raw_keyed_operator_state_output()
        for group in groups:
            output.start_new_key_group(group)
        output.write(b"x")

    assert sentence in str(declined(write).__cause__)


def test_raw_state_is_written_during_the_snapshot_only():
    asked, silent = [], []
    capture_operator(
        capture_input(user_snapshot=lambda context: asked.append(context.get_raw_operator_state_output())),
        CheckpointOrder(1, 0),
    )
    with pytest.raises(StateAccessError, match=r"written in snapshot_state\(\)"):
        asked[0].write(b"late")
    capture_operator(capture_input(user_snapshot=silent.append), CheckpointOrder(2, 0))
    with pytest.raises(StateAccessError, match="Snapshot 2 is over"):
        silent[0].get_raw_operator_state_output()


def test_raw_keyed_state_of_an_operator_that_is_not_keyed_any_more_is_refused():
    def program(keyed):
        def write(context):
            output = context.get_raw_keyed_operator_state_output()
            output.start_new_key_group(output.get_key_group_list()[0])

        numbers = environment(1, **MAX_PARALLELISM).from_collection([1, 2], int).uid("numbers").rebalance()
        return (numbers.key_by(lambda n: n, int) if keyed else numbers).map(Writes(write)).uid("writes")

    checkpoint = InProcessJob.of(program(True), max_records=1).checkpoint()
    with pytest.raises(OperatorFailure) as refused:
        InProcessJob.of(program(False), restore=checkpoint)
    assert isinstance(refused.value.__cause__, IncompatibleStateError)
    assert "not keyed any more" in str(refused.value.__cause__)


def test_raw_state_that_nobody_reads_is_told(caplog):
    def program():
        return environment(1, **MAX_PARALLELISM).from_collection([1, 2], int).map(Writes(write_something))

    checkpoint = InProcessJob.of(program(), max_records=1).checkpoint()
    with caplog.at_level(logging.WARNING, "rekindle.state"):
        InProcessJob.of(program(), restore=checkpoint).kill()
    assert "Map (1/1): the function has not read the restored raw operator state" in caplog.text


def write_something(context):
    context.get_raw_operator_state_output().write(b"something")


# -- errors of a snapshot ----------------------------------------------------------------------------------------------


def capture_input(**parts):
    node = OperatorNode(0, "uid", None, "count", OperatorKind.MAP, None, 2, 16, None)
    context = OperatorContext(
        node=node,
        subtask=0,
        attempt=1,
        clock=ManualClock(),
        accumulators=Accumulators(),
        metrics=TaskMetricGroup(ManualClock(), ("job",)),
        keyed=None,
        timers=parts.pop("timers", None),
        operator_state=OperatorStateBackend(0),
        batch=False,
        settings=JobSettings.of(Configuration()),
    )
    return CaptureInput(node.uid, context.task_name, context, **{"user_snapshot": lambda context: None, **parts})


def test_timers_without_a_keyed_backend_are_an_error():
    """Also under `python -O`, which has no assertions."""
    with pytest.raises(
        SnapshotDeclinedError, match=r"Could not complete snapshot 1 for operator count \(1/2\)"
    ) as told:
        capture_operator(capture_input(timers=InternalTimers(16, range(8))), CheckpointOrder(1, 0))
    assert isinstance(told.value.__cause__, StateAccessError)
    assert "keyed state backend should be available" in str(told.value.__cause__)


def test_what_goes_wrong_while_cleaning_up_is_told_beside_the_cause():
    def fails(context):
        output = context.get_raw_operator_state_output()
        output.close = full_disk.pop
        raise ValueError("cannot flush")

    full_disk = []
    with pytest.raises(SnapshotDeclinedError) as told:
        capture_operator(capture_input(user_snapshot=fails), CheckpointOrder(3, 0))
    assert [type(error) for error in told.value.suppressed] == [IndexError]
    assert told.value.full_message() == (
        "Could not complete snapshot 3 for operator count (1/2). ValueError: cannot flush "
        "(suppressed: IndexError: pop from empty list)"
    )
    full_disk.extend([None, None])
