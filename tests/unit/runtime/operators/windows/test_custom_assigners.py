"""Custom assigners and windows, including merging ones."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rekindle.common import Types
from rekindle.common.serializer import TypeSerializer
from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.datastream import ProcessWindowFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import (
    EventTimeTrigger,
    MergingWindowAssigner,
    TimeWindow,
    TimeWindowSerializer,
    TumblingEventTimeWindows,
    Window,
    WindowAssigner,
)
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.operators.windows.general_windows import GeneralWindowOperator
from tests.support.window_driver import WindowDriver, keyed_stream


@dataclass(frozen=True)
class Season(Window):
    """A window with a name."""

    year: int
    name: str

    def max_timestamp(self):
        return self.year * 100 + {"summer": 49, "winter": 99}[self.name]


class SeasonSerializer(TypeSerializer):
    def serialize(self, element, stream):
        stream.write(f"{element.year}:{element.name}".encode())

    def deserialize(self, stream):
        year, name = stream.read().decode().split(":")
        return Season(int(year), name)


class Seasons(WindowAssigner):
    """Assigns each element to the season of its time; elements at a multiple of a hundred also to the season before."""

    def assign_windows(self, element, timestamp, context):
        year, day = divmod(timestamp, 100)
        windows = [Season(year, "summer" if day < 50 else "winter")]
        if element[1] == 100:
            windows.append(Season(year, "summer") if day >= 50 else Season(year - 1, "winter"))
        return windows

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def get_window_serializer(self):
        return SeasonSerializer()

    def is_event_time(self):
        return True


class Names(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window(), [number for _, number in elements]


@pytest.mark.parametrize("key_type", [None, Types.STRING()])
def test_windows_of_ones_own(key_type):
    stream = keyed_stream(key_type=key_type).window(Seasons()).process(Names())
    windows = WindowDriver(stream)
    windows.batch([(("a", 1), 110), (("a", 100), 170), (("b", 3), 180)])
    windows = WindowDriver(stream, restore=windows.snapshot())
    assert windows.watermark(149) == [(("a", Season(1, "summer"), [1, 100]), 149)]
    assert windows.watermark(MAX_WATERMARK) == [
        (("a", Season(1, "winter"), [100]), 199),
        (("b", Season(1, "winter"), [3]), 199),
    ]
    assert (windows.rows(), len(windows.timers.event)) == (0, 0)


def test_an_element_may_be_in_no_window():
    class Some(Seasons):
        def assign_windows(self, element, timestamp, context):
            return [] if element[1] < 0 else super().assign_windows(element, timestamp, context)

    windows = WindowDriver(keyed_stream().window(Some()).process(Names()))
    windows.batch([(("a", -1), 110), (("a", 1), 120)])
    assert windows.watermark(MAX_WATERMARK) == [(("a", Season(1, "summer"), [1]), 149)]
    assert windows.late_dropped == 0


def test_assigners_may_keep_state_of_the_key():
    class EveryOther(Seasons):
        """The second, fourth, ... element of a key is in no window."""

        seen = ValueStateDescriptor("seen", bool)

        def assign_windows(self, element, timestamp, context):
            seen = context.get_runtime_context().get_state(self.seen)
            skip = seen.value()
            seen.update(not skip)
            return [] if skip else super().assign_windows(element, timestamp, context)

    windows = WindowDriver(keyed_stream().window(EveryOther()).process(Names()))
    windows.batch([(("a", 1), 101), (("b", 2), 102), (("a", 3), 103), (("a", 4), 104)])
    assert [value for value, _ in windows.watermark(149)] == [
        ("a", Season(1, "summer"), [1, 4]),
        ("b", Season(1, "summer"), [2]),
    ]


def test_a_subclass_of_a_built_in_assigner_is_asked():
    class Doubled(TumblingEventTimeWindows):
        def assign_windows(self, element, timestamp, context):
            (window,) = super().assign_windows(element, timestamp, context)
            return [window, TimeWindow(window.start, window.end + 5)]

    windows = WindowDriver(keyed_stream().window(Doubled(10, 0)).process(Names()))
    assert isinstance(windows.operator, GeneralWindowOperator)
    windows.element(("a", 1), 3)
    fired = windows.watermark(MAX_WATERMARK)
    assert [value[1] for value, _ in fired] == [TimeWindow(0, 10), TimeWindow(0, 15)]


class Neighbours(MergingWindowAssigner):
    """Windows of ten that merge where they touch, unless the merged window would be longer than thirty."""

    longest = 30

    def assign_windows(self, element, timestamp, context):
        start = timestamp - timestamp % 10
        return [TimeWindow(start, start + 10)]

    def merge_windows(self, windows, callback):
        group: list[TimeWindow] = []
        for window in sorted(set(windows)):
            if group and group[-1].end == window.start and window.end - group[0].start <= self.longest:
                group.append(window)
                continue
            self._tell(group, callback)
            group = [window]
        self._tell(group, callback)

    @staticmethod
    def _tell(group, callback):
        if len(group) > 1:
            callback.merge(group, TimeWindow(group[0].start, group[-1].end))

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


def test_merging_windows_of_ones_own():
    stream = keyed_stream().window(Neighbours()).process(Names())
    windows = WindowDriver(stream)
    for number, time in enumerate((5, 25, 15, 35)):
        windows.element(("a", number), time)
        windows = WindowDriver(stream, restore=windows.snapshot())
    assert windows.watermark(MAX_WATERMARK) == [
        (("a", TimeWindow(0, 30), [0, 1, 2]), 29),
        (("a", TimeWindow(30, 40), [3]), 39),
    ]
    assert (windows.rows(), len(windows.timers.event)) == (0, 0)


def test_a_merged_window_must_not_end_in_the_past():
    class Shrinking(Neighbours):
        def merge_windows(self, windows, callback):
            known = sorted(set(windows))
            if len(known) > 1:
                callback.merge(known, TimeWindow(0, 1))

    windows = WindowDriver(keyed_stream().window(Shrinking()).process(Names()))
    windows.watermark(5)
    windows.element(("a", 1), 15)
    with pytest.raises(OperatorFailure) as failure:
        windows.element(("a", 2), 25)
    assert "has passed already" in str(failure.value.__cause__)
