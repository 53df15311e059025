"""Evictors, which remove elements from a window before or after it is evaluated (in Flink: Java only)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rekindle.common.time import as_millis
from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.datastream.windowing.element_triggers import Delta, DeltaFunction, delta_of
from rekindle.datastream.windowing.time_assigners import Amount

if TYPE_CHECKING:
    from rekindle.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W")


@dataclass(frozen=True)
class TimestampedValue(Generic[T]):
    """An element of a window with its timestamp.

    >>> TimestampedValue("a", 5).has_timestamp(), TimestampedValue("a").has_timestamp()
    (True, False)
    """

    value: T
    timestamp: int = NO_TIMESTAMP

    def get_value(self) -> T:
        """Return the element."""
        return self.value

    def get_timestamp(self) -> int:
        """Return the element's timestamp."""
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Return whether the element has a timestamp."""
        return self.timestamp != NO_TIMESTAMP


class Evictor(ABC, Generic[T, W]):
    """Removes elements from a window before or after the window function runs.

    An evictor changes the list `elements` in place: an element removed from the list is removed from the window.

    >>> class WithoutNegatives(Evictor):
    ...     def evict_before(self, elements, size, window, evictor_context):
    ...         elements[:] = [each for each in elements if each.value >= 0]
    ...     def evict_after(self, elements, size, window, evictor_context):
    ...         pass
    >>> elements = [TimestampedValue(-1), TimestampedValue(2)]
    >>> WithoutNegatives().evict_before(elements, 2, None, None)
    >>> elements[0].value
    2
    """

    class EvictorContext(ABC):
        """The clocks and metrics of an evictor."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the group in which the evictor may register metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark, in milliseconds."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements before the window function runs."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements after the window function ran."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _OneTimeEvictor(Evictor[Any, Any]):
    """Evicts either before or after the window function runs."""

    def __init__(self, do_evict_after: bool) -> None:
        self._do_evict_after = do_evict_after

    def evict_before(
        self, elements: list[TimestampedValue[Any]], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Evict, unless `do_evict_after` is set."""
        if not self._do_evict_after:
            self._evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue[Any]], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Evict if `do_evict_after` is set."""
        if self._do_evict_after:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove elements from the list."""


class CountEvictor(_OneTimeEvictor):
    """Keeps the last n elements.

    >>> elements = [TimestampedValue(n) for n in range(4)]
    >>> CountEvictor.of(2).evict_before(elements, 4, None, None)
    >>> [each.value for each in elements]
    [2, 3]
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Return an evictor that keeps `max_count` elements. By default it evicts before the window function."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Any]]) -> None:
        del elements[: max(0, len(elements) - self._max_count)]

    def __repr__(self) -> str:
        return f"CountEvictor({self._max_count})"


class TimeEvictor(_OneTimeEvictor):
    """Keeps the elements whose timestamps are less than `window_size` before the largest one.

    >>> elements = [TimestampedValue("old", 1), TimestampedValue("new", 9)]
    >>> TimeEvictor.of(5).evict_before(elements, 2, None, None)
    >>> [each.value for each in elements]
    ['new']
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._window_size = window_size

    @staticmethod
    def of(window_size: Amount, do_evict_after: bool = False) -> TimeEvictor:
        """Return an evictor that keeps this time span. By default it evicts before the window function."""
        return TimeEvictor(as_millis(window_size), do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Any]]) -> None:
        if not elements or not elements[0].has_timestamp():
            return
        cutoff = max(each.timestamp for each in elements) - self._window_size
        elements[:] = [each for each in elements if each.timestamp > cutoff]

    def __repr__(self) -> str:
        return f"TimeEvictor({self._window_size})"


class DeltaEvictor(_OneTimeEvictor):
    """Removes the elements whose distance from the last one is `threshold` or more.

    >>> elements = [TimestampedValue(n) for n in (1, 8, 9)]
    >>> DeltaEvictor.of(5, lambda one, last: abs(one - last)).evict_before(elements, 3, None, None)
    >>> [each.value for each in elements]
    [8, 9]
    """

    def __init__(self, threshold: float, delta_function: DeltaFunction | Delta, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._threshold = threshold
        self._delta = delta_of("DeltaEvictor", delta_function)

    @staticmethod
    def of(threshold: float, delta_function: DeltaFunction | Delta, do_evict_after: bool = False) -> DeltaEvictor:
        """Return an evictor with this threshold and distance. By default it evicts before the window function."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Any]]) -> None:
        if elements:
            last = elements[-1].value
            elements[:] = [each for each in elements if self._delta(each.value, last) < self._threshold]

    def __repr__(self) -> str:
        return f"DeltaEvictor({self._threshold})"
