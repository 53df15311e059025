"""Timers in whole jobs: registered twice, beside idle inputs, at the end of input, and across restores."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, ProcessFunction, SourceFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
MAX_WATERMARK = 2**63 - 1


# -- timers -----------------------------------------------------------------------------------------------------------


class Twice(KeyedProcessFunction):
    """Sets the same timers with every early element, in both domains, and twice."""

    def process_element(self, value, ctx):
        for _ in range(2 if value[1] < 100 else 0):
            ctx.timer_service().register_event_time_timer(100)
            ctx.timer_service().register_processing_time_timer(5)

    def on_timer(self, timestamp, ctx):
        yield ctx.time_domain().name, ctx.get_current_key(), timestamp


def test_a_timer_that_is_registered_twice_fires_once_also_when_a_restore_lies_between():
    def program(parallelism):
        records = checkpointed(parallelism).from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 200)])
        return records.assign_timestamps_and_watermarks(BY_TIME).key_by(lambda record: record[0]).process(Twice())

    job = InProcessJob.of(program(1), max_records=2)
    checkpoint = job.checkpoint()
    job.kill()
    for parallelism in (1, 2):
        clock = ManualClock()
        restored = InProcessJob.of(program(parallelism), clock, max_records=2, restore=checkpoint)
        fired = restored.epoch()
        clock.advance(10)
        fired += restored.epoch() + restored.run()
        once = [(domain, key, time) for domain, time in (("EVENT_TIME", 100), ("PROCESSING_TIME", 5)) for key in "ab"]
        assert sorted(fired) == once


class Alarm(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.get_current_key()


@pytest.mark.parametrize("restored", [False, True])
def test_timers_of_equal_time_fire_by_key_bytes(restored):
    """I1: the order of registration and of the restore does not matter."""
    records = [(key, time) for time in (20, 10) for key in (5, 300, 1, 2, 70000)]

    def program():
        stream = (
            checkpointed()
            .from_collection(records)
            .assign_timestamps_and_watermarks(
                WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 0)
            )
        )
        return stream.key_by(lambda pair: pair[0], int).process(Alarm())

    job = InProcessJob.of(program(), max_records=len(records))
    if restored:
        checkpoint = job.checkpoint()
        assert checkpoint.results == []
        job.kill()
        job = InProcessJob.of(program(), restore=checkpoint)
    assert job.run() == [(time, key) for time in (10, 20) for key in (1, 2, 5, 300, 70000)]


class AtTen(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield "timer", timestamp


class WithWatermark(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()


class WithWatermarkKeyed(WithWatermark, KeyedProcessFunction):  # type: ignore[misc]
    pass


@pytest.mark.parametrize("exchanged", [False, True])
def test_output_of_a_timer_comes_before_the_watermark_that_fired_it(exchanged):
    """Otherwise the next operator would drop every record of a timer as late."""
    records = checkpointed(2).from_collection([("a", 1), ("b", 50)]).assign_timestamps_and_watermarks(BY_TIME)
    fired = records.key_by(lambda record: record[0]).process(AtTen())
    seen = fired.key_by(lambda each: 0).process(WithWatermarkKeyed()) if exchanged else fired.process(WithWatermark())
    results = InProcessJob.of(seen).run()
    assert [(kind, timestamp) for kind, timestamp, _ in results] == [("timer", 10)] * 2
    assert max(watermark for _, _, watermark in results) < 10


# -- unions, idleness, the end ----------------------------------------------------------------------------------------


class GoesIdle(SourceFunction):
    """One element with an early timestamp, then nothing more."""

    def __init__(self) -> None:
        self.running = True

    def run(self, ctx):
        ctx.collect_with_timestamp(("idle", 1), 1)
        ctx.emit_watermark(1)
        ctx.mark_as_temporarily_idle()
        while self.running:
            time.sleep(0.001)

    def cancel(self):
        self.running = False


def test_a_union_does_not_wait_for_an_idle_input():
    env = checkpointed()
    busy = env.from_collection([("busy", n) for n in (5, 20, 30)]).assign_timestamps_and_watermarks(BY_TIME)
    both = env.add_source(GoesIdle()).union(busy)
    job = InProcessJob.of(both.key_by(lambda record: 0).process(AtTen()), max_records=1)
    fired: list[Any] = []
    for _ in range(2000):
        fired += job.epoch()
        if fired:
            break
    assert fired == [("timer", 10)]
    job.kill()


def test_a_union_with_an_input_that_goes_idle_by_its_strategy():
    clock = ManualClock()
    idle = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
    idle = idle.with_idleness(Duration.of_millis(100))
    env = checkpointed()
    silent = env.from_collection([("silent", 1)]).assign_timestamps_and_watermarks(idle)
    busy = env.from_collection([("busy", n) for n in range(2, 30)]).assign_timestamps_and_watermarks(BY_TIME)
    job = InProcessJob.of(silent.union(busy).key_by(lambda record: 0).process(AtTen()), clock, max_records=1)
    assert [job.epoch() for _ in range(1)] == [[]]
    clock.advance(1000)
    assert ("timer", 10) in job.run()


class Everything(KeyedProcessFunction):
    """Sets two timers per key, both of which only the end of input fires."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)
        ctx.timer_service().register_event_time_timer(10_000 + value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp if timestamp < MAX_WATERMARK else "end", self.sum.value()


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("cut", range(1, 9))
def test_the_end_of_input_fires_everything_exactly_once_also_across_a_restore(parallelism, cut):
    """Also when the cut is in the epoch of the end, or after it."""
    records = [(n % 3, n) for n in range(9)]

    def program(parallelism):
        stamped = checkpointed(parallelism).from_collection(records).assign_timestamps_and_watermarks(BY_TIME)
        return stamped.key_by(lambda record: record[0]).process(Everything())

    job = InProcessJob.of(program(2), max_records=2)
    collected = []
    for _ in range(cut):
        checkpoint = job.checkpoint()
        collected += checkpoint.results
    job.kill()
    collected += InProcessJob.of(program(parallelism), max_records=2, restore=checkpoint).run()
    sums = {key: sum(n for k, n in records if k == key) for key in range(3)}
    assert sorted(collected, key=repr) == sorted(
        [(key, 10_000 + n, sums[key]) for key, n in records] + [(key, "end", sums[key]) for key in range(3)], key=repr
    )
