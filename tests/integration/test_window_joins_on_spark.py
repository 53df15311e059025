"""A window join and a co-group on Spark: over slots and shuffles, killed and restored in the middle."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from rekindle.common import Time, Types, WatermarkStrategy
from rekindle.datastream import CoGroupFunction, JoinFunction
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from tests.support.environments import checkpointed

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
RECORDS, KEYS, SIZE, GAP = 1_500, 7, 30, 100


def order(number: int) -> tuple[str, int, int]:
    """A millisecond each, and a pause of half a second after every 300."""
    return f"k{number % KEYS}", number + number // 300 * 500, number


class Numbers(JoinFunction):
    """Pairs; fails as told, in the first attempt, and leaves a mark."""

    def __init__(self, fail_at: int, mark: Path):
        self.fail_at = fail_at
        self.mark = mark

    def open(self, runtime_context):
        self.fails = runtime_context.get_attempt_number() == 0
        self.seen = 0

    def join(self, first, second):
        self.seen += 1
        if self.fails and self.seen == self.fail_at:
            self.mark.touch()
            raise RuntimeError(f"pair number {self.seen} on purpose")
        return first[2], second[2]


class Counts(CoGroupFunction):
    def co_group(self, first, second):
        yield first[0][0], len(first), len(second)


def test_a_join_and_a_co_group_of_a_job_that_fails_and_comes_back(spark, tmp_path):
    """Each pair of each window once, and sessions of both streams, although the job restarts from a checkpoint."""
    env = checkpointed(2, 200, directory=tmp_path / "checkpoints", restarts=2)
    pace = RateLimiterStrategy.per_second(1_000)
    orders = env.from_source(DataGeneratorSource(order, RECORDS, pace), BY_TIME, "orders", EVENT)
    payments = env.from_source(DataGeneratorSource(order, RECORDS, pace), BY_TIME, "payments", EVENT)
    some = payments.filter(lambda event: event[2] % 2 == 0)

    joined = orders.join(some).where(lambda event: event[0], str).equal_to(lambda event: event[0], str)
    windowed = joined.window(TumblingEventTimeWindows.of(Time.milliseconds(SIZE)))
    pairs = windowed.apply(Numbers(900, tmp_path / "failed"), Types.TUPLE([Types.LONG(), Types.LONG()]))
    grouped = orders.co_group(some).where(lambda event: event[0], str).equal_to(lambda event: event[0], str)
    counts = grouped.window(EventTimeSessionWindows.with_gap(Time.milliseconds(GAP))).apply(Counts())
    both = pairs.map(lambda each: ("pair", *each)).union(counts.map(lambda each: ("count", *each)))
    with both.execute_and_collect("window join") as results:
        found = sorted(results)
    assert (tmp_path / "failed").exists()

    events = list(map(order, range(RECORDS)))
    windows: dict[tuple[str, int], list[int]] = defaultdict(list)
    runs: dict[tuple[str, int], list[int]] = defaultdict(list)
    for key, time, number in events:
        windows[key, time // SIZE].append(number)
        runs[key, number // 300].append(number)
    expected = [("pair", a, b) for numbers in windows.values() for a in numbers for b in numbers if b % 2 == 0]
    expected += [
        ("count", key, len(numbers), sum(number % 2 == 0 for number in numbers)) for (key, _), numbers in runs.items()
    ]
    assert found == sorted(expected)
