"""Processing-time windows, and the epochs that they ask for."""

from __future__ import annotations

import pytest

from rekindle.common import Time
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import ProcessWindowFunction
from rekindle.datastream.window import (
    ProcessingTimeTrigger,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import environment
from tests.support.window_driver import WindowDriver, keyed_stream

pytestmark = pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])


class Numbers(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield context.window().start, context.window().end, [number for _, number in elements]


def driver(assigner, general, at=0):
    return WindowDriver(keyed_stream().window(assigner).process(Numbers()), ManualClock(at), general=general)


def test_tumbling(general):
    windows = driver(TumblingProcessingTimeWindows.of(Time.milliseconds(10)), general, at=3)
    windows.element(("a", 1))
    assert windows.operator.next_due_ms() == 10
    assert windows.pass_time(6) == []
    windows.element(("a", 2))  # in the last millisecond of the window
    assert windows.pass_time(1) == [((0, 10, [1, 2]), 9)]
    assert windows.operator.next_due_ms() is None
    windows.element(("b", 3))
    assert windows.pass_time(20) == [((10, 20, [3]), 19)]
    assert (windows.rows(), len(windows.timers.processing)) == (0, 0)


def test_tumbling_with_an_offset(general):
    windows = driver(TumblingProcessingTimeWindows.of(10, 3), general, at=1)
    windows.element(("a", 1))
    assert windows.pass_time(2) == [((-7, 3, [1]), 2)]


def test_sliding(general):
    windows = driver(SlidingProcessingTimeWindows.of(10, 5), general, at=7)
    windows.element(("a", 1))
    assert windows.pass_time(3) == [((0, 10, [1]), 9)]
    windows.element(("a", 2))
    assert windows.pass_time(5) == [((5, 15, [1, 2]), 14)]
    assert windows.pass_time(500) == [((10, 20, [2]), 19)]
    assert (windows.rows(), len(windows.timers.processing)) == (0, 0)


def test_the_end_of_the_input_does_not_make_the_clock_go_faster(general):
    """As in Flink, processing-time windows that have not ended at the end of the input are not evaluated."""
    windows = driver(TumblingProcessingTimeWindows.of(10), general)
    windows.element(("a", 1))
    assert windows.watermark(MAX_WATERMARK) == []


def test_event_time_windows_that_fire_by_the_clock(general):
    windowed = keyed_stream().window(TumblingEventTimeWindows.of(10)).trigger(ProcessingTimeTrigger.create())
    windows = WindowDriver(windowed.process(Numbers()), general=general)
    windows.element(("a", 1), 5)
    assert windows.pass_time(10) == [((0, 10, [1]), 9)]
    assert windows.watermark(9) == []
    assert windows.rows() == 0


def test_windows_by_the_clock_survive_a_restore(general):
    stream = keyed_stream().window(TumblingProcessingTimeWindows.of(10)).process(Numbers())
    windows = WindowDriver(stream, general=general)
    windows.element(("a", 1))
    restored = WindowDriver(stream, ManualClock(5), general=general, restore=windows.snapshot())
    restored.element(("a", 2))
    assert restored.operator.next_due_ms() == 10
    assert restored.pass_time(5) == [((0, 10, [1, 2]), 9)]
    assert restored.rows() == 0


def test_a_task_asks_for_an_epoch_when_a_window_ends(general):
    """A processing-time window ends without a further record (I4)."""
    clock = ManualClock(1_000)
    env = environment(1)
    stream = env.from_collection([("a", 1), ("a", 2), ("a", 3)]).key_by(lambda record: record[0])
    job = InProcessJob.of(stream.window(TumblingProcessingTimeWindows.of(10)).process(Numbers()), clock, max_records=2)
    assert job.epoch() == []
    due = [task.next_due_ms() for task in job.tasks.values()]
    assert [time for time in due if time is not None] == [1_010]
    clock.advance(10)
    assert (1_000, 1_010, [1, 2]) in job.run()
