"""Sessions: they merge in whatever order elements come, with their contents and timers."""

from __future__ import annotations

from itertools import permutations

import pytest

from rekindle.common import Time
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import AggregateFunction, ProcessWindowFunction, WindowFunction
from rekindle.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from rekindle.errors import GraphError, StateAccessError
from rekindle.runtime.operators.output import OperatorFailure
from tests.support.window_driver import WindowDriver, keyed_stream
from tests.unit.runtime.operators.windows.window_samples import values

GAP = EventTimeSessionWindows.with_gap(Time.milliseconds(5))


class Bounds(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, window.start, window.end, sorted(number for _, number in inputs)


class Total(AggregateFunction):
    def create_accumulator(self):
        return [0]

    def add(self, value, accumulator):
        accumulator[0] += value[1]
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, acc_a, acc_b):
        return [acc_a[0] + acc_b[0]]


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
def test_the_order_of_elements_does_not_matter(general):
    stream = keyed_stream().window(GAP).apply(Bounds())
    expected = [(("a", 0, 19, [0, 4, 9, 14]), 18), (("a", 30, 35, [30]), 34)]
    for order in permutations([0, 4, 9, 14, 30]):
        windows = WindowDriver(stream, general=general)
        for time in order:
            assert windows.element(("a", time), time) == []
        assert windows.watermark(MAX_WATERMARK) == expected, order
        assert (windows.rows(), len(windows.timers.event)) == (0, 0), order


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
def test_accumulators_merge_in_every_order_and_over_a_snapshot_at_every_place(general):
    stream = keyed_stream().window(GAP).aggregate(Total())
    for order in permutations([0, 4, 9, 14, 30]):
        windows = WindowDriver(stream, general=general)
        for time in order:
            windows.element(("a", time + 1), time)
            windows = WindowDriver(stream, general=general, restore=windows.snapshot())
        assert windows.watermark(MAX_WATERMARK) == [(31, 18), (31, 34)], order
        assert (windows.rows(), len(windows.timers.event)) == (0, 0), order


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
def test_sessions_that_only_touch_are_one(general):
    windows = WindowDriver(keyed_stream().window(GAP).apply(Bounds()), general=general)
    windows.batch([(("a", 1), 0), (("a", 2), 5), (("a", 3), 11)])
    assert values(windows.watermark(MAX_WATERMARK)) == [("a", 0, 10, [1, 2]), ("a", 11, 16, [3])]


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
def test_keys_have_sessions_of_their_own(general):
    windows = WindowDriver(keyed_stream().window(GAP).apply(Bounds()), general=general)
    windows.batch([(("b", 1), 0), (("a", 2), 1), (("b", 3), 4)])
    assert values(windows.watermark(5)) == [("a", 1, 6, [2])]
    assert values(windows.watermark(8)) == [("b", 0, 9, [1, 3])]


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
def test_a_gap_told_by_each_element(general):
    gaps = DynamicEventTimeSessionWindows.with_dynamic_gap(lambda element: element[1])
    windows = WindowDriver(keyed_stream().window(gaps).apply(Bounds()), general=general)
    windows.batch([(("a", 10), 0), (("a", 2), 3), (("a", 1), 12)])
    assert values(windows.watermark(MAX_WATERMARK)) == [("a", 0, 10, [2, 10]), ("a", 12, 13, [1])]


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
def test_an_element_with_a_short_gap_shortens_nothing(general):
    gaps = EventTimeSessionWindows.with_dynamic_gap(lambda element: element[1])
    windows = WindowDriver(keyed_stream().window(gaps).apply(Bounds()), general=general)
    windows.batch([(("a", 100), 0), (("a", 1), 50)])
    assert values(windows.watermark(99)) == [("a", 0, 100, [1, 100])]


def test_a_gap_of_nothing_is_refused():
    with pytest.raises(GraphError, match="above 0"):
        EventTimeSessionWindows.with_gap(0)
    gaps = EventTimeSessionWindows.with_dynamic_gap(lambda element: 0)
    with pytest.raises(OperatorFailure) as failure:
        WindowDriver(keyed_stream().window(gaps).apply(Bounds())).element(("a", 1), 1)
    assert "above 0 ms" in str(failure.value.__cause__)


def test_sessions_by_the_clock():
    windows = WindowDriver(keyed_stream().window(ProcessingTimeSessionWindows.with_gap(10)).apply(Bounds()))
    windows.element(("a", 1))
    assert windows.pass_time(8) == []
    windows.element(("a", 2))
    assert windows.pass_time(9) == []
    assert values(windows.pass_time(1)) == [("a", 0, 18, [1, 2])]
    windows.pass_time(5)
    windows.element(("a", 3))
    assert values(windows.pass_time(100)) == [("a", 23, 33, [3])]
    assert (windows.rows(), len(windows.timers.processing)) == (0, 0)


def test_sessions_by_the_clock_with_a_dynamic_gap():
    assigner = ProcessingTimeSessionWindows.with_dynamic_gap(lambda element: element[1])
    windows = WindowDriver(keyed_stream().window(assigner).apply(Bounds()))
    windows.element(("a", 20))
    windows.pass_time(5)
    windows.element(("a", 3))
    assert windows.pass_time(15) == [(("a", 0, 20, [3, 20]), 19)]


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
def test_windows_that_merge_have_no_state_of_their_own(general):
    class Asks(ProcessWindowFunction):
        def process(self, key, context, elements):
            context.window_state()

    windows = WindowDriver(keyed_stream().window(GAP).process(Asks()), general=general)
    windows.element(("a", 1), 1)
    with pytest.raises(OperatorFailure) as failure:
        windows.watermark(MAX_WATERMARK)
    assert isinstance(failure.value.__cause__, StateAccessError)


def test_a_session_that_goes_on_for_long_keeps_one_timer():
    windows = WindowDriver(keyed_stream().window(GAP).aggregate(Total()))
    for time in range(0, 4_000, 4):
        windows.element(("a", 1), time)
        windows.watermark(time)
        windows.snapshot()
        assert len(windows.timers.event) == 1
    assert windows.watermark(MAX_WATERMARK) == [(1_000, 4_000)]


def test_the_fast_operator_writes_what_the_general_one_would():
    """Rows and timers in a snapshot are the same, so one can take over from the other."""
    stream = keyed_stream().window(GAP).allowed_lateness(3).aggregate(Total())
    drivers = [WindowDriver(stream, general=general) for general in (False, True)]
    for windows in drivers:
        windows.batch([(("a", 1), 0), (("a", 2), 4), (("b", 3), 20)])
        windows.watermark(9)
        windows.snapshot()
    fast, general = ({(key, namespace) for _, key, namespace in driver.timers.event.all()} for driver in drivers)
    assert fast == general == {("a", (0, 9)), ("b", (20, 25))}
