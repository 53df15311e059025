"""Window assigners: the base classes, and the assigners of global and count windows."""

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
    """Assigns each element to zero or more windows.

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
        """The clock and the runtime context of an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the runtime context. State from it belongs to the element's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """Return the windows of an element."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """Return the trigger for streams on which `trigger()` was not called."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """Return the serializer of the windows. Equal windows must give equal bytes."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return whether windows end by event time, not processing time."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may be merged, such as session windows."""

    class MergeCallback(ABC, Generic[W2]):
        """Receives the groups of windows that `merge_windows` finds."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Replace the windows `to_be_merged` by `merge_result`."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Call `callback.merge` for each group of windows to be merged."""


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Assigns all elements of a key to one window, which never ends. Set a trigger, or it never fires.

    >>> GlobalWindows.create()
    GlobalWindows()
    """

    def __init__(self) -> None:
        self._trigger: Trigger[Any, GlobalWindow] = NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """Return an assigner whose window never fires by default."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Return an assigner whose window fires at the end of the input (in Flink: Java only)."""
        assigner = GlobalWindows()
        assigner._trigger = EndOfStreamTrigger()
        return assigner

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        """Return the global window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        """Return `NeverTrigger` or the end-of-stream trigger."""
        return self._trigger

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        """Return a serializer that writes one byte."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False."""
        return False


class _CountAssigner(WindowAssigner[Any, CountWindow]):
    """Numbers the elements of a key. A full window fires and is purged, so that nothing of it stays in state."""

    _state_name: str

    def __init__(self, window_size: int) -> None:
        if window_size <= 0:
            raise GraphError(f"A count window holds 1 or more elements, not {window_size}.")
        self._window_size = window_size
        self._count_descriptor = reserved(ValueStateDescriptor(self._state_name, int))
        self._counter: ValueState[int] | None = None

    def _next_number(self, context: WindowAssigner.WindowAssignerContext) -> int:
        if self._counter is None:
            self._counter = context.get_runtime_context().get_state(self._count_descriptor)
        counter = self._counter
        number = counter.value() or 0
        counter.update(number + 1)
        return number

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """Return a trigger that fires and purges a full window."""
        return PurgingTrigger.of(CountTrigger.of(self._window_size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        """Return a serializer that writes the window's number."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False."""
        return False


class CountTumblingWindowAssigner(_CountAssigner):
    """Assigns every `window_size` elements of a key to a new window.

    >>> CountTumblingWindowAssigner.of(3)
    CountTumblingWindowAssigner(3)
    """

    _state_name = "tumble-count-assigner"

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Return an assigner of windows of `window_size` elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """Return the window of the key's next element."""
        return [CountWindow(self._next_number(context) // self._window_size)]

    def __repr__(self) -> str:
        return window_repr("CountTumblingWindowAssigner", self._window_size)


class CountSlidingWindowAssigner(_CountAssigner):
    """Assigns the elements of a key to windows of `window_size`. A window begins every `window_slide` elements.

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
        """Return an assigner of windows of `window_size` elements that begin every `window_slide` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """Return the windows of the key's next element, newest first."""
        number, size, slide = self._next_number(context), self._window_size, self._window_slide
        oldest = max(0, (number - size) // slide + 1)
        return [CountWindow(window) for window in range(number // slide, oldest - 1, -1)]

    def __repr__(self) -> str:
        return window_repr("CountSlidingWindowAssigner", self._window_size, self._window_slide)
