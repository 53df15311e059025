"""Session windows: they end after a gap without elements, fixed or told by each element."""

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
    """Tells the session gap of an element; a callable of one element will do, too.

    >>> class ByUser(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 60_000 if element["user"] == "robot" else 900_000
    >>> ByUser().extract({"user": "ann"})
    900000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap after this element, in milliseconds."""


Extractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class SessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    """Each element opens a window as long as its gap; windows that touch become one."""

    #: The gap, if it is the same for all elements.
    fixed_gap: int | None = None

    @abstractmethod
    def gap_of(self, element: Any) -> int:
        """The gap after an element, above 0."""

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Windows that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Start and end."""
        return TimeWindowSerializer()


class _FixedGap(SessionWindows):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise GraphError(f"{type(self).__name__} needs a gap above 0 ms, not {session_gap}.")
        self._session_gap = session_gap
        self.fixed_gap = session_gap

    def gap_of(self, element: Any) -> int:
        """The same for every element."""
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
        """What the extractor says."""
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
        """From the element's timestamp to the end of its gap."""
        start = event_time_of(self, timestamp)
        return [TimeWindow(start, start + self.gap_of(element))]

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """At the end of the window."""
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        """Yes."""
        return True


class _ProcessingTime(SessionWindows):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """From the present moment to the end of the element's gap."""
        start = context.get_current_processing_time()
        return [TimeWindow(start, start + self.gap_of(element))]

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """At the end of the window."""
        return ProcessingTimeTrigger.create()

    def is_event_time(self) -> bool:
        """No."""
        return False


class EventTimeSessionWindows(_FixedGap, _EventTime):
    """Sessions of event time: elements that are at most a gap apart are in one window.

    >>> from rekindle.common import Time
    >>> EventTimeSessionWindows.with_gap(Time.minutes(10))
    EventTimeSessionWindows(600000)
    """

    @staticmethod
    def with_gap(size: Amount) -> EventTimeSessionWindows:
        """With the same gap after every element."""
        return EventTimeSessionWindows(as_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """With the gap that the extractor finds in each element."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGap, _ProcessingTime):
    """Sessions by the clock of the machine.

    >>> from rekindle.common import Time
    >>> ProcessingTimeSessionWindows.with_gap(Time.minutes(10))
    ProcessingTimeSessionWindows(600000)
    """

    @staticmethod
    def with_gap(size: Amount) -> ProcessingTimeSessionWindows:
        """With the same gap after every element."""
        return ProcessingTimeSessionWindows(as_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """With the gap that the extractor finds in each element."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_DynamicGap, _EventTime):
    """Sessions of event time whose gap depends on the element.

    >>> DynamicEventTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"]).is_event_time()
    True
    """

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicEventTimeSessionWindows:
        """With the gap that the extractor finds in each element."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicGap, _ProcessingTime):
    """Sessions by the clock of the machine whose gap depends on the element.

    >>> DynamicProcessingTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"]).is_event_time()
    False
    """

    @staticmethod
    def with_dynamic_gap(extractor: Extractor) -> DynamicProcessingTimeSessionWindows:
        """With the gap that the extractor finds in each element."""
        return DynamicProcessingTimeSessionWindows(extractor)
