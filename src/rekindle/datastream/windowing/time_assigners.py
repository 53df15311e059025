"""Assigners of tumbling and sliding windows, by event time or processing time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rekindle.common.serializer import TypeSerializer
from rekindle.common.time import Duration, Time, as_millis
from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.datastream.windowing.assigners import WindowAssigner
from rekindle.datastream.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from rekindle.datastream.windowing.triggers import Trigger
from rekindle.datastream.windowing.windows import TimeWindow, TimeWindowSerializer, window_repr
from rekindle.errors import GraphError, MissingTimestampError

Amount = Time | Duration | int


def event_time_of(assigner: object, timestamp: int | None) -> int:
    """Return an element's timestamp. Raises MissingTimestampError if it has none."""
    if timestamp is None or timestamp == NO_TIMESTAMP:
        raise MissingTimestampError(
            f"{type(assigner).__name__} needs elements with timestamps, and this one has none: call "
            "assign_timestamps_and_watermarks(...) before, or use windows of processing time."
        )
    return timestamp


class AlignedWindows(WindowAssigner[Any, TimeWindow]):
    """Windows of one size at a fixed distance from each other, the same for all keys."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        self._size = size
        self._slide = slide
        self._offset = offset

    @property
    def size(self) -> int:
        """The length of a window, in milliseconds."""
        return self._size

    @property
    def slide(self) -> int:
        """The time from the start of a window to the start of the next one, in milliseconds."""
        return self._slide

    @property
    def offset(self) -> int:
        """The shift of the windows' starts from 1970-01-01T00:00Z, in milliseconds."""
        return self._offset

    def _windows_at(self, time: int) -> list[TimeWindow]:
        last = TimeWindow.get_window_start_with_offset(time, self._offset, self._slide)
        return [TimeWindow(start, start + self._size) for start in range(last, time - self._size, -self._slide)]

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Return a serializer that writes start and end."""
        return TimeWindowSerializer()


class _EventTime(AlignedWindows):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """Return the windows that contain the element's timestamp, latest first."""
        return self._windows_at(event_time_of(self, timestamp))

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """Return a trigger that fires at the end of the window."""
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        """Return True."""
        return True


class _ProcessingTime(AlignedWindows):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """Return the windows that contain the current processing time, latest first."""
        return self._windows_at(context.get_current_processing_time())

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """Return a trigger that fires at the end of the window."""
        return ProcessingTimeTrigger.create()

    def is_event_time(self) -> bool:
        """Return False."""
        return False


class _Tumbling(AlignedWindows):
    def __init__(self, size: int, offset: int) -> None:
        if size <= 0 or abs(offset) >= size:
            raise GraphError(
                f"{type(self).__name__} needs a size above 0 and an offset of less than it, not {size} and {offset} ms."
            )
        super().__init__(size, size, offset)

    def __repr__(self) -> str:
        return window_repr(type(self).__name__, self._size, self._offset)


class _Sliding(AlignedWindows):
    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size <= 0 or slide <= 0:
            raise GraphError(f"{type(self).__name__} needs a size and a slide above 0, not {size} and {slide} ms.")
        super().__init__(size, slide, offset)

    def __repr__(self) -> str:
        return window_repr(type(self).__name__, self._size, self._slide, self._offset)


class TumblingEventTimeWindows(_Tumbling, _EventTime):
    """Consecutive windows of one size, by event time.

    >>> TumblingEventTimeWindows.of(Time.hours(1), Time.minutes(15))
    TumblingEventTimeWindows(3600000, 900000)
    """

    @staticmethod
    def of(size: Amount, offset: Amount | None = None) -> TumblingEventTimeWindows:
        """Return an assigner of windows of this size. `offset` shifts their starts from 1970-01-01T00:00Z."""
        return TumblingEventTimeWindows(as_millis(size), as_millis(offset or 0))


class TumblingProcessingTimeWindows(_Tumbling, _ProcessingTime):
    """Consecutive windows of one size, by processing time.

    >>> TumblingProcessingTimeWindows.of(Time.days(1), Time.hours(-8))
    TumblingProcessingTimeWindows(86400000, -28800000)
    """

    @staticmethod
    def of(size: Amount, offset: Amount | None = None) -> TumblingProcessingTimeWindows:
        """Return an assigner of windows of this size. `offset` shifts their starts from 1970-01-01T00:00Z."""
        return TumblingProcessingTimeWindows(as_millis(size), as_millis(offset or 0))


class SlidingEventTimeWindows(_Sliding, _EventTime):
    """Overlapping windows of one size, one of which begins every `slide`, by event time.

    >>> SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    SlidingEventTimeWindows(10000, 5000, 0)
    """

    @staticmethod
    def of(size: Amount, slide: Amount, offset: Amount | None = None) -> SlidingEventTimeWindows:
        """Return an assigner of windows of this size and slide. `offset` shifts their starts from 1970-01-01T00:00Z."""
        return SlidingEventTimeWindows(as_millis(size), as_millis(slide), as_millis(offset or 0))


class SlidingProcessingTimeWindows(_Sliding, _ProcessingTime):
    """Overlapping windows of one size, one of which begins every `slide`, by processing time.

    >>> SlidingProcessingTimeWindows.of(Time.hours(12), Time.hours(1), Time.hours(-8))
    SlidingProcessingTimeWindows(43200000, 3600000, -28800000)
    """

    @staticmethod
    def of(size: Amount, slide: Amount, offset: Amount | None = None) -> SlidingProcessingTimeWindows:
        """Return an assigner of windows of this size and slide. `offset` shifts their starts from 1970-01-01T00:00Z."""
        return SlidingProcessingTimeWindows(as_millis(size), as_millis(slide), as_millis(offset or 0))
