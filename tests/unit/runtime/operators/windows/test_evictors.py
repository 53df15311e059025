"""Evictors: before and after the function, with incremental functions, and custom ones."""

from __future__ import annotations

import pytest

from rekindle.common import Types
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import AggregateFunction, ProcessWindowFunction
from rekindle.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)
from tests.support.window_driver import WindowDriver, keyed_stream
from tests.unit.runtime.operators.windows.window_samples import values


class Numbers(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [number for _, number in elements]


def every_second(evictor, **settings):
    windowed = keyed_stream().window(GlobalWindows.create()).trigger(CountTrigger.of(2)).evictor(evictor)
    return WindowDriver(windowed.process(Numbers()), **settings)


def fired(windows, numbers):
    return [each for number in numbers for each in values(windows.element(("a", number), number))]


def test_count_keeps_the_last_ones():
    """Flink's Java `countWindow(3, 2)`: the last three elements, with every second one."""
    assert fired(every_second(CountEvictor.of(3)), range(1, 7)) == [[1, 2], [2, 3, 4], [4, 5, 6]]


def test_count_after_the_function():
    """The function sees all elements; those evicted afterwards are gone the next time."""
    assert fired(every_second(CountEvictor.of(1, True)), range(1, 7)) == [[1, 2], [2, 3, 4], [4, 5, 6]]


def test_time_keeps_what_is_near_the_newest():
    assert fired(every_second(TimeEvictor.of(3)), [1, 9, 8, 7, 11, 12]) == [[9], [9, 8, 7], [11, 12]]


def test_time_leaves_elements_without_timestamps_alone():
    windows = every_second(TimeEvictor.of(3))
    assert [values(windows.element(("a", number))) for number in (1, 2)] == [[], [[1, 2]]]


def test_delta_drops_what_is_far_from_the_last():
    far = DeltaEvictor.of(3, lambda one, last: abs(one[1] - last[1]))
    assert fired(every_second(far), [1, 9, 8, 7, 20, 10]) == [[9], [9, 8, 7], [9, 8, 10]]


class OnlyEven(Evictor):
    def evict_before(self, elements, size, window, evictor_context):
        assert size == len(elements)
        assert evictor_context.get_current_watermark() < evictor_context.get_current_processing_time()
        elements[:] = [each for each in elements if each.get_value()[1] % 2 == 0]

    def evict_after(self, elements, size, window, evictor_context):
        assert all(each.has_timestamp() for each in elements)


def test_an_evictor_of_ones_own():
    assert fired(every_second(OnlyEven()), range(1, 5)) == [[2], [2, 4]]


def test_a_process_function_sees_also_a_window_of_which_nothing_is_left():
    assert fired(every_second(OnlyEven()), [1, 3, 2, 4]) == [[], [2, 4]]


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def evicted(evaluate, evictor):
    windowed = keyed_stream().window(TumblingEventTimeWindows.of(10)).evictor(evictor)
    windows = WindowDriver(evaluate(windowed))
    windows.batch([(("a", number), number) for number in (1, 2, 3, 5)])
    return values(windows.watermark(9))


def test_incremental_functions_see_what_is_left():
    """With an evictor the window keeps its elements: sums are computed when it fires."""
    assert evicted(lambda windowed: windowed.reduce(lambda a, b: (a[0], a[1] + b[1])), CountEvictor.of(2)) == [("a", 8)]
    assert evicted(lambda windowed: windowed.aggregate(Average()), CountEvictor.of(3)) == [(10, 3)]
    assert evicted(lambda windowed: windowed.sum(1), CountEvictor.of(4)) == [("a", 11)]


def test_an_aggregate_of_nothing_is_that_of_an_empty_accumulator_and_a_reduce_of_nothing_is_nothing():
    assert evicted(lambda windowed: windowed.aggregate(Average()), CountEvictor.of(0)) == [(0, 0)]
    assert evicted(lambda windowed: windowed.sum(1), CountEvictor.of(0)) == []


@pytest.mark.parametrize("typed", [False, True])
def test_elements_of_merged_sessions_keep_their_timestamps_over_a_snapshot(typed):
    type_info = Types.TUPLE([Types.STRING(), Types.LONG()]) if typed else None
    windowed = keyed_stream(type_info).window(EventTimeSessionWindows.with_gap(5)).evictor(TimeEvictor.of(4))
    stream = windowed.process(Numbers())
    windows = WindowDriver(stream)
    windows.batch([(("a", 1), 1), (("a", 9), 9), (("a", 5), 5)])
    restored = WindowDriver(stream, restore=windows.snapshot())
    restored.element(("a", 10), 10)
    assert values(restored.watermark(MAX_WATERMARK)) == [[9, 10]]
    assert restored.rows() == 0
