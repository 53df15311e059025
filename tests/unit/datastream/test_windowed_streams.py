"""Windowed streams before they run: names, types, descriptions, and refused arguments."""

from __future__ import annotations

import importlib

import pytest

from rekindle.common import Duration, Time, Types
from rekindle.datastream import (
    AggregateFunction,
    AllWindowedStream,
    AllWindowFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowedStream,
    WindowFunction,
)
from rekindle.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rekindle.errors import GraphError, TypeMismatchError
from rekindle.graph.build import build_plan
from rekindle.graph.explain import explain
from rekindle.graph.nodes import OperatorKind
from tests.support.environments import environment

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
HOURLY = TumblingEventTimeWindows.of(Time.hours(1))


def pairs():
    env = environment(2)
    return env.from_collection([("a", 1)], PAIR)


def windowed(assigner=HOURLY):
    return pairs().key_by(lambda pair: pair[0], key_type=Types.STRING()).window(assigner)


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Apply(WindowFunction):
    def apply(self, key, window, inputs):
        yield key


class Process(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key


class ApplyAll(AllWindowFunction):
    def apply(self, window, inputs):
        yield window.start


class ProcessAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start


def node_of(stream):
    plan = build_plan(stream._env._program("test", stream._collect()))
    return next(node for node in plan.nodes if node.kind is OperatorKind.WINDOW)


def test_pyflinks_names_are_where_pyflink_has_them():
    window = importlib.import_module("rekindle.datastream.window")
    for name in [
        "Window",
        "TimeWindow",
        "CountWindow",
        "GlobalWindow",
        "TumblingProcessingTimeWindows",
        "TumblingEventTimeWindows",
        "SlidingProcessingTimeWindows",
        "SlidingEventTimeWindows",
        "ProcessingTimeSessionWindows",
        "EventTimeSessionWindows",
        "DynamicProcessingTimeSessionWindows",
        "DynamicEventTimeSessionWindows",
        "WindowAssigner",
        "MergingWindowAssigner",
        "CountTumblingWindowAssigner",
        "CountSlidingWindowAssigner",
        "TriggerResult",
        "Trigger",
        "EventTimeTrigger",
        "ProcessingTimeTrigger",
        "ContinuousEventTimeTrigger",
        "ContinuousProcessingTimeTrigger",
        "NeverTrigger",
        "PurgingTrigger",
        "CountTrigger",
        "TimeWindowSerializer",
        "CountWindowSerializer",
        "GlobalWindowSerializer",
        "SessionWindowTimeGapExtractor",
        "GlobalWindows",
        "Evictor",
        "CountEvictor",
        "TimeEvictor",
        "DeltaEvictor",
        "DeltaTrigger",
        "ProcessingTimeoutTrigger",
    ]:
        assert name in window.__all__, name
        assert hasattr(window, name), name
    streams = importlib.import_module("rekindle.datastream.data_stream")
    assert streams.WindowedStream is WindowedStream
    assert streams.AllWindowedStream is AllWindowedStream


def test_operators_are_named_after_their_windows():
    stream = windowed(SlidingEventTimeWindows.of(10, 5)).aggregate(Count())
    assert stream.get_name() == "SlidingEventTimeWindows"
    assert node_of(stream).description == "Window(SlidingEventTimeWindows(10, 5, 0), EventTimeTrigger(), Count)"


def test_descriptions_name_everything_that_decides():
    stream = windowed(GlobalWindows.create()).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(5)).process(Process())
    expected = "Window(GlobalWindows(), CountTrigger(3), CountEvictor(5), Process)"
    assert node_of(stream).description == expected


@pytest.mark.parametrize(
    ("evaluate", "expected"),
    [
        (lambda w: w.reduce(lambda a, b: a), PAIR),
        (lambda w: w.sum(1), PAIR),
        (lambda w: w.reduce(lambda a, b: a, Process()), Types.PICKLED_BYTE_ARRAY()),
        (lambda w: w.reduce(lambda a, b: a, Apply(), Types.STRING()), Types.STRING()),
        (lambda w: w.aggregate(Count()), Types.PICKLED_BYTE_ARRAY()),
        (lambda w: w.aggregate(Count(), accumulator_type=int, output_type=int), Types.LONG()),
        (lambda w: w.apply(Apply(), output_type=str), Types.STRING()),
        (lambda w: w.process(Process(), Types.STRING()), Types.STRING()),
    ],
)
def test_output_types(evaluate, expected):
    """A reduce keeps the type of its input. Other evaluations have the declared type, or none."""
    assert evaluate(windowed()).get_type() == expected


def test_the_type_of_the_accumulator_is_that_of_the_state():
    declared = node_of(windowed().aggregate(Count(), accumulator_type=Types.LONG(), output_type=Types.LONG()))
    assert declared.function.stored_type() == Types.LONG()
    rows = windowed().aggregate(Count(), accumulator_type=[Types.LONG(), Types.STRING()])
    assert node_of(rows).function.stored_type() == Types.ROW([Types.LONG(), Types.STRING()])
    evicted = windowed().evictor(CountEvictor.of(1)).aggregate(Count(), accumulator_type=Types.LONG())
    assert node_of(evicted).function.stored_type() == PAIR


def test_windows_that_pickle_say_so():
    """I20: `explain()` lists pickled state by the operator's name."""
    assert "windows of 'TumblingEventTimeWindows' (no type was declared)" in explain(
        build_plan(windowed().aggregate(Count(), output_type=int)._env._program("test"))
    )
    typed = windowed().aggregate(Count(), accumulator_type=int, output_type=int)
    assert "Pickled: nothing" in explain(build_plan(typed._env._program("test")))


def test_windows_of_a_whole_stream_have_one_subtask():
    node = node_of(pairs().window_all(HOURLY).sum(1))
    assert (node.parallelism, node.max_parallelism) == (1, 1)
    assert node.description.startswith("AllWindow(TumblingEventTimeWindows(3600000, 0)")


@pytest.mark.parametrize(
    ("make", "assigner"),
    [
        (lambda stream: stream.key_by(lambda pair: 0).count_window(3), "CountTumblingWindowAssigner(3)"),
        (lambda stream: stream.key_by(lambda pair: 0).count_window(4, 2), "CountSlidingWindowAssigner(4, 2)"),
        (lambda stream: stream.count_window_all(3), "CountTumblingWindowAssigner(3)"),
        (lambda stream: stream.count_window_all(4, 2), "CountSlidingWindowAssigner(4, 2)"),
    ],
)
def test_count_windows(make, assigner):
    assert f"{assigner}, PurgingTrigger(CountTrigger(" in node_of(make(pairs()).sum(1)).description


def test_the_types_of_what_windows_hold_can_be_asked():
    assert windowed().get_input_type() == PAIR
    assert isinstance(windowed().get_execution_environment(), StreamExecutionEnvironment)


def test_the_keys_of_a_union_of_streams():
    """A keyed union of two streams has common windows. Joins and co-groups rely on it."""
    first = pairs()
    second = first._env.from_collection([("b", 2)], PAIR)
    stream = first.union(second).key_by(lambda pair: pair[0]).window(HOURLY).process(Process())
    plan = build_plan(stream._env._program("test", stream._collect()))
    (node,) = [node for node in plan.nodes if node.kind is OperatorKind.WINDOW]
    assert len([edge for edge in plan.edges if edge.target == node.id]) == 2


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: windowed("hourly"), "WindowAssigner, not 'hourly'"),
        (lambda: windowed().trigger("now"), "takes a Trigger, not 'now'"),
        (lambda: windowed().evictor(CountTrigger.of(1)), "takes an Evictor"),
        (lambda: windowed().side_output_late_data("late"), "takes an OutputTag"),
        (lambda: windowed().allowed_lateness(Duration.of_millis(-1)), "0 or more ms"),
        (lambda: windowed().process(Apply()), "belongs in window(...).apply()"),
        (lambda: windowed().apply(Process()), "belongs in window(...).process()"),
        (lambda: windowed().process(ProcessAll()), "belongs in window_all(...).process()"),
        (lambda: windowed().reduce(lambda a: a), "2 arguments"),
        (lambda: windowed().reduce(lambda a, b: a, ApplyAll()), "belongs in window_all(...).apply()"),
        (lambda: windowed().aggregate(lambda a, b: a), "AggregateFunction"),
        (lambda: windowed().aggregate(Count), "write Count()"),
        (lambda: pairs().window_all(HOURLY).process(Process()), "belongs in window(...).process()"),
        (lambda: pairs().map(Process()), "belongs in window(...).process()"),
        (lambda: pairs().key_by(lambda pair: 0).count_window(0), "1 or more elements"),
        (lambda: TumblingEventTimeWindows.of(10, 10), "offset of less"),
        (lambda: SlidingEventTimeWindows.of(10, -1), "above 0"),
        (lambda: TumblingProcessingTimeWindows.of(0), "above 0"),
        (lambda: EventTimeSessionWindows.with_dynamic_gap(5), "SessionWindowTimeGapExtractor"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused_by_name(build, says):
    with pytest.raises(GraphError, match=r".") as refused:
        build()
    assert says in str(refused.value)


def test_fields_are_checked():
    with pytest.raises(TypeMismatchError, match="has no field 2"):
        windowed().sum(2)
    with pytest.raises(TypeMismatchError, match="cannot be summed"):
        windowed().sum(0)


def test_late_data_has_the_type_of_its_tag():
    tag = OutputTag("late", PAIR)
    stream = windowed().side_output_late_data(tag).sum(1)
    assert stream.get_side_output(tag).get_type() == PAIR


def test_windows_offset_and_in_amounts_of_any_kind():
    assert str(TumblingEventTimeWindows.of(Duration.of_minutes(1), Time.seconds(5))) == (
        "TumblingEventTimeWindows(60000, 5000)"
    )
    assert str(EventTimeSessionWindows.with_gap(Duration.of_seconds(1))) == "EventTimeSessionWindows(1000)"
