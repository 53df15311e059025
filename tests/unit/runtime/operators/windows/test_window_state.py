"""The context of window functions: the window, clocks, state of the window and of the key, side outputs, `clear`."""

from __future__ import annotations

import pytest

from rekindle.common import Time, Types
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import (
    AggregateFunction,
    AllWindowFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.datastream.window import CountTrigger, GlobalWindows, TumblingEventTimeWindows
from rekindle.testing import ManualClock
from tests.support.window_driver import WindowDriver, keyed_stream, stream
from tests.unit.runtime.operators.windows.window_samples import TEN

pytestmark = pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])


class Concatenate(AggregateFunction):
    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return f"{accumulator}{value}"

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class AllKinds(ProcessWindowFunction):
    """Each kind of state, of the window and of the key, written and read in turn."""

    def process(self, key, context, elements):
        for store, scope in ((context.window_state(), "w"), (context.global_state(), "g")):
            value = store.get_state(ValueStateDescriptor("value", int))
            value.update((value.value() or 0) + 1)
            items = store.get_list_state(ListStateDescriptor("list", str))
            items.add(scope)
            items.add_all([scope])
            entries = store.get_map_state(MapStateDescriptor("map", str, int))
            entries.put(f"{scope}{len(list(entries.keys()))}", 1)
            total = store.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b, int))
            total.add(2)
            text = store.get_aggregating_state(AggregatingStateDescriptor("text", Concatenate(), str))
            text.add(scope)
        yield [self.seen(store) for store in (context.window_state(), context.global_state())]

    @staticmethod
    def seen(store):
        return (
            store.get_state(ValueStateDescriptor("value", int)).value(),
            "".join(store.get_list_state(ListStateDescriptor("list", str)).get()),
            sorted(store.get_map_state(MapStateDescriptor("map", str, int)).items()),
            store.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b, int)).get(),
            store.get_aggregating_state(AggregatingStateDescriptor("text", Concatenate(), str)).get(),
        )

    def clear(self, context):
        store = context.window_state()
        store.get_state(ValueStateDescriptor("value", int)).clear()
        store.get_list_state(ListStateDescriptor("list", str)).clear()
        store.get_map_state(MapStateDescriptor("map", str, int)).clear()
        store.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b, int)).clear()
        store.get_aggregating_state(AggregatingStateDescriptor("text", Concatenate(), str)).clear()


def test_every_kind_of_state_of_the_window_and_of_the_key(general):
    windowed = keyed_stream().window(TEN).allowed_lateness(100)
    processed = windowed.process(AllKinds())
    windows = WindowDriver(processed, general=general)
    windows.batch([(("a", 1), 1), (("a", 2), 11), (("b", 3), 12)])
    once = (1, "ww", [("w0", 1)], 2, "w")
    assert windows.watermark(9) == [([once, (1, "gg", [("g0", 1)], 2, "g")], 9)]
    second = (2, "gggg", [("g0", 1), ("g1", 1)], 4, "gg")
    assert windows.watermark(19) == [([once, second], 19), ([once, (1, "gg", [("g0", 1)], 2, "g")], 19)]
    # The state of a window lives as long as the window, over a snapshot too.
    windows = WindowDriver(processed, general=general, restore=windows.snapshot())
    third = (3, "gggggg", [("g0", 1), ("g1", 1), ("g2", 1)], 6, "ggg")
    again = (2, "wwww", [("w0", 1), ("w1", 1)], 4, "ww")
    assert windows.element(("a", 4), 2) == [([again, third], 9)]
    windows.watermark(MAX_WATERMARK)
    assert windows.rows() == 2  # what "a" and "b" keep for all their windows


class Firsts(ProcessWindowFunction):
    """Marks the first evaluation of a window, and tells of every `clear`."""

    first = ValueStateDescriptor("first", bool)
    cleared: list = []

    def process(self, key, context, elements):
        first = context.window_state().get_state(self.first)
        yield key, "again" if first.value() else "first"
        first.update(True)

    def clear(self, context):
        assert context.window_state().get_state(self.first).value() is True
        context.window_state().get_state(self.first).clear()
        Firsts.cleared.append(context.window().start)


def test_clear_is_called_once_when_the_window_goes(general):
    windows = WindowDriver(keyed_stream().window(TEN).allowed_lateness(5).process(Firsts()), general=general)
    cleared = windows.operator.function.cleared
    cleared.clear()
    windows.element(("a", 1), 1)
    assert windows.watermark(9) == [(("a", "first"), 9)]
    assert windows.element(("a", 2), 2) == [(("a", "again"), 9)]
    assert cleared == []
    windows.watermark(14)
    assert cleared == [0]
    windows.watermark(MAX_WATERMARK)
    assert cleared == [0]
    assert windows.rows() == 0


class Rich(ProcessWindowFunction):
    """State of the key through the runtime context, got once in `open()`."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", int))
        self.where = runtime_context.get_task_name()

    def process(self, key, context, elements):
        self.count.update((self.count.value() or 0) + 1)
        yield key, self.count.value(), context.current_watermark(), context.current_processing_time()

    def close(self):
        self.where = "closed"


def test_state_from_the_runtime_context_is_that_of_the_key(general):
    clock = ManualClock(77)
    windows = WindowDriver(keyed_stream().window(TEN).process(Rich()), clock, general=general)
    windows.batch([(("a", 1), 1), (("b", 1), 1), (("a", 2), 11)])
    results = windows.watermark(25)
    assert [value for value, _ in results] == [("a", 1, 25, 77), ("b", 1, 25, 77), ("a", 2, 25, 77)]
    windows.operator.close()
    assert windows.operator.function.where == "closed"


class OpenedReduce(ReduceFunction):
    def open(self, runtime_context):
        self.factor = 10

    def reduce(self, value1, value2):
        return value1[0], value1[1] + self.factor * value2[1]


def test_incremental_functions_are_opened_too(general):
    windows = WindowDriver(keyed_stream().window(TEN).reduce(OpenedReduce()), general=general)
    windows.batch([(("a", 1), 1), (("a", 2), 2)])
    assert windows.watermark(9) == [(("a", 21), 9)]


ODD = OutputTag("odd", int)


class Split(ProcessWindowFunction):
    def process(self, key, context, elements):
        for _, number in elements:
            if number % 3 == 0:
                context.output(ODD, number)
            elif number % 2:
                yield ODD, number
            else:
                yield number


def test_side_outputs(general):
    split = keyed_stream().window(TEN).process(Split())
    assert split.get_side_output(ODD).get_type() == Types.LONG()
    windows = WindowDriver(split, general=general, side_output="odd")
    windows.batch([(("a", number), number) for number in range(1, 7)])
    events = windows.watermark(9)
    assert [event for event in events if event[0] == "odd"] == [("odd", number, 9) for number in (1, 3, 5, 6)]
    assert [event for event in events if event[0] != "odd"] == [(2, 9), (4, 9)]


class TotalOfAll(AllWindowFunction):
    def apply(self, window, inputs):
        yield window.start, sum(inputs)


class StateOfAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        count = context.global_state().get_state(ValueStateDescriptor("count", int))
        count.update((count.value() or 0) + 1)
        yield context.window().end, count.value(), list(elements)


def test_windows_of_a_whole_stream(general):
    windowed = stream(int).window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    elements = [(1, 1), (2, 3), (3, 12)]
    for summed, expected in (
        (windowed.apply(TotalOfAll()), [((0, 3), 9), ((10, 3), 19)]),
        (windowed.process(StateOfAll()), [((10, 1, [1, 2]), 9), ((20, 2, [3]), 19)]),
        (windowed.reduce(lambda a, b: a + b), [(3, 9), (3, 19)]),
        (windowed.reduce(lambda a, b: a + b, TotalOfAll()), [((0, 3), 9), ((10, 3), 19)]),
        (windowed.sum(), [(3, 9), (3, 19)]),
        (windowed.max(), [(2, 9), (3, 19)]),
    ):
        windows = WindowDriver(summed, general=general)
        windows.batch(elements)
        assert windows.watermark(MAX_WATERMARK) == expected


def test_names_of_state_belong_to_those_who_use_them(general):
    """State of a trigger, of a window and of a key may have the same name: they stay apart."""

    class Counting(ProcessWindowFunction):
        count = ValueStateDescriptor("count", str)

        def process(self, key, context, elements):
            states = [store.get_state(self.count) for store in (context.window_state(), context.global_state())]
            yield [state.value() for state in states], len(list(elements))
            states[0].update("window")
            states[1].update("key")

    windowed = keyed_stream().window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    windows = WindowDriver(windowed.process(Counting()), general=general)
    fired = [event for number in range(4) for event in windows.element(("a", number))]
    assert [value for value, _ in fired] == [([None, None], 2), (["window", "key"], 4)]


def test_state_of_windows_may_have_a_time_to_live(general):
    class Expiring(ProcessWindowFunction):
        def process(self, key, context, elements):
            descriptor = ValueStateDescriptor("seen", int)
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(100)).build())
            seen = context.window_state().get_state(descriptor)
            yield seen.value()
            seen.update(len(list(elements)))

    windows = WindowDriver(keyed_stream().window(TEN).allowed_lateness(1_000).process(Expiring()), general=general)
    windows.element(("a", 1), 1)
    assert windows.watermark(9) == [(None, 9)]
    assert windows.element(("a", 2), 2) == [(1, 9)]
    windows.clock.advance(101)
    assert windows.element(("a", 3), 3) == [(None, 9)]
