"""Session windows, which end after a gap without elements. The gap is fixed or depends on each element."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any

from rekindle.common.serializer import TypeSerializer
from rekindle.common.time import as_millis
from rekindle.datastream.windowing.assigners import MergingWindowAssigner, WindowAssigner
from rekindle.datastream.windowing.time_assigners import Amount, event_time_of
from rekindle.datastream.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from rekindle.datastream.windowing.triggers import Trigger
from rekindle.datastream.windowing.windows import TimeWindow, TimeWindowSerializer, window_repr
from rekindle.errors import GraphError


class SessionWindowTimeGapExtractor(ABC):
    """Extracts the session gap from an element. A callable of one element works, too.

    >>> class ByUser(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 60_000 if element["user"] == "robot" else 900_000
    >>> ByUser().extract({"user": "ann"})
    900000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap after this element, in milliseconds."""


Extractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class SessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    """Assigns each element to a window as long as its gap, and merges windows that overlap or touch."""

    #: The gap, if it is the same for all elements.
    fixed_gap: int | None = None

    @abstractmethod
    def gap_of(self, element: Any) -> int:
        """Return the gap after an element, above 0 ms."""

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Merge windows that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Return a serializer that writes start and end."""
        return TimeWindowSerializer()


class _FixedGap(SessionWindows):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise GraphError(f"{type(self).__name__} needs a gap above 0 ms, not {session_gap}.")
        self._session_gap = session_gap
        self.fixed_gap = session_gap

    def gap_of(self, element: Any) -> int:
        """Return the fixed gap."""
        return self._session_gap

    def __repr__(self) -> str:
        return window_repr(type(self).__name__, self._session_gap)


class _DynamicGap(SessionWindows):
    def __init__(self, session_window_time_gap_extractor: Extractor) -> None:
        extract = getattr(session_window_time_gap_extractor, "extract", session_window_time_gap_extractor)
        if not callable(extract):
            raise GraphError(
                f"{type(self).__name__} takes a SessionWindowTimeGapExtractor or a callable, "
                f"not {session_window_time_gap_extractor!r}."
            )
        self._extractor = session_window_time_gap_extractor
        self._extract: Callable[[Any], int] = extract

    def gap_of(self, element: Any) -> int:
        """Return the gap that the extractor finds in the element."""
        gap = self._extract(element)
        if not gap > 0:
            raise ValueError(f"the session gap of an element must be above 0 ms, not {gap!r}")
        return gap

    def __repr__(self) -> str:
        return window_repr(type(self).__name__, type(self._extractor).__name__)


class _EventTime(SessionWindows):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """Return a window from the element's timestamp to the end of its gap."""
        start = event_time_of(self, timestamp)
        return [TimeWindow(start, start + self.gap_of(element))]

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """Return a trigger that fires at the end of the window."""
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        """Return True."""
        return True


class _ProcessingTime(SessionWindows):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """Return a window from the current processing time to the end of the element's gap."""
        start = context.get_current_processing_time()
        return [TimeWindow(start, start + self.gap_of(element))]

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """Return a trigger that fires at the end of the window."""
        return ProcessingTimeTrigger.create()

    def is_event_time(self) -> bool:
        """Return False."""
        return False


class EventTimeSessionWindows(_FixedGap, _EventTime):
    """Event-time sessions: elements that are at most a gap apart are in one window.

    >>> from rekindle.common import Time
    >>> EventTimeSessionWindows.with_gap(Time.minutes(10))
    EventTimeSessionWindows(600000)
    """

    @staticmethod
    def with_gap(size: Amount) -> EventTimeSessionWindows:
        """Return an assigner with the same gap after every element."""
        return EventTimeSessionWindows(as_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """Return an assigner whose extractor finds the gap in each element."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGap, _ProcessingTime):
    """Processing-time sessions: elements that arrive at most a gap apart are in one window.

    >>> from rekindle.common import Time
    >>> ProcessingTimeSessionWindows.with_gap(Time.minutes(10))
    ProcessingTimeSessionWindows(600000)
    """

    @staticmethod
    def with_gap(size: Amount) -> ProcessingTimeSessionWindows:
        """Return an assigner with the same gap after every element."""
        return ProcessingTimeSessionWindows(as_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """Return an assigner whose extractor finds the gap in each element."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_DynamicGap, _EventTime):
    """Event-time sessions whose gap depends on the element.

    >>> DynamicEventTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"]).is_event_time()
    True
    """

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """Return an assigner whose extractor finds the gap in each element."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicGap, _ProcessingTime):
    """Processing-time sessions whose gap depends on the element.

    >>> DynamicProcessingTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"]).is_event_time()
    False
    """

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """Return an assigner whose extractor finds the gap in each element."""
        return DynamicProcessingTimeSessionWindows(extractor)
