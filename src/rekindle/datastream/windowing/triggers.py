"""When a window's contents are evaluated: the contract of triggers, and those that wrap others or never fire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rekindle.datastream.state import State, StateDescriptor

if TYPE_CHECKING:
    from rekindle.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What a trigger wants to happen: evaluate the window (fire), empty it (purge), both, or nothing.

    >>> TriggerResult.FIRE_AND_PURGE.is_fire(), TriggerResult.FIRE.is_purge()
    (True, False)
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window is evaluated."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the window's contents are thrown away."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window is evaluated. One object serves all keys and windows: what it remembers must be state.

    >>> from rekindle.datastream.state import ReducingStateDescriptor
    >>> class EverySecondElement(Trigger):
    ...     seen = ReducingStateDescriptor("seen", lambda a, b: a + b, int)
    ...     def on_element(self, element, timestamp, window, ctx):
    ...         seen = ctx.get_partitioned_state(self.seen)
    ...         seen.add(1)
    ...         return TriggerResult.FIRE if seen.get() % 2 == 0 else TriggerResult.CONTINUE
    ...     def on_processing_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_event_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_merge(self, window, ctx):
    ...         ctx.merge_partitioned_state(self.seen)
    ...     def clear(self, window, ctx):
    ...         ctx.get_partitioned_state(self.seen).clear()
    >>> EverySecondElement().can_merge()
    False
    """

    class TriggerContext(ABC):
        """Clocks, timers and state of the window and key that the trigger is called for."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The clock, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Where the trigger may register metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Event time, in milliseconds."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have `on_processing_time` called when the clock reaches `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have `on_event_time` called when the watermark reaches `time`."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Take a processing-time timer back."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Take an event-time timer back."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """State of this window and key."""

    class OnMergeContext(TriggerContext):
        """The same while windows merge; its window is the one they become."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the windows that go into that of the one that stays."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An element was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A processing-time timer of the window has come."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer of the window has come."""

    def can_merge(self) -> bool:
        """Whether the trigger works with windows that merge, such as sessions."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Several windows have become `window`: merge state, set timers."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window goes: clear state and timers."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NeverTrigger(Trigger[Any, Any]):
    """Never fires: what `GlobalWindows` have by default."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Go on."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Go on."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Go on."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Nothing to merge."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Nothing to clear."""


class PurgingTrigger(Trigger[Any, Any]):
    """Another trigger, whose firings also empty the window.

    >>> from rekindle.datastream.window import CountTrigger
    >>> PurgingTrigger.of(CountTrigger.of(3))
    PurgingTrigger(CountTrigger(3))
    """

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Wrap a trigger."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """What the wrapped one says, and purge."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """What the wrapped one says, and purge."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """What the wrapped one says, and purge."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Whether the wrapped one can."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """The wrapped one's."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """The wrapped one's."""
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger})"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
