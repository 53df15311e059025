"""The metric API that user code sees; the slot's runtime implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class MetricGroup(ABC):
    """A named container for metrics and further groups; its place in the hierarchy is its identity."""

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Adds a sub-group `name`; with `extra` a key group `name` and in it a value group `extra`."""

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """Registers a counter."""

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Registers a function that returns the current value when it is called."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Registers a meter: events per second over the last `time_span_in_seconds`."""

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """Registers a distribution: sum, count, minimum, maximum and mean of its values."""


class Metric(ABC):
    """Base of every metric."""


class Counter(Metric):
    """A count that goes up and down."""

    @abstractmethod
    def inc(self, n: int = 1) -> None:
        """Adds `n`."""

    @abstractmethod
    def dec(self, n: int = 1) -> None:
        """Subtracts `n`."""

    @abstractmethod
    def get_count(self) -> int:
        """The current count."""


class Meter(Metric):
    """Measures throughput."""

    @abstractmethod
    def mark_event(self, value: int = 1) -> None:
        """Records that `value` events happened now."""

    @abstractmethod
    def get_count(self) -> int:
        """The number of events so far."""


class Distribution(Metric):
    """Statistics of the values passed to `update`."""

    @abstractmethod
    def update(self, value: int) -> None:
        """Records one value."""
