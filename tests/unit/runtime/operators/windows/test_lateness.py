"""Late elements: allowed, sent aside, dropped and counted; on the fast operators and on the general one."""

from __future__ import annotations

import pytest

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import OutputTag, ProcessWindowFunction
from rekindle.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingProcessingTimeWindows
from rekindle.errors import GraphError, MissingTimestampError
from rekindle.runtime.operators.output import OperatorFailure
from tests.support.window_driver import WindowDriver, keyed_stream
from tests.unit.runtime.operators.windows.window_samples import TEN

LATE = OutputTag("late")

pytestmark = pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])


class Numbers(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield context.window().start, [number for _, number in elements]


def driver(assigner, lateness=0, general=False, tag=None):
    windowed = keyed_stream().window(assigner).allowed_lateness(lateness)
    if tag is not None:
        windowed = windowed.side_output_late_data(tag)
    stream = windowed.process(Numbers())
    if tag is not None:
        stream.get_side_output(tag)
    return WindowDriver(stream, general=general, side_output=None if tag is None else tag.tag_id)


def test_without_lateness_a_late_element_is_dropped_and_counted(general):
    windows = driver(TEN, general=general)
    windows.element(("a", 1), 5)
    assert windows.watermark(9) == [((0, [1]), 9)]
    assert windows.element(("a", 2), 9) == []
    assert windows.late_dropped == 1
    assert windows.watermark(MAX_WATERMARK) == []
    assert windows.rows() == 0


def test_late_firings_show_everything_so_far(general):
    windows = driver(TEN, lateness=5, general=general)
    windows.element(("a", 1), 5)
    assert windows.watermark(9) == [((0, [1]), 9)]
    assert windows.element(("a", 2), 6) == [((0, [1, 2]), 9)]
    assert windows.watermark(13) == []
    assert windows.element(("a", 3), 7) == [((0, [1, 2, 3]), 9)]
    assert windows.watermark(14) == []
    assert windows.element(("a", 4), 8) == []
    assert windows.late_dropped == 1
    assert (windows.rows(), len(windows.timers.event)) == (0, 0)


def test_a_late_element_with_a_list_as_key_joins_its_window(general):
    windows = driver(TEN, lateness=5, general=general)
    windows.element((["a"], 1), 5)
    assert windows.watermark(9) == [((0, [1]), 9)]
    assert windows.element((["a"], 2), 6) == [((0, [1, 2]), 9)]


def test_a_late_element_may_open_a_window(general):
    windows = driver(TEN, lateness=5, general=general)
    windows.watermark(11)
    assert windows.element(("a", 1), 3) == [((0, [1]), 9)]
    assert windows.watermark(13) == []
    assert windows.element(("a", 2), 3) == [((0, [1, 2]), 9)]
    assert windows.watermark(MAX_WATERMARK) == []
    assert windows.rows() == 0


def test_a_window_of_an_element_before_the_watermark_may_still_be_open(general):
    """An element is late if it comes after the end of its window, not if it comes after the watermark."""
    windows = driver(TEN, general=general)
    windows.watermark(7)
    assert windows.element(("a", 1), 2) == []
    assert windows.watermark(9) == [((0, [1]), 9)]
    assert windows.late_dropped == 0


def test_sliding_windows_of_which_some_have_gone(general):
    windows = driver(SlidingEventTimeWindows.of(10, 5), general=general)
    windows.watermark(12)
    assert windows.element(("a", 1), 8) == []
    assert windows.watermark(14) == [((5, [1]), 14)]
    assert windows.late_dropped == 0
    assert windows.element(("a", 2), 8) == []
    assert windows.late_dropped == 1


def test_elements_between_windows_are_neither_kept_nor_late(general):
    windows = driver(SlidingEventTimeWindows.of(2, 10), general=general)
    assert windows.batch([(("a", 1), 5), (("a", 2), 11)]) == []
    assert windows.watermark(8) == []
    assert windows.element(("a", 3), 5) == []
    assert windows.late_dropped == 1
    assert windows.watermark(MAX_WATERMARK) == [((10, [2]), 11)]


def test_late_data_goes_to_the_side_output_with_its_timestamp(general):
    windows = driver(TEN, lateness=3, general=general, tag=LATE)
    windows.watermark(12)
    assert windows.element(("a", 1), 4) == [("late", ("a", 1), 4)]
    assert windows.late_dropped == 0


def test_late_data_of_sessions(general):
    windows = driver(EventTimeSessionWindows.with_gap(5), lateness=2, general=general, tag=LATE)
    windows.element(("a", 1), 0)
    assert windows.watermark(4) == [((0, [1]), 4)]
    # Joined by a late element, the session fires again at once; prolonged beyond the watermark, it waits for its end.
    assert windows.element(("a", 2), -1) == [((-1, [1, 2]), 4)]
    assert windows.element(("a", 3), 4) == []
    assert windows.watermark(8) == [((-1, [1, 2, 3]), 8)]
    assert windows.watermark(10) == []
    assert windows.element(("a", 4), 3) == [("late", ("a", 4), 3)]
    assert windows.watermark(MAX_WATERMARK) == []
    assert windows.rows() == 0


def test_a_lateness_without_end_keeps_windows_for_ever(general):
    windows = driver(TEN, lateness=MAX_WATERMARK, general=general)
    windows.element(("a", 1), 5)
    windows.watermark(1_000_000)
    windows.taken()
    assert windows.element(("a", 2), 5) == [((0, [1, 2]), 9)]
    assert len(windows.timers.event) == 0


def test_lateness_survives_a_restore(general):
    """Late elements stay late (I6), and windows that have fired do not fire again."""
    stream = keyed_stream().window(TEN).allowed_lateness(5).process(Numbers())
    windows = WindowDriver(stream, general=general)
    windows.element(("a", 1), 5)
    windows.watermark(12)
    windows.taken()
    restored = WindowDriver(stream, general=general, restore=windows.snapshot())
    assert restored.watermark(13) == []
    assert restored.element(("a", 2), 6) == [((0, [1, 2]), 9)]
    assert restored.watermark(14) == []
    assert restored.element(("a", 3), 6) == []
    assert restored.late_dropped == 1
    assert restored.rows() == 0


def test_a_restore_to_an_earlier_watermark_fires_nothing_twice(general):
    """At another parallelism the watermark is the minimum of all subtasks: windows that have fired may end after it."""
    stream = keyed_stream().window(TEN).allowed_lateness(50).process(Numbers())
    windows = WindowDriver(stream, general=general)
    windows.batch([(("a", 1), 5), (("b", 2), 5)])
    windows.watermark(12)
    snapshot = windows.snapshot()
    snapshot.watermark = 3
    restored = WindowDriver(stream, general=general, restore=snapshot)
    assert restored.element(("a", 3), 6) == []
    assert restored.element(("c", 4), 6) == []
    assert restored.watermark(9) == [((0, [1, 3]), 9), ((0, [4]), 9)]
    assert restored.element(("b", 5), 7) == [((0, [2, 5]), 9)]
    assert restored.watermark(MAX_WATERMARK) == []
    assert restored.rows() == 0


def test_elements_without_timestamps_are_refused_with_what_to_do(general):
    for assigner in (TEN, SlidingEventTimeWindows.of(10, 5), EventTimeSessionWindows.with_gap(3)):
        with pytest.raises(OperatorFailure) as failure:
            driver(assigner, general=general).element(("a", 1))
        assert isinstance(failure.value.__cause__, MissingTimestampError)
        assert "assign_timestamps_and_watermarks" in str(failure.value.__cause__)
        assert failure.value.record == ("a", 1)


def test_lateness_has_no_meaning_in_processing_time(general):
    windows = driver(TumblingProcessingTimeWindows.of(10), lateness=1_000, general=general)
    windows.element(("a", 1))
    assert windows.pass_time(10) == [((0, [1]), 9)]
    assert windows.rows() == 0


def test_a_lateness_before_the_end_is_refused(general):
    with pytest.raises(GraphError, match="0 or more"):
        keyed_stream().window(TEN).allowed_lateness(-1)
