"""I5: whatever a function makes of one element, an operator hands it on in batches of bounded size, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common import Time, Types, WatermarkStrategy
from rekindle.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.state import MapStateDescriptor
from rekindle.datastream.window import CountTrigger, EventTimeSessionWindows, GlobalWindows, TumblingEventTimeWindows
from rekindle.runtime.operators.output import OUTPUT_RECORDS, OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import environment

#: More than two full batches, and a rest.
MANY = 2 * OUTPUT_RECORDS + 1000
SIDE = OutputTag("side", Types.LONG())
RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())
EVERY_STAMP = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)


class Batches:
    """A consumer that keeps the records and the sizes of their batches."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.records: list[Any] = []
        self.times: list[int | None] = []

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        self.sizes.append(len(records))
        self.records += records
        self.times += [None] * len(records) if timestamps is None else timestamps

    def emit_watermark(self, watermark: int) -> None: ...
    def emit_idle(self) -> None: ...
    def emit_end(self) -> None: ...


def emitted(stream: DataStream, tag: OutputTag | None = None) -> Batches:
    """The batches that the operator of the stream hands on."""
    job = InProcessJob.of(stream.name("under test"))
    batches = Batches()
    operators = [operator for task in job.tasks.values() for operator in task._operators.values()]
    (operator,) = (operator for operator in operators if operator.name == "under test")
    operator.output.add(batches, None if tag is None else tag.tag_id)
    job.run()
    return batches


def one(value: int = 7) -> DataStream:
    return environment().from_collection([value], Types.LONG()).assign_timestamps_and_watermarks(EVERY_STAMP)


def nothing_beside(stream: DataStream) -> DataStream:
    return stream.filter(lambda value: False)


class Yields(ProcessFunction):
    def process_element(self, value, ctx):
        yield from range(MANY)


class KeyedYields(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield from range(MANY)


class AtATimer(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp, ctx):
        yield from range(MANY)


class CoYields(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield from range(MANY)

    def process_element2(self, value, ctx): ...


class KeyedCoYields(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield from range(MANY)

    def process_element2(self, value, ctx): ...


class CoFlat(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from range(MANY)

    def flat_map2(self, value): ...


class OfRules(BroadcastProcessFunction):
    def process_element(self, value, ctx): ...

    def process_broadcast_element(self, value, ctx):
        yield from range(MANY)


class OfElements(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield from range(MANY)

    def process_broadcast_element(self, value, ctx): ...


class Joined(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield from range(MANY)


class OfWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield from range(MANY)


class Asks(AsyncFunction):
    async def async_invoke(self, value):
        return list(range(MANY))


def _co(stream: DataStream) -> Any:
    return stream.connect(nothing_beside(stream))


def _keyed(stream: DataStream) -> Any:
    return stream.key_by(lambda value: 0)


def _broadcast(stream: DataStream) -> Any:
    return nothing_beside(stream).connect(stream.broadcast(RULES))


KINDS: dict[str, Callable[[DataStream], DataStream]] = {
    "flat_map": lambda one: one.flat_map(lambda value: range(MANY)),
    "process": lambda one: one.process(Yields()),
    "keyed process": lambda one: _keyed(one).process(KeyedYields()),
    "timer": lambda one: _keyed(one).process(AtATimer()),
    "co-flat_map": lambda one: _co(one).flat_map(CoFlat()),
    "co-process": lambda one: _co(one).process(CoYields()),
    "keyed co-process": lambda one: one.key_by(str).connect(nothing_beside(one).key_by(str)).process(KeyedCoYields()),
    "broadcast": lambda one: _broadcast(one).process(OfRules()),
    "keyed broadcast": lambda one: _keyed(one).connect(nothing_beside(one).broadcast(RULES)).process(OfElements()),
    "interval join": lambda one: (
        _keyed(one).interval_join(_keyed(one)).between(Time.milliseconds(-1), Time.milliseconds(1)).process(Joined())
    ),
    "tumbling window": lambda one: (
        _keyed(one).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(OfWindow())
    ),
    "session window": lambda one: (
        _keyed(one).window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).process(OfWindow())
    ),
    "window with a trigger": lambda one: (
        _keyed(one).window(GlobalWindows.create()).trigger(CountTrigger.of(1)).process(OfWindow())
    ),
    "async": lambda one: AsyncDataStream.unordered_wait(one, Asks(), Time.seconds(60)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_function_makes_of_one_element_is_handed_on_in_bounded_batches(kind):
    batches = emitted(KINDS[kind](one()))
    assert batches.records == list(range(MANY))
    assert max(batches.sizes) <= OUTPUT_RECORDS


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"tumbling window", "session window", "window with a trigger"}))
def test_all_of_them_have_the_time_of_their_element(kind):
    assert set(emitted(KINDS[kind](one())).times) == {7}


def test_results_of_elements_without_a_time_have_none():
    stream = environment().from_collection([1], Types.LONG()).flat_map(lambda value: range(3))
    assert emitted(stream).times == [None] * 3


def test_a_side_output_is_bounded_too():
    class ToTheSide(ProcessFunction):
        def process_element(self, value, ctx):
            for number in range(MANY):
                yield SIDE, number
            yield -1

    batches = emitted(one().process(ToTheSide()), SIDE)
    assert batches.records == list(range(MANY))
    assert max(batches.sizes) <= OUTPUT_RECORDS


def test_what_a_window_gives_to_a_side_output_is_bounded_too():
    class ToTheSide(ProcessWindowFunction):
        def process(self, key, context, elements):
            for number in range(MANY):
                context.output(SIDE, number)
            yield -1

    stream = _keyed(one()).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(ToTheSide())
    batches = emitted(stream, SIDE)
    assert batches.records == list(range(MANY))
    assert max(batches.sizes) <= OUTPUT_RECORDS


def test_a_window_may_yield_and_give_to_a_side_output_in_turn():
    class Both(ProcessWindowFunction):
        def process(self, key, context, elements):
            for number in range(MANY):
                context.output(SIDE, number)
                yield number

    stream = _keyed(one()).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Both())
    assert emitted(stream).records == emitted(stream, SIDE).records == list(range(MANY))


def test_windows_of_very_many_keys_are_handed_on_in_bounded_batches():
    stream = (
        environment()
        .from_collection([(key, 1) for key in range(MANY)], Types.TUPLE([Types.LONG(), Types.LONG()]))
        .assign_timestamps_and_watermarks(EVERY_STAMP.with_timestamp_assigner(lambda value, _: 7))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda a, b: a)
    )
    batches = emitted(stream)
    assert batches.records == [(key, 1) for key in range(MANY)]
    assert max(batches.sizes) <= OUTPUT_RECORDS


def test_the_last_values_of_a_reduce_in_batch_mode_are_handed_on_in_bounded_batches():
    env = environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection(range(MANY), Types.LONG()).key_by(lambda value: value).reduce(lambda a, b: a)
    batches = emitted(stream)
    assert sorted(batches.records) == list(range(MANY))
    assert max(batches.sizes) <= OUTPUT_RECORDS


def test_a_failure_downstream_that_a_window_function_swallows_comes_again():
    """`context.output` may hand on a full batch: the window function cannot swallow an error from downstream."""

    class Swallows(ProcessWindowFunction):
        def process(self, key, context, elements):
            for number in range(MANY):
                try:
                    context.output(SIDE, number)
                except Exception:
                    continue
            return []

    def refuse(value):
        if value == 0:
            raise ValueError("refused")
        return value

    stream = _keyed(one()).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Swallows())
    with pytest.raises(OperatorFailure) as failure:
        InProcessJob.of(stream.get_side_output(SIDE).map(refuse).name("refusing")).run()
    assert failure.value.operator == "refusing"


def test_a_record_that_changes_after_it_was_yielded_goes_on_as_it_was():
    class Reuses(KeyedProcessFunction):
        def process_element(self, value, ctx):
            held = {"n": 0}
            for number in range(3):
                held["n"] = number
                yield held

    assert emitted(_keyed(one()).process(Reuses())).records == [{"n": 0}, {"n": 1}, {"n": 2}]
