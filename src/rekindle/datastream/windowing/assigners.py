"""Which windows an element belongs to: the contract of assigners, global and count windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeVar

from rekindle.common.serializer import TypeSerializer
from rekindle.datastream.functions.function import RuntimeContext
from rekindle.datastream.state import ValueState, ValueStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.windowing.element_triggers import CountTrigger
from rekindle.datastream.windowing.time_triggers import EndOfStreamTrigger
from rekindle.datastream.windowing.triggers import NeverTrigger, PurgingTrigger, Trigger
from rekindle.datastream.windowing.windows import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    window_repr,
)
from rekindle.errors import GraphError

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowAssigner(ABC, Generic[T, W]):
    """Puts each element into zero or more windows.

    >>> from rekindle.datastream.window import EventTimeTrigger, TimeWindow, TimeWindowSerializer
    >>> class WholeDays(WindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         start = timestamp - timestamp % 86_400_000
    ...         return [TimeWindow(start, start + 86_400_000)]
    ...     def get_default_trigger(self, env):
    ...         return EventTimeTrigger.create()
    ...     def get_window_serializer(self):
    ...         return TimeWindowSerializer()
    ...     def is_event_time(self):
    ...         return True
    >>> WholeDays().assign_windows("x", 5, None)
    [TimeWindow(start=0, end=86400000)]
    """

    class WindowAssignerContext(ABC):
        """What an assigner may ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The clock, in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Where the assigner finds itself; its state is that of the element's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of an element."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger where `trigger()` names none."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """How windows are written; equal windows must give equal bytes."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark rather than by the clock."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may grow together."""

    class MergeCallback(ABC, Generic[W2]):
        """Whom `merge_windows` tells what it found."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """These windows become that one."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Find the windows that belong together."""


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """All elements of a key in one window, which never ends: give it a trigger.

    >>> GlobalWindows.create()
    GlobalWindows()
    """

    def __init__(self) -> None:
        self._trigger: Trigger[Any, GlobalWindow] = NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """The assigner; by default its window never fires."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """The same, but the window fires when the input has ended (Flink's, in Java only)."""
        assigner = GlobalWindows()
        assigner._trigger = EndOfStreamTrigger()
        return assigner

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        """The global window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        """`NeverTrigger`, or the end of the stream."""
        return self._trigger

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        """One byte."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """No."""
        return False


class _CountAssigner(WindowAssigner[Any, CountWindow]):
    """Numbers the elements of a key. A window goes when it is full: nothing of it stays behind."""

    _state_name: str

    def __init__(self, window_size: int) -> None:
        if window_size <= 0:
            raise GraphError(f"A count window holds 1 or more elements, not {window_size}.")
        self._window_size = window_size
        self._count_descriptor = reserved(ValueStateDescriptor(self._state_name, int))
        self._counter: ValueState[int] | None = None

    def _place(self, context: WindowAssigner.WindowAssignerContext) -> int:
        if self._counter is None:
            self._counter = context.get_runtime_context().get_state(self._count_descriptor)
        counter = self._counter
        place = counter.value() or 0
        counter.update(place + 1)
        return place

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """When the window is full."""
        return PurgingTrigger.of(CountTrigger.of(self._window_size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        """The number of the window."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """No."""
        return False


class CountTumblingWindowAssigner(_CountAssigner):
    """Every n elements of a key are a window.

    >>> CountTumblingWindowAssigner.of(3)
    CountTumblingWindowAssigner(3)
    """

    _state_name = "tumble-count-assigner"

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Of so many elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """The window that the key's next element goes into."""
        return [CountWindow(self._place(context) // self._window_size)]

    def __repr__(self) -> str:
        return window_repr("CountTumblingWindowAssigner", self._window_size)


class CountSlidingWindowAssigner(_CountAssigner):
    """Windows of n elements of a key, one beginning with every m-th element.

    >>> CountSlidingWindowAssigner.of(10, 5)
    CountSlidingWindowAssigner(10, 5)
    """

    _state_name = "slide-count-assigner"

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        if window_slide <= 0:
            raise GraphError(f"A count window slides by 1 or more elements, not {window_slide}.")
        self._window_slide = window_slide

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Of so many elements, one beginning with every so many."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """The windows that the key's next element goes into, the newest first."""
        place, size, slide = self._place(context), self._window_size, self._window_slide
        oldest = max(0, (place - size) // slide + 1)
        return [CountWindow(number) for number in range(place // slide, oldest - 1, -1)]

    def __repr__(self) -> str:
        return window_repr("CountSlidingWindowAssigner", self._window_size, self._window_slide)
