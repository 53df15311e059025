"""The contents of windows: None as an element, keys and windows kept apart, and nothing left behind."""

from __future__ import annotations

import pytest

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import AggregateFunction, ProcessWindowFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
)
from rekindle.runtime.state.change_tracking import ROW_COLUMNS
from tests.support.window_driver import WindowDriver, keyed_stream, stream
from tests.unit.runtime.operators.windows.window_samples import TEN, Numbers, both


class FirstOfWindow(AggregateFunction):
    """An accumulator that is None for as long as only None was added."""

    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        return value if accumulator is None else accumulator

    def get_result(self, accumulator):
        return "nothing" if accumulator is None else accumulator

    def merge(self, acc_a, acc_b):
        return acc_b if acc_a is None else acc_a


class AsList(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield list(elements)


@both
@pytest.mark.parametrize(
    ("evaluate", "expected"),
    [
        (lambda windowed: windowed.process(AsList()), [[None, None], [None, 5]]),
        (lambda windowed: windowed.aggregate(FirstOfWindow()), ["nothing", 5]),
        (lambda windowed: windowed.reduce(lambda one, other: one if other is None else other), [None, 5]),
        (lambda windowed: windowed.reduce(lambda one, other: None), [None, None]),
    ],
    ids=["elements", "accumulator", "reduced", "reduced to None"],
)
@pytest.mark.parametrize("assigner", [TEN, EventTimeSessionWindows.with_gap(5)])
def test_none_is_an_element_like_any_other(evaluate, expected, assigner, general):
    result = evaluate(stream().key_by(lambda record: "key").window(assigner))
    windows = WindowDriver(result, general=general)
    for element, time in ((None, 1), (None, 2), (None, 11), (5, 12)):
        windows.element(element, time)
        windows = WindowDriver(result, general=general, restore=windows.snapshot())
    assert [value for value, _ in windows.watermark(MAX_WATERMARK)] == expected
    assert windows.rows() == 0


@both
def test_none_as_a_field_of_a_key(general):
    keyed = stream().key_by(lambda record: (record[0], None)).window(TEN)
    result = keyed.process(Numbers())
    windows = WindowDriver(result, general=general)
    windows.batch([(("a", 1), 1), ((None, 2), 2), (("a", 3), 3)])
    windows = WindowDriver(result, general=general, restore=windows.snapshot())
    values = [value for value, _ in windows.watermark(9)]
    assert values == [((None, None), [2]), (("a", None), [1, 3])]


@both
def test_the_state_of_one_key_never_reaches_another(general):
    """The current key changes between assigner, trigger and function, and with every element of a batch."""

    class CountsPerKey(ProcessWindowFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", int))

        def process(self, key, context, elements):
            self.count.update((self.count.value() or 0) + len(list(elements)))
            yield key, self.count.value()

    windows = WindowDriver(keyed_stream().window(TEN).process(CountsPerKey()), general=general)
    for round_ in range(3):
        windows.batch([((key, 1), round_ * 10 + place) for place, key in enumerate("abcabca")])
    results = [value for value, _ in windows.watermark(MAX_WATERMARK)]
    assert results == [("a", 3), ("b", 2), ("c", 2), ("a", 6), ("b", 4), ("c", 4), ("a", 9), ("b", 6), ("c", 6)]


@both
def test_windows_that_share_an_element_do_not_share_what_happens_to_it(general):
    """A reduce function may change its first argument: each window has its own copy of an element."""

    def add_up(total, element):
        total[1] += element[1]
        return total

    windowed = keyed_stream().window(SlidingEventTimeWindows.of(10, 5)).reduce(add_up)
    windows = WindowDriver(windowed, general=general)
    windows.batch([(["a", 1], 5), (["a", 2], 6), (["a", 4], 11)])
    assert windows.watermark(MAX_WATERMARK) == [(["a", 3], 9), (["a", 7], 14), (["a", 4], 19)]


@both
def test_what_was_emitted_does_not_change_any_more(general):
    """A late firing emits the accumulator again with more elements: results emitted before do not change."""

    class Growing(AggregateFunction):
        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            accumulator.append(value[1])
            return accumulator

        def get_result(self, accumulator):
            return accumulator

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    windows = WindowDriver(keyed_stream().window(TEN).allowed_lateness(5).aggregate(Growing()), general=general)
    windows.element(("a", 1), 1)
    first = windows.watermark(9)
    second = windows.element(("a", 2), 2)
    assert (first, second) == ([([1], 9)], [([1, 2], 9)])


@both
@pytest.mark.parametrize("assigner", [TEN, EventTimeSessionWindows.with_gap(5)])
def test_incremental_windows_keep_one_value_and_never_the_elements(general, assigner):
    """However many elements come, the state of a window is one accumulator."""
    stream = keyed_stream(key_type=str).window(assigner).sum(1)
    windows = WindowDriver(stream, general=general)
    sizes = []
    for _ in range(3):
        windows.batch([(("a", 1), 1)] * 1_000)
        sizes.append(sum(len(data) for _, data in windows.snapshot().state))
        held = [row[ROW_COLUMNS] for group in windows.keyed.key_groups for row in windows.keyed.rows_of(group)]
        assert held == [("a", 1_000 * len(sizes))]
    assert max(sizes) - min(sizes) <= 2
    assert windows.watermark(MAX_WATERMARK)[0][0] == ("a", 3_000)


def test_windows_that_come_and_go_between_snapshots_leave_no_trace():
    """Neither memory nor the delta holds such windows: no checkpoint has seen them."""
    windows = WindowDriver(keyed_stream(key_type=str).window(TEN).sum(1))
    windows.keyed.snapshot_delta(1, None)
    for time in range(0, 10_000, 10):
        windows.element((f"key-{time}", 1), time)
        windows.watermark(time + 9)
    windows.element(("last", 1), 10_000)
    windows.operator.prepare_snapshot(2)
    delta = windows.keyed.snapshot_delta(2, 1)
    written = [key for group in delta.groups for state in group.states for key in state.keys]
    assert set(written) == {("last", (10_000, 10_010))}
    assert windows.keyed.number_of_keys() == 1


def test_a_purged_global_window_leaves_nothing_behind():
    windows = WindowDriver(
        keyed_stream().window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2))).sum(1)
    )
    for number in range(1_000):
        windows.batch([((f"key-{number}", 1), None), ((f"key-{number}", 2), None)])
    assert windows.rows() == 0


def test_count_windows_leave_nothing_behind_but_the_count():
    """A full window is removed with all its state; only the number of elements per key is kept."""
    windows = WindowDriver(keyed_stream().count_window(10, 5).sum(1))
    results = [event for number in range(100) for event in windows.element(("a", number))]
    assert len(results) == 19
    assert windows.rows() == 1 + 1  # the count, and the window that is half full
