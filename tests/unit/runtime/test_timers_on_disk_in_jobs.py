"""Whole jobs with timers and sessions on disk, with nearly nothing in memory: killed, restored, rescaled, rewritten.

A job goes through parallelisms 2, 3 and 1, each time on another backend or on the same; its results are those of the
same job in memory, in the same order.
"""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Duration, Time, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, MapFunction
from rekindle.datastream.state import StateTtlConfig, ValueStateDescriptor
from rekindle.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from rekindle.runtime.state.rocksdb import row_cache
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed
from tests.support.keyed_backends import TINY_LIMITS

RECORDS = [(f"k{number * 7 % 23}", number * 10) for number in range(120)]
BY_TIME = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50)).with_timestamp_assigner(
    lambda record, _: record[1]
)
DAY_MS = 24 * 3600 * 1000


#: The clock of the job that runs.
CLOCK = [ManualClock()]


class Slow(MapFunction):
    def map(self, value):
        CLOCK[0].advance(10)
        return value


class Reminders(KeyedProcessFunction):
    """Sets two timers of event time and one of the clock per element; a later element takes one back."""

    def __init__(self, ttl: bool) -> None:
        self.ttl = ttl

    def open(self, runtime_context):
        last = ValueStateDescriptor("last", Types.LONG())
        if self.ttl:
            last.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.last = runtime_context.get_state(last)

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        previous = self.last.value()
        if previous is not None:
            timers.delete_event_time_timer(previous + 400)
        self.last.update(value[1])
        timers.register_event_time_timer(value[1] + 400)
        timers.register_event_time_timer(value[1] // 300 * 300 + 299)  # the same for many keys
        timers.register_processing_time_timer(DAY_MS + value[1] // 200)

    def on_timer(self, timestamp, ctx):
        yield ctx.time_domain().name, ctx.get_current_key(), timestamp, self.last.value()


def reminders(keyed: Any, ttl: bool) -> Any:
    return keyed.process(Reminders(ttl))


def sessions(keyed: Any, ttl: bool) -> Any:
    return keyed.window(EventTimeSessionWindows.with_gap(Duration.of_millis(100))).reduce(both)


def long_sessions(keyed: Any, ttl: bool) -> Any:
    windowed = keyed.window(EventTimeSessionWindows.with_gap(Duration.of_millis(240)))
    return windowed.allowed_lateness(100).reduce(both)


def panes(keyed: Any, ttl: bool) -> Any:
    return keyed.window(TumblingEventTimeWindows.of(Duration.of_millis(200))).reduce(both)


def both(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


PROGRAMS = {each.__name__: each for each in (reminders, sessions, long_sessions, panes)}


def program(name: str, parallelism: int, backend: str, *, ttl: bool = False, unaligned: bool = False) -> Any:
    settings: dict[str, Any] = {"state.backend.type": backend}
    env = checkpointed(parallelism, unaligned=unaligned, **settings)
    timed = env.from_collection(RECORDS).assign_timestamps_and_watermarks(BY_TIME)
    if unaligned:
        timed = timed.rebalance().map(Slow(), Types.TUPLE([Types.STRING(), Types.LONG()]))
    return PROGRAMS[name](timed.key_by(lambda record: record[0], Types.STRING()), ttl)


def results_of(name: str, backends: tuple[str, ...], unaligned: bool) -> list[Any]:
    """The results of a job that is killed twice and goes on from its last checkpoint."""
    results: list[Any] = []
    checkpoint = None
    clock = CLOCK[0] = ManualClock()
    for parallelism, backend in zip((2, 3, 1), backends, strict=True):
        # State gets a time to live with the second program.
        stream = program(name, parallelism, backend, ttl=checkpoint is not None, unaligned=unaligned)
        job = InProcessJob.of(stream, clock, max_records=10, restore=checkpoint)
        results += job.epoch()
        results += job.checkpoint().results  # a base, and a delta on top of it
        checkpoint = job.checkpoint(leave_after_ms=1 if unaligned else None)
        results += checkpoint.results
        assert (job.in_flight > 0) is unaligned
        job.kill()
    job = InProcessJob.of(program(name, 2, backends[-1], ttl=True, unaligned=unaligned), clock, restore=checkpoint)
    results += job.epoch()
    clock.advance(2 * DAY_MS)
    return results + job.run()


@pytest.mark.parametrize(
    ("name", "unaligned"), [*((name, False) for name in PROGRAMS), ("reminders", True), ("long_sessions", True)]
)
def test_a_rescaled_job_gives_the_same(name: str, unaligned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimerLimits, "of", lambda operator_bytes: TINY_LIMITS)
    monkeypatch.setattr(row_cache, "_LEAST_ROWS", 4)
    monkeypatch.setattr(row_cache, "_ROW_BYTES", 1 << 30)
    expected = results_of(name, ("hashmap", "hashmap", "hashmap"), unaligned)
    assert len(expected) > 20
    assert results_of(name, ("rocksdb", "rocksdb", "rocksdb"), unaligned) == expected
    assert results_of(name, ("rocksdb", "hashmap", "rocksdb"), unaligned) == expected
