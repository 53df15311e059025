"""Triggers that fire by the elements: by their number, or by their distance from an earlier element."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast

from rekindle.common.typeinfo import Types, infer_type_info
from rekindle.datastream.state import ReducingState, ReducingStateDescriptor, ValueState, ValueStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.windowing.triggers import Trigger, TriggerResult
from rekindle.errors import GraphError


def _add(one: int, other: int) -> int:
    return one + other


class CountTrigger(Trigger[Any, Any]):
    """Fires with every n-th element of a window. The elements stay in the window, unless in a `PurgingTrigger`.

    >>> CountTrigger.of(3)
    CountTrigger(3)
    """

    def __init__(self, window_size: int) -> None:
        if window_size <= 0:
            raise GraphError(f"CountTrigger needs a count of 1 or more elements, not {window_size}.")
        self._window_size = window_size
        self._count_state_descriptor = reserved(ReducingStateDescriptor("count", _add, int))

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Return a trigger that fires every `window_size` elements."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire with the n-th element, and restart the count."""
        count = self._count(ctx)
        count.add(1)
        if count.get() < self._window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use timers."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use timers."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Add the counts."""
        ctx.merge_partitioned_state(self._count_state_descriptor)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Clear the count."""
        self._count(ctx).clear()

    def _count(self, ctx: Trigger.TriggerContext) -> ReducingState[int]:
        return cast("ReducingState[int]", ctx.get_partitioned_state(self._count_state_descriptor))

    def __repr__(self) -> str:
        return f"CountTrigger({self._window_size})"


class DeltaFunction(ABC):
    """Computes the distance of two elements (in Flink: Java only). A callable of two elements works, too.

    >>> class Distance(DeltaFunction):
    ...     def get_delta(self, old_data_point, new_data_point):
    ...         return abs(new_data_point - old_data_point)
    >>> Distance().get_delta(3, 5)
    2
    """

    @abstractmethod
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        """Return the distance from the old element to the new one."""


Delta = Callable[[Any, Any], float]


def delta_of(where: str, function: DeltaFunction | Delta) -> Delta:
    """Return a delta function as a plain callable."""
    if isinstance(function, DeltaFunction):
        return function.get_delta
    if callable(function):
        return function
    raise GraphError(f"{where} takes a DeltaFunction or a callable of two elements, not {function!r}.")


class DeltaTrigger(Trigger[Any, Any]):
    """Fires when an element is further than a threshold from the element of the last firing (in Flink: Java only).

    >>> DeltaTrigger.of(10.0, lambda old, new: abs(new - old), float)
    DeltaTrigger(10.0)
    """

    def __init__(self, threshold: float, delta_function: DeltaFunction | Delta, element_type_info: Any = None) -> None:
        self._threshold = threshold
        self._delta = delta_of("DeltaTrigger", delta_function)
        # The state holds the element in a tuple, because an element may be None and a state value may not.
        declared = None if element_type_info is None else Types.TUPLE([infer_type_info(element_type_info)])
        self._last_element_descriptor = reserved(ValueStateDescriptor("last-element", declared))

    @staticmethod
    def of(threshold: float, delta_function: DeltaFunction | Delta, element_type_info: Any = None) -> DeltaTrigger:
        """Return a trigger with this threshold and distance function. `element_type_info` is the elements' type."""
        return DeltaTrigger(threshold, delta_function, element_type_info)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire if the element is further than the threshold from the last one kept."""
        last = cast("ValueState[tuple[Any]]", ctx.get_partitioned_state(self._last_element_descriptor))
        held = last.value()
        if held is not None and self._delta(held[0], element) <= self._threshold:
            return TriggerResult.CONTINUE
        last.update((element,))
        return TriggerResult.CONTINUE if held is None else TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use timers."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing: the trigger does not use timers."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Do nothing: the trigger does not support merging windows."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Clear the last element."""
        ctx.get_partitioned_state(self._last_element_descriptor).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self._threshold})"
