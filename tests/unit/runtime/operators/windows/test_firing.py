"""When windows fire: once per pane, before the watermark that fired them, at the end of input, beside idle inputs."""

from __future__ import annotations

import threading

import pytest

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import SourceFunction
from rekindle.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import environment
from tests.support.window_driver import WindowDriver, keyed_stream
from tests.unit.runtime.operators.windows.window_samples import TEN, Numbers, both

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])


class Twice(Trigger):
    """Registers the same timer several times."""

    def on_element(self, element, timestamp, window, ctx):
        for _ in range(3):
            ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


def test_a_timer_registered_twice_fires_once():
    windows = WindowDriver(keyed_stream().window(TEN).trigger(Twice()).process(Numbers()))
    windows.batch([(("a", 1), 1), (("a", 2), 2)])
    assert windows.watermark(9) == [(("a", [1, 2]), 9)]


@both
def test_results_come_before_the_watermark_that_fired_them(general):
    """The driver asserts it with every watermark; here for several windows at once."""
    windows = WindowDriver(keyed_stream().window(TEN).process(Numbers()), general=general)
    windows.batch([(("a", 1), 1), (("a", 2), 11), (("b", 3), 1)])
    windows.operator.process_watermark(20)
    assert windows.events == [(("a", [1]), 9), (("b", [3]), 9), (("a", [2]), 19), ("watermark", 20)]


def test_the_watermark_after_a_window_reaches_the_next_one():
    """Windows of windows: results are not late for the next window."""
    env = environment(1)
    records = [("a", time) for time in range(0, 40, 3)]
    summed = (
        env.from_collection(records, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(BY_TIME)
        .map(lambda record: (record[0], 1), Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(lambda record: record[0])
        .window(TEN)
        .sum(1)
        .key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(20))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    assert InProcessJob.of(summed, max_records=2).run() == [("a", 7), ("a", 7)]


@both
def test_a_window_fires_once_per_pane(general):
    """A window fires at its end, not with every later watermark, and not again at its clean-up."""
    windowed = keyed_stream().window(TEN).allowed_lateness(20)
    windows = WindowDriver(windowed.process(Numbers()), general=general)
    windows.batch([(("a", 1), 1), (("b", 2), 11)])
    fired = [windows.watermark(time) for time in (8, 9, 10, 15, 19, 29, 39, 60, MAX_WATERMARK)]
    assert [len(each) for each in fired] == [0, 1, 0, 0, 1, 0, 0, 0, 0]


@both
@pytest.mark.parametrize("assigner", [TEN, SlidingEventTimeWindows.of(20, 10), EventTimeSessionWindows.with_gap(10)])
def test_the_end_of_input_fires_everything_exactly_once_also_across_a_restore(general, assigner):
    stream = keyed_stream().window(assigner).process(Numbers())
    windows = WindowDriver(stream, general=general)
    windows.batch([(("a", 1), 1), (("a", 2), 35), (("b", 3), 50)])
    before = windows.snapshot()
    expected = windows.watermark(MAX_WATERMARK)
    after = windows.snapshot()
    assert WindowDriver(stream, general=general, restore=before).watermark(MAX_WATERMARK) == expected
    assert WindowDriver(stream, general=general, restore=after).watermark(MAX_WATERMARK) == []
    assert (after.state, after.timers) == ([], [])


class Silent(SourceFunction):
    """Collects nothing; ends when cancelled."""

    def run(self, ctx):
        self.ended = threading.Event()
        self.ended.wait()

    def cancel(self):
        if hasattr(self, "ended"):
            self.ended.set()


def test_an_idle_input_of_a_union_does_not_hold_windows_back():
    """Windows wait for every input that may still send elements, but not for an idle one."""
    clock = ManualClock(0)
    env = environment(1)
    idle = WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(50))
    silent = env.add_source(Silent()).assign_timestamps_and_watermarks(idle)
    records = [("a", 1), ("a", 2), ("a", 15), ("a", 31), ("a", 32)]
    active = env.from_collection(records).assign_timestamps_and_watermarks(BY_TIME)
    united = silent.union(active).key_by(lambda record: record[0]).window(TEN).process(Numbers())
    job = InProcessJob.of(united, clock, max_records=1)
    assert [job.epoch() for _ in range(3)] == [[], [], []]
    clock.advance(60)
    results = [result for _ in range(2) for result in job.epoch()]
    job.close()
    assert results == [("a", [1, 2]), ("a", [15])]


def test_the_trigger_of_an_assigner_that_is_said_out_loud_is_still_fast():
    windowed = keyed_stream().window(TEN).trigger(EventTimeTrigger.create()).sum(1)
    assert type(WindowDriver(windowed).operator).__name__ == "AlignedWindowOperator"
