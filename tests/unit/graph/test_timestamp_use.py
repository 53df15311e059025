"""A source may leave timestamps out only where it is certain that nothing reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common import Duration, Time, Types, WatermarkStrategy
from rekindle.datastream import DataStream, KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.datastream.functions import SinkFunction
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.window import TumblingEventTimeWindows
from rekindle.graph.build import build_plan
from rekindle.graph.timestamp_use import reads_element_timestamp, reads_record_timestamp

TAG = OutputTag("aside", Types.LONG())


def captured(value: Any, timestamp: int) -> int:
    return max([value], key=lambda each: timestamp) or 0


def any_number(value: Any, *others: int) -> int:
    return int(value)


def with_default(value: Any, timestamp: int, unit: int = 1) -> int:
    return int(value) * unit


@pytest.mark.parametrize(
    "assign", [captured, any_number, with_default, max, lambda value, timestamp: eval("timestamp")]
)
def test_an_assigner_whose_code_may_read_the_time_gets_it(assign: Any) -> None:
    assert reads_record_timestamp(assign)


def stored(value: Any, ctx: Any) -> Any:
    other = ctx
    return other.timestamp()


def in_a_list(value: Any, ctx: Any) -> Any:
    return [value, ctx]


def by_name(value: Any, ctx: Any) -> Any:
    return getattr(ctx, "time" + "stamp")()


def in_a_closure(value: Any, ctx: Any) -> Any:
    return max([value], key=lambda each: ctx.timestamp())


def as_a_method(value: Any, ctx: Any) -> Any:
    ask = ctx.timestamp
    return ask()


def given_away(value: Any, ctx: Any) -> Any:
    yield from stored(value, ctx)


@pytest.mark.parametrize(
    "process", [stored, in_a_list, by_name, in_a_closure, as_a_method, given_away, any_number, max]
)
def test_a_context_that_may_be_asked_for_the_time_counts_as_asked(process: Any) -> None:
    assert reads_element_timestamp(process)


class Blind(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if ctx.timer_service().current_watermark() > 0:
            ctx.output(TAG, value)
        yield value


class Reads(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield ctx.timestamp()


class Counts(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return [(ctx.get_current_key(), 1)]


class Keeps(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()
NONE = WatermarkStrategy.no_watermarks()
Shape = Callable[[DataStream], Any]


def needed(shape: Shape, strategy: WatermarkStrategy = NONE) -> bool:
    """Whether the source of a job must give timestamps."""
    env = StreamExecutionEnvironment.get_execution_environment()
    shape(env.from_source(NumberSequenceSource(1, 9), strategy, "numbers", Types.LONG()))
    (source,) = (node for node in build_plan(env._program("times")).nodes if node.kind.is_source)
    return source.timestamps_are_read


@pytest.mark.parametrize(
    "shape",
    [
        lambda stream: stream.map(str).filter(bool).key_by(len).process(Counts())._collect(),
        lambda stream: stream.process(Blind()).get_side_output(TAG).map(str)._collect(),
        lambda stream: stream.key_by(lambda n: n % 2).reduce(lambda a, b: a + b)._collect(),
    ],
)
def test_a_job_that_reads_no_timestamps_needs_none(shape: Shape) -> None:
    assert not needed(shape)
    assert not needed(shape, NONE.with_idleness(Duration.of_seconds(1)))
    assert needed(shape, MONOTONOUS)  # the watermarks come from them
    assert not needed(shape, MONOTONOUS.with_timestamp_assigner(lambda value, timestamp: value))


@pytest.mark.parametrize(
    "shape",
    [
        lambda stream: stream.map(str).process(Reads())._collect(),
        lambda stream: stream.process(Blind()).get_side_output(TAG).process(Reads())._collect(),
        lambda stream: stream.add_sink(Keeps()),
        lambda stream: stream.print(),
        lambda stream: stream.key_by(str).window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(max)._collect(),
        lambda stream: [stream.map(str)._collect(), stream.process(Reads())._collect()],
    ],
)
def test_one_reader_of_timestamps_is_enough(shape: Shape) -> None:
    assert needed(shape)
    assert not needed(shape, MONOTONOUS.with_timestamp_assigner(lambda value, timestamp: value))
