"""Each trigger, alone and around another trigger."""

from __future__ import annotations

import pytest

from rekindle.common import Duration, Time
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import ProcessWindowFunction
from rekindle.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from rekindle.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaFunction,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    Trigger,
    TriggerResult,
    TumblingProcessingTimeWindows,
)
from rekindle.errors import GraphError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.windows.general_windows import GeneralWindowOperator
from tests.support.window_driver import WindowDriver, keyed_stream
from tests.unit.runtime.operators.windows.window_samples import TEN, Numbers, values


def driver(assigner, trigger=None, **settings):
    windowed = keyed_stream().window(assigner)
    if trigger is not None:
        windowed = windowed.trigger(trigger)
    return WindowDriver(windowed.process(Numbers()), **settings)


def test_event_time_fires_at_the_end_of_the_window():
    windows = driver(TEN, EventTimeTrigger.create(), general=True)
    assert windows.element(("a", 1), 3) == []
    assert windows.watermark(8) == []
    assert windows.watermark(9) == [(("a", [1]), 9)]


def test_continuous_event_time_in_a_window_without_an_end_comes_to_an_end():
    windows = driver(GlobalWindows.create(), ContinuousEventTimeTrigger.of(4))
    windows.element(("a", 1), 3)
    assert windows.watermark(9) == [(("a", [1]), MAX_WATERMARK)] * 2, "at 4 and at 8"
    windows.element(("a", 2), 10)
    end = windows.watermark(MAX_WATERMARK)
    assert end == [(("a", [1, 2]), MAX_WATERMARK)] * 2, "at 12, and at the end of time instead of at every multiple"


def test_continuous_event_time_fires_at_multiples_of_the_interval_and_at_the_end():
    windows = driver(TEN, ContinuousEventTimeTrigger.of(Time.milliseconds(4)))
    windows.element(("a", 1), 1)
    assert values(windows.watermark(3)) == []
    assert values(windows.watermark(4)) == [("a", [1])]
    windows.element(("a", 2), 5)
    assert values(windows.watermark(8)) == [("a", [1, 2])]
    assert values(windows.watermark(9)) == [("a", [1, 2])]
    assert values(windows.watermark(MAX_WATERMARK)) == []
    assert (windows.rows(), len(windows.timers.event)) == (0, 0)


def test_continuous_event_time_of_a_late_element_fires_at_once():
    windowed = keyed_stream().window(TEN).allowed_lateness(5).trigger(ContinuousEventTimeTrigger.of(4))
    windows = WindowDriver(windowed.process(Numbers()))
    windows.watermark(10)
    assert values(windows.element(("a", 1), 3)) == [("a", [1])]


def test_continuous_event_time_in_sessions_that_merge():
    """The earliest of the next firings counts for the merged session."""
    windows = driver(EventTimeSessionWindows.with_gap(10), ContinuousEventTimeTrigger.of(4))
    windows.element(("a", 1), 1)
    windows.element(("a", 2), 15)
    windows.element(("a", 3), 8)
    assert values(windows.watermark(4)) == [("a", [1, 2, 3])]
    assert windows.watermark(MAX_WATERMARK) == [(("a", [1, 2, 3]), 24)] * 5  # at 8, 12, 16, 20 and at the end
    assert (windows.rows(), len(windows.timers.event)) == (0, 0)


def test_continuous_processing_time():
    windows = driver(TumblingProcessingTimeWindows.of(10), ContinuousProcessingTimeTrigger.of(Duration.of_millis(4)))
    windows.element(("a", 1))
    assert values(windows.pass_time(4)) == []
    assert values(windows.pass_time(1)) == [("a", [1])]
    windows.element(("a", 2))
    assert values(windows.pass_time(4)) == [("a", [1, 2])]
    assert values(windows.pass_time(1)) == [("a", [1, 2])]
    assert values(windows.pass_time(50)) == []
    assert (windows.rows(), len(windows.timers.processing)) == (0, 0)


def test_continuous_processing_time_of_event_time_windows_that_are_long_past():
    """A window whose end the wall clock has passed fires with the interval, not for ever."""
    windows = driver(TEN, ContinuousProcessingTimeTrigger.of(100))
    windows.clock.advance(1_000)
    windows.element(("a", 1), 3)
    assert values(windows.pass_time(101)) == [("a", [1])]
    assert values(windows.pass_time(50)) == []
    assert values(windows.pass_time(50)) == [("a", [1])]
    assert values(windows.watermark(MAX_WATERMARK)) == []
    assert (windows.rows(), len(windows.timers.processing)) == (0, 0)


def test_count_fires_with_every_nth_element_and_keeps_what_it_fired():
    windows = driver(GlobalWindows.create(), CountTrigger.of(2))
    fired = [values(windows.element(("a", number))) for number in range(1, 6)]
    assert fired == [[], [("a", [1, 2])], [], [("a", [1, 2, 3, 4])], []]


def test_count_is_by_key_and_window():
    windows = driver(TEN, CountTrigger.of(2))
    assert values(windows.batch([(("a", 1), 1), (("b", 2), 1), (("a", 3), 11), (("a", 4), 2)])) == [("a", [1, 4])]


def test_counts_of_sessions_that_merge_are_added():
    windows = driver(EventTimeSessionWindows.with_gap(10), CountTrigger.of(3))
    assert windows.batch([(("a", 1), 0), (("a", 2), 15)]) == []
    assert values(windows.element(("a", 3), 8)) == [("a", [1, 2, 3])]


def test_purging_empties_the_window_that_fired():
    windows = driver(GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(2)))
    fired = [values(windows.element(("a", number))) for number in range(1, 5)]
    assert fired == [[], [("a", [1, 2])], [], [("a", [3, 4])]]
    assert windows.rows() == 0


def test_purging_around_event_time():
    """An empty window does not fire, and a late element fires alone after a purge."""
    windowed = keyed_stream().window(TEN).allowed_lateness(5).trigger(PurgingTrigger.of(EventTimeTrigger.create()))
    windows = WindowDriver(windowed.process(Numbers()))
    windows.element(("a", 1), 3)
    assert values(windows.watermark(9)) == [("a", [1])]
    assert values(windows.element(("a", 2), 4)) == [("a", [2])]
    assert values(windows.watermark(MAX_WATERMARK)) == []
    assert windows.rows() == 0


def test_never():
    windows = driver(GlobalWindows.create())
    assert isinstance(windows.operator.operation.trigger, NeverTrigger)
    assert windows.batch([(("a", n), n) for n in range(10)]) == []
    assert windows.watermark(MAX_WATERMARK) == []


def test_the_end_of_the_stream():
    windows = driver(GlobalWindows.create_with_end_of_stream_trigger())
    windows.batch([(("a", 1), 1), (("b", 2), 2), (("a", 3), 3)])
    assert windows.watermark(1_000) == []
    assert values(windows.watermark(MAX_WATERMARK)) == [("a", [1, 3]), ("b", [2])]


class Distance(DeltaFunction):
    def get_delta(self, old_data_point, new_data_point):
        return abs(new_data_point[1] - old_data_point[1])


@pytest.mark.parametrize("delta", [Distance(), lambda old, new: abs(new[1] - old[1])])
def test_delta_fires_when_elements_have_moved_far_enough(delta):
    windows = driver(GlobalWindows.create(), DeltaTrigger.of(10, delta))
    fired = [values(windows.element(("a", number))) for number in (0, 10, 11, 15, 22)]
    assert fired == [[], [], [("a", [0, 10, 11])], [], [("a", [0, 10, 11, 15, 22])]]


def test_delta_takes_none_for_an_element_like_any_other():
    stream = keyed_stream().key_by(lambda record: 0).window(GlobalWindows.create())

    class All(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield list(elements)

    windows = WindowDriver(stream.trigger(DeltaTrigger.of(0, lambda old, new: int(old is not new))).process(All()))
    fired = [values(windows.element(element)) for element in (None, None, ("a", 1))]
    assert fired == [[], [], [[None, None, ("a", 1)]]]


def test_processing_timeout_fires_at_the_latest_after_the_timeout():
    windows = driver(GlobalWindows.create(), ProcessingTimeoutTrigger.of(CountTrigger.of(3), Duration.of_millis(100)))
    windows.element(("a", 1))
    windows.pass_time(50)
    windows.element(("a", 2))
    assert values(windows.pass_time(51)) == [("a", [1, 2])]
    # The count begins anew after the timeout, and a firing stops the timeout.
    windows.element(("a", 3))
    windows.element(("a", 4))
    assert values(windows.element(("a", 5))) == [("a", [1, 2, 3, 4, 5])]
    assert values(windows.pass_time(1_000)) == []


def test_processing_timeout_can_begin_anew_with_each_element_and_leave_the_count_alone():
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), 100, True, False)
    windows = driver(GlobalWindows.create(), trigger)
    windows.element(("a", 1))
    windows.pass_time(60)
    windows.element(("a", 2))
    assert values(windows.pass_time(60)) == []
    assert values(windows.pass_time(41)) == [("a", [1, 2])]
    assert values(windows.element(("a", 3))) == [("a", [1, 2, 3])]


class FireOnStop(Trigger):
    """Fires on "stop", counts its elements in trigger state, and records its arguments."""

    seen = ReducingStateDescriptor("seen", lambda a, b: a + b, int)
    cleared: list = []

    def on_element(self, element, timestamp, window, ctx):
        seen = ctx.get_partitioned_state(self.seen)
        seen.add(1)
        ctx.register_event_time_timer(timestamp + 1)
        if element[1] == "stop":
            return TriggerResult.FIRE_AND_PURGE if seen.get() > 2 else TriggerResult.PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE if time == window.start + 3 else TriggerResult.CONTINUE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.seen)

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.seen).clear()
        FireOnStop.cleared.append((window.start, window.end))


class Words(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [word for _, word in elements]


def test_a_trigger_of_ones_own():
    windows = WindowDriver(keyed_stream().window(TEN).trigger(FireOnStop()).process(Words()))
    assert isinstance(windows.operator, GeneralWindowOperator)
    assert values(windows.batch([(("a", "x"), 5), (("a", "y"), 6), (("a", "stop"), 7)])) == [["x", "y", "stop"]]
    assert values(windows.element(("a", "z"), 2)) == []
    assert values(windows.watermark(3)) == [["z"]]
    assert values(windows.element(("b", "stop"), 8)) == []
    assert values(windows.watermark(MAX_WATERMARK)) == []
    assert (windows.rows(), len(windows.timers.event)) == (0, 0)


def test_the_state_of_a_trigger_of_ones_own_merges_and_is_cleared():
    """State and timers of merged sessions merge, and `clear` is called for each window that is removed."""
    FireOnStop.cleared.clear()
    windowed = keyed_stream().window(EventTimeSessionWindows.with_gap(5)).trigger(FireOnStop())
    windows = WindowDriver(windowed.process(Words()))
    assert windows.batch([(("a", "x"), 0), (("a", "y"), 8)]) == []
    assert values(windows.element(("a", "stop"), 4)) == [["x", "y", "stop"]]
    cleared = windows.operator.operation.trigger.cleared
    assert cleared == [(0, 5), (8, 13)]
    windows.watermark(MAX_WATERMARK)
    assert cleared == [(0, 5), (8, 13), (0, 13)]
    assert windows.rows() == 0


def test_a_trigger_that_says_nothing_is_told_what_to_say():
    class Forgetful(NeverTrigger):
        def on_element(self, element, timestamp, window, ctx):
            pass

    windows = driver(TEN, Forgetful())
    with pytest.raises(OperatorFailure) as failure:
        windows.element(("a", 1), 1)
    assert "must return a TriggerResult, not None" in str(failure.value.__cause__)


def test_state_that_cannot_be_merged_is_named():
    class Remembers(FireOnStop):
        last = ValueStateDescriptor("last", int)

        def on_merge(self, window, ctx):
            ctx.merge_partitioned_state(self.last)

    windows = driver(EventTimeSessionWindows.with_gap(5), Remembers())
    with pytest.raises(OperatorFailure) as failure:
        windows.batch([(("a", 1), 0), (("a", 2), 3)])
    assert "cannot be merged" in str(failure.value.__cause__)


@pytest.mark.parametrize("assigner", [EventTimeSessionWindows.with_gap(5), ProcessingTimeSessionWindows.with_gap(5)])
def test_sessions_refuse_triggers_that_cannot_merge(assigner):
    with pytest.raises(GraphError, match="can_merge"):
        keyed_stream().window(assigner).trigger(DeltaTrigger.of(1, Distance())).process(Numbers())


@pytest.mark.parametrize("make", [lambda: CountTrigger.of(0), lambda: ContinuousEventTimeTrigger.of(0)])
def test_impossible_triggers_are_refused(make):
    with pytest.raises(GraphError):
        make()
