"""An operator whose state layout differs from the one saved under its uid: the restore is refused in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rekindle.errors import IncompatibleStateError
from rekindle.protocol import Verdict
from rekindle.runtime.failure_report import describe_failure
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import environment

RECORDS = [("a", 1), ("b", 2), ("a", 3), ("a", 4)]
MINUTE = Duration.of_minutes(1)


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Contents(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, list(elements)


class Own(KeyedProcessFunction):
    seen: Any

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        self.seen.update((self.seen.value() or 0) + 1)
        yield value


class OwnAsList(Own):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))


class OwnAsText(Own):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.STRING()))


def keyed(type_info=None):
    env = environment(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1] * 1000)
    stream = env.from_collection(RECORDS, type_info).uid("records")
    return stream.assign_timestamps_and_watermarks(strategy).uid("time").key_by(lambda record: record[0])


def reduced(windows):
    return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))


PROGRAMS = {
    "event-time windows of reduced values": lambda: reduced(keyed().window(TumblingEventTimeWindows.of(MINUTE))),
    "event-time windows of accumulators": lambda: (
        keyed().window(TumblingEventTimeWindows.of(MINUTE)).aggregate(Total())
    ),
    "event-time windows of elements": lambda: keyed().window(TumblingEventTimeWindows.of(MINUTE)).process(Contents()),
    "event-time windows of timestamped elements": lambda: (
        keyed().window(TumblingEventTimeWindows.of(MINUTE)).evictor(CountEvictor.of(2)).process(Contents())
    ),
    "merging event-time windows of reduced values": lambda: reduced(
        keyed().window(EventTimeSessionWindows.with_gap(MINUTE))
    ),
    "merging processing-time windows of reduced values": lambda: reduced(
        keyed().window(ProcessingTimeSessionWindows.with_gap(MINUTE))
    ),
    "processing-time windows of reduced values": lambda: reduced(
        keyed().window(TumblingProcessingTimeWindows.of(MINUTE))
    ),
    "global windows of reduced values": lambda: reduced(keyed().window(GlobalWindows.create())),
    "count windows of elements": lambda: keyed().count_window(100).process(Contents()),
    "a rolling aggregation": lambda: keyed().reduce(lambda a, b: (a[0], a[1] + b[1])),
    "what a user's function keeps": lambda: keyed().process(Own()),
}


def checkpoint_of(stream):
    job = InProcessJob.of(stream, max_records=3)
    checkpoint = job.checkpoint()
    job.kill()
    return checkpoint


def build(name):
    return PROGRAMS[name]().uid("changing").name("changing")


@pytest.mark.parametrize("saved", PROGRAMS)
def test_every_other_layout_is_refused_by_name_and_its_own_goes_on(saved):
    checkpoint = checkpoint_of(build(saved))
    before = checkpoint.store.list()
    for wanted in PROGRAMS:
        if wanted == saved:
            InProcessJob.of(build(wanted), restore=checkpoint).kill()
            continue
        with pytest.raises(IncompatibleStateError) as refused:
            InProcessJob.of(build(wanted), restore=checkpoint)
        assert str(refused.value) == (
            f"Operator 'changing' cannot take its state: it was saved as {saved}, but the program has {wanted} under "
            "the same uid. Give the new operator another uid() and allow that the old state is dropped with "
            "execution.state-recovery.ignore-unclaimed-state, or go on with the program that saved it."
        )
    assert checkpoint.store.list() == before, "something was written or lost"


def test_windows_of_another_size_go_on_where_the_old_ones_were():
    """As in Flink: windows that exist keep the size with which they began."""
    checkpoint = checkpoint_of(build("event-time windows of reduced values"))
    stream = reduced(keyed().window(TumblingEventTimeWindows.of(Duration.of_seconds(4)))).uid("changing")
    assert sorted(InProcessJob.of(stream, restore=checkpoint).run()) == [("a", 4), ("a", 4), ("b", 2)]


def refusal(program, checkpoint):
    """The failure report that the driver gets."""
    with pytest.raises(OperatorFailure) as failed:
        InProcessJob.of(program, restore=checkpoint)
    return describe_failure("task", None, failed.value)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (OwnAsList(), "State 'seen' was saved as value state of"),
        (OwnAsText(), "State 'seen': each value was saved as"),
    ],
)
def test_another_kind_or_type_of_a_state_is_told_with_its_operator(function, sentence):
    checkpoint = checkpoint_of(build("what a user's function keeps"))
    told = refusal(keyed().process(function).uid("changing").name("changing"), checkpoint)
    assert (told.operator, told.verdict) == ("changing", Verdict.INCOMPATIBLE)
    assert told.sentence.startswith(sentence)
    assert told.sentence.endswith("another name.")


def test_state_by_key_needs_a_key():
    checkpoint = checkpoint_of(build("what a user's function keeps"))
    env = environment(1)
    records = env.from_collection(RECORDS).uid("records")
    timed = records.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).uid("time")
    told = refusal(timed.map(lambda record: record).uid("changing").name("changing"), checkpoint)
    assert (told.operator, told.verdict) == ("changing", Verdict.INCOMPATIBLE)
    assert "is not keyed any more" in told.sentence


class Moved:
    """A class that a later program does not have any more."""


class KeepsAnObject(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.held = runtime_context.get_state(ValueStateDescriptor("held", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        self.held.update(Moved())
        yield value


def test_a_class_that_is_gone_is_told_with_its_state(monkeypatch):
    stream = keyed().process(KeepsAnObject()).uid("changing").name("changing")
    checkpoint = checkpoint_of(stream)
    assert checkpoint.manifest.operators
    again = keyed().process(KeepsAnObject()).uid("changing").name("changing")
    monkeypatch.delattr(f"{__name__}.Moved")
    told = refusal(again, checkpoint)
    assert (told.operator, told.verdict) == ("changing", Verdict.INCOMPATIBLE)
    assert "State 'held'" in told.sentence
    assert "Moved" in told.sentence


class GoesOnAnyway(OwnAsList):
    def open(self, runtime_context: RuntimeContext) -> None:
        try:
            super().open(runtime_context)
        except IncompatibleStateError:
            self.seen = runtime_context.get_state(ValueStateDescriptor("other", Types.LONG()))


def test_who_swallows_the_error_gets_no_checkpoint_without_the_state():
    """The refused state would be missing from it, and lost once the older checkpoint is deleted."""
    checkpoint = checkpoint_of(build("what a user's function keeps"))
    job = InProcessJob.of(keyed().process(GoesOnAnyway()).uid("changing"), restore=checkpoint, max_records=1)
    later = job.checkpoint()
    job.kill()
    assert later.declined is not None
    assert isinstance(later.declined.__cause__, IncompatibleStateError)
