"""Windows on Spark: the results of a task in one process, over slots and shuffles, killed ones included."""

from __future__ import annotations

from collections import Counter

import pytest

from rekindle.common import RestartStrategies, Time, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import Watermark, WatermarkGenerator
from rekindle.datastream import AggregateFunction, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.support.environments import environment

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
RECORDS, KEYS = 4_000, 7


class EveryElement(WatermarkGenerator):
    """A watermark right behind each element."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        """Not needed."""


PUNCTUAL = WatermarkStrategy.for_generator(EveryElement).with_timestamp_assigner(lambda event, _: event[1])


def event(number: int) -> tuple[str, int, int]:
    """Keys in turn, a millisecond each, and a pause of a second after every thousand."""
    return f"k{number % KEYS}", number + number // 1_000 * 1_000, 1


def events(env: StreamExecutionEnvironment, per_second: int | None = None):
    pace = () if per_second is None else (RateLimiterStrategy.per_second(per_second),)
    source = DataGeneratorSource(event, RECORDS, *pace)
    return env.from_source(source, BY_TIME, "events", EVENT).key_by(lambda each: each[0], Types.STRING())


def collect(stream, name: str) -> list:
    with stream.execute_and_collect(name) as results:
        return list(results)


class Total(AggregateFunction):
    """Counts; fails as told, in the first attempt."""

    def __init__(self, fail_at: int | None = None):
        self.fail_at = fail_at

    def open(self, runtime_context):
        self.fails = runtime_context.get_attempt_number() == 0
        self.seen = 0

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        self.seen += 1
        if self.fails and self.seen == self.fail_at:
            raise RuntimeError(f"element number {self.seen} on purpose")
        return accumulator + value[2]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithBounds(ProcessWindowFunction):
    def process(self, key, context, elements):
        (total,) = elements
        yield key, context.window().start, context.window().end, total


def expected_of_aligned(size: int, slide: int) -> list:
    counts: Counter = Counter()
    for key, time, _ in map(event, range(RECORDS)):
        for start in range(time - time % slide, time - size, -slide):
            counts[key, start, start + size] += 1
    return sorted((*window, count) for window, count in counts.items())


def expected_of_sessions(gap: int) -> list:
    times: dict[str, list[int]] = {}
    for key, time, _ in map(event, range(RECORDS)):
        times.setdefault(key, []).append(time)
    found = []
    for key, all_of_them in times.items():
        begin = count = 0
        for place, time in enumerate(all_of_them):
            if place == 0 or time - all_of_them[place - 1] > gap:
                begin, count = time, 0
            count += 1
            if place + 1 == len(all_of_them) or all_of_them[place + 1] - time > gap:
                found.append((key, begin, time + gap, count))
    return sorted(found)


WINDOWS = {
    "tumbling": (TumblingEventTimeWindows.of(Time.milliseconds(300)), expected_of_aligned(300, 300)),
    "sliding": (SlidingEventTimeWindows.of(300, 100), expected_of_aligned(300, 100)),
    "sessions": (EventTimeSessionWindows.with_gap(Time.milliseconds(200)), expected_of_sessions(200)),
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_over_the_shuffle(spark, kind):
    assigner, expected = WINDOWS[kind]
    totals = events(environment(2)).window(assigner).aggregate(Total(), WithBounds(), accumulator_type=Types.LONG())
    assert sorted(collect(totals, f"windows {kind}")) == expected


@pytest.mark.parametrize("kind", [pytest.param("tumbling", marks=pytest.mark.long), "sessions"])
def test_windows_of_a_job_that_fails_and_comes_back(spark, tmp_path, kind):
    """Each window once and complete, although the job restarts in the middle from a checkpoint."""
    assigner, expected = WINDOWS[kind]
    env = environment(2, **{"execution.checkpointing.dir": str(tmp_path)})
    env.enable_checkpointing(200)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 50))
    windowed = events(env, per_second=2_500).window(assigner)
    totals = windowed.aggregate(Total(fail_at=1_200), WithBounds(), accumulator_type=Types.LONG())
    assert sorted(collect(totals, f"failing {kind}")) == expected


def test_late_data_and_windows_of_the_whole_stream(spark):
    late = OutputTag("late", EVENT)
    env = environment(2).set_parallelism(1)
    records = [("a", 1, 1), ("b", 2, 1), ("a", 250, 1), ("a", 3, 1), ("b", 260, 1), ("b", 600, 1)]
    timed = env.from_collection(records, EVENT).assign_timestamps_and_watermarks(PUNCTUAL)
    windowed = timed.window_all(TumblingEventTimeWindows.of(Time.milliseconds(100))).side_output_late_data(late)
    aside = windowed.sum(2).get_side_output(late)
    assert collect(aside, "late data") == [("a", 3, 1)]


def test_windows_of_processing_time_end_by_themselves(spark):
    """I4: no element need come; the job is not over before its windows are."""
    source = DataGeneratorSource(event, 900, RateLimiterStrategy.per_second(300))
    env = environment(2)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "events", EVENT)
    windowed = numbers.key_by(lambda each: "all", Types.STRING()).window(TumblingProcessingTimeWindows.of(500))
    totals = collect(windowed.sum(2), "by the clock")
    assert len(totals) >= 3
    assert sum(total for _, _, total in totals) <= 900
    assert sum(total for _, _, total in totals) > 300
