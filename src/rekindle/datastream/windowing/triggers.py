"""Triggers, which decide when a window is evaluated: the base class, `NeverTrigger` and `PurgingTrigger`."""

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
    """The decision of a trigger: evaluate the window (fire), empty it (purge), both, or nothing.

    >>> TriggerResult.FIRE_AND_PURGE.is_fire(), TriggerResult.FIRE.is_purge()
    (True, False)
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return whether the window is evaluated."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Return whether the window's contents are removed."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window is evaluated. One object serves all keys and windows, so it must keep its data in state.

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
        """The clocks, timers and state of the current window and key."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the group in which the trigger may register metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark, in milliseconds."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call `on_processing_time` when the wall clock reaches `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call `on_event_time` when the watermark reaches `time`."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a processing-time timer."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete an event-time timer."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """Return the state of this window and key."""

    class OnMergeContext(TriggerContext):
        """The context while windows merge. The current window is the merged one."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the merged windows into the state of the resulting window."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide after an element was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide when a processing-time timer of the window fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide when an event-time timer of the window fires."""

    def can_merge(self) -> bool:
        """Return whether the trigger supports merging windows, such as sessions."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Merge state and set timers after several windows were merged into `window`."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Clear state and timers when the window is removed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NeverTrigger(Trigger[Any, Any]):
    """Never fires. It is the default trigger of `GlobalWindows`."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Return CONTINUE."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Return CONTINUE."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Return CONTINUE."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Do nothing: the trigger has no state."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Do nothing: the trigger has no state."""


class PurgingTrigger(Trigger[Any, Any]):
    """Wraps a trigger and also empties the window whenever that trigger fires.

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
        """Ask the wrapped trigger, and purge if it fires."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the wrapped trigger, and purge if it fires."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the wrapped trigger, and purge if it fires."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Return whether the wrapped trigger supports merging windows."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Call the wrapped trigger."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Clear the wrapped trigger."""
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger})"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
