"""Flink's own examples of windows, with the results that Flink gives for them; on tasks, at several parallelisms."""

from __future__ import annotations

import pytest

from rekindle.common import Time, Types, WatermarkStrategy
from rekindle.datastream import (
    AggregateFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from rekindle.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from rekindle.testing import InProcessJob
from tests.support.environments import environment

HI = [("hi", 1), ("hi", 2), ("hi", 3), ("hi", 4), ("hi", 5), ("hi", 8), ("hi", 9), ("hi", 15)]
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])


class CountElements(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [(key, len(list(elements)))]


class SumOfFirst(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, sum(element[0] for element in inputs))]


class GapIsSecondField(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[1]


def keyed(records, by=0, parallelism=1):
    env = environment(parallelism)
    kinds = {str: Types.STRING(), int: Types.INT()}
    stream = env.from_collection(records, Types.TUPLE([kinds[type(field)] for field in records[0]]))
    if by == 0:
        stream = stream.assign_timestamps_and_watermarks(BY_TIME)
    return stream.key_by(lambda record: record[by], key_type=Types.STRING())


def results(stream):
    return sorted(InProcessJob.of(stream, max_records=3).run())


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    ("records", "assigner", "expected"),
    [
        (HI, TumblingEventTimeWindows.of(Time.milliseconds(5)), [4, 3, 1]),
        (HI, SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2)), [2, 4, 4, 3, 2, 2, 1, 1]),
        (
            [record for record in HI if record[1] != 5],
            EventTimeSessionWindows.with_gap(Time.milliseconds(5)),
            [6, 1],
        ),
        (
            [("hi", time) for time in (1, 2, 3, 4, 9, 9, 15)],
            EventTimeSessionWindows.with_dynamic_gap(GapIsSecondField()),
            [4, 3],
        ),
    ],
    ids=["tumbling", "sliding", "session", "session with a dynamic gap"],
)
def test_event_time(records, assigner, expected, parallelism):
    stream = keyed(records, parallelism=parallelism).window(assigner)
    counted = stream.process(CountElements(), Types.TUPLE([Types.STRING(), Types.INT()]))
    assert results(counted) == sorted(("hi", count) for count in expected)


WORDS = [(1, "hi"), (2, "hello"), (3, "hi"), (4, "hello"), (5, "hi"), (6, "hello"), (6, "hello")]


@pytest.mark.parametrize(
    ("windowed", "expected"),
    [
        (lambda stream: stream.count_window(3), [("hi", 9), ("hello", 12)]),
        (lambda stream: stream.window(CountTumblingWindowAssigner.of(3)), [("hi", 9), ("hello", 12)]),
        (
            lambda stream: stream.count_window(2, 1),
            [("hello", 6), ("hello", 10), ("hello", 12), ("hi", 4), ("hi", 8)],
        ),
        (
            lambda stream: stream.window(CountSlidingWindowAssigner(2, 1)),
            [("hello", 6), ("hello", 10), ("hello", 12), ("hi", 4), ("hi", 8)],
        ),
    ],
    ids=["count_window(3)", "tumbling assigner", "count_window(2, 1)", "sliding assigner"],
)
def test_count_windows(windowed, expected):
    summed = windowed(keyed(WORDS, by=1)).apply(SumOfFirst(), Types.TUPLE([Types.STRING(), Types.INT()]))
    assert results(summed) == sorted(expected)


READINGS = [("a", 1, 30.0), ("a", 2, 10.0), ("b", 3, 5.0), ("a", 4, 20.0), ("a", 7, 40.0)]


def readings():
    env = environment(1)
    stream = env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]))
    return stream.assign_timestamps_and_watermarks(BY_TIME).key_by(lambda reading: reading[0]).window(FIVE)


FIVE = TumblingEventTimeWindows.of(Time.milliseconds(5))


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0.0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithStart(ProcessWindowFunction):
    def process(self, key, context, elements):
        (value,) = elements
        yield key, context.window().start, value


def test_the_smallest_reading_and_the_start_of_its_window():
    """A reduce function aggregates incrementally, a process window function adds the window."""
    smallest = readings().reduce(lambda r1, r2: r2 if r1[2] > r2[2] else r1, WithStart())
    assert results(smallest) == [("a", 0, ("a", 2, 10.0)), ("a", 5, ("a", 7, 40.0)), ("b", 0, ("b", 3, 5.0))]


def test_the_average_with_its_key():
    """An aggregate function aggregates incrementally, a process window function adds the key."""
    pair = Types.TUPLE([Types.DOUBLE(), Types.LONG()])
    averages = readings().aggregate(Average(), WithStart(), accumulator_type=pair)
    assert results(averages) == [("a", 0, 20.0), ("a", 5, 40.0), ("b", 0, 5.0)]


def test_the_average_alone():
    averages = readings().aggregate(Average(), output_type=Types.DOUBLE())
    assert results(averages) == [5.0, 20.0, 40.0]


@pytest.mark.parametrize(
    ("short_form", "expected"),
    [
        ("sum", [("a", 1, 60.0), ("a", 7, 40.0), ("b", 3, 5.0)]),
        ("min", [("a", 1, 10.0), ("a", 7, 40.0), ("b", 3, 5.0)]),
        ("max", [("a", 1, 30.0), ("a", 7, 40.0), ("b", 3, 5.0)]),
        ("min_by", [("a", 2, 10.0), ("a", 7, 40.0), ("b", 3, 5.0)]),
        ("max_by", [("a", 1, 30.0), ("a", 7, 40.0), ("b", 3, 5.0)]),
    ],
)
def test_short_forms(short_form, expected):
    """`sum`, `min` and `max` keep the other fields of the first element, `min_by` and `max_by` give the element."""
    assert results(getattr(readings(), short_form)(2)) == expected


def test_hours_that_begin_at_a_quarter_past():
    """With an offset of 15 minutes: 1:15 to 2:14:59.999."""
    minute = 60_000
    driver_times = [("a", 74 * minute), ("a", 75 * minute), ("a", 134 * minute + 59_999), ("a", 135 * minute)]
    stream = keyed(driver_times).window(TumblingEventTimeWindows.of(Time.hours(1), Time.minutes(15)))

    class Bounds(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield context.window().start // minute, context.window().end // minute, len(list(elements))

    assert results(stream.process(Bounds())) == [(15, 75, 1), (75, 135, 2), (135, 195, 1)]


def test_days_in_china():
    """Daily windows offset by -8 hours begin at 16:00 UTC."""
    hour = 3_600_000
    daily = TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))
    stream = keyed([("a", 15 * hour), ("a", 16 * hour)]).window(daily)

    class Start(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield context.window().start // hour

    assert results(stream.process(Start())) == [-8, 16]


def test_purchases_of_one_hour():
    """The order system's windows: purchases per customer and hour, with late orders while allowed."""
    purchases = [
        ("ann", 10 * 60_000, 20),
        ("bob", 30 * 60_000, 5),
        ("ann", 50 * 60_000, 15),
        ("ann", 61 * 60_000, 7),
        ("bob", 59 * 60_000, 1),
        ("ann", 130 * 60_000, 3),
    ]
    env = environment(1)
    orders = env.from_collection(purchases, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))
    hourly = (
        orders.assign_timestamps_and_watermarks(BY_TIME)
        .key_by(lambda order: order[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .allowed_lateness(Time.minutes(5))
        .reduce(lambda one, other: (one[0], one[1], one[2] + other[2]), WithStart())
    )
    job = InProcessJob.of(hourly, max_records=1)
    assert sorted(job.run()) == [
        ("ann", 0, ("ann", 600_000, 35)),
        ("ann", 3_600_000, ("ann", 3_660_000, 7)),
        ("ann", 7_200_000, ("ann", 7_800_000, 3)),
        ("bob", 0, ("bob", 1_800_000, 5)),
        ("bob", 0, ("bob", 1_800_000, 6)),
    ]
