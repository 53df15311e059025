"""Metrics of user functions: counters, gauges, meters and distributions; the driver hears their last values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from operator import index
from typing import Any

from rekindle.clock import Clock
from rekindle.metrics import Counter, Distribution, Meter, MetricGroup, MetricKind
from rekindle.metrics.reading import MetricValue


class TaskCounter(Counter):
    """A number that goes up and down."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count


class TaskMeter(Meter):
    """Events, and their rate over a time span."""

    def __init__(self, clock: Clock, span_s: int) -> None:
        self._clock = clock
        self._span_s = span_s
        self._count = 0
        self._seconds: deque[tuple[int, int]] = deque(maxlen=span_s)  # (second, events): one entry a second at most

    def mark_event(self, value: int = 1) -> None:
        self._count += value
        second = int(self._clock.monotonic())
        if self._seconds and self._seconds[-1][0] == second:
            value += self._seconds.pop()[1]
        self._seconds.append((second, value))

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """Events per second over the span."""
        since = int(self._clock.monotonic()) - self._span_s
        return sum(events for second, events in self._seconds if second > since) / self._span_s


class TaskDistribution(Distribution):
    """Count, sum, minimum and maximum of the values seen."""

    def __init__(self) -> None:
        self.count = 0
        self.sum: float = 0
        self.min: float | None = None
        self.max: float | None = None

    def update(self, value: float) -> None:
        self.count += 1
        self.sum += value
        self.min = value if self.min is None else min(self.min, value)
        self.max = value if self.max is None else max(self.max, value)

    def statistics(self) -> dict[str, float | None]:
        """Count, sum, minimum, maximum and mean."""
        mean = self.sum / self.count if self.count else None
        return {"count": self.count, "sum": self.sum, "min": self.min, "max": self.max, "mean": mean}


def _asked(gauge: Callable[[], Any]) -> MetricValue:
    """What a gauge of the user's says; an error of it is no reason to fail anything."""
    try:
        value = gauge()
        return value if value is None or isinstance(value, bool) else _number(value)
    except Exception as error:
        return _text(f"{type(error).__name__}: {error}")


def _number(value: Any) -> int | float | str:
    """As it can be sent, whatever a function has counted with: NumPy's numbers, ones beyond 64 bits, none at all."""
    try:
        whole = index(value)
        return whole if -(2**63) <= whole < 2**64 else float(whole)
    except (TypeError, OverflowError):
        pass
    try:
        return float(value) if not isinstance(value, str) else _text(value)
    except (TypeError, ValueError, OverflowError):
        return _text(str(value))


def _text(value: str) -> str:
    """Without lone surrogates, which UTF-8 does not have."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _numbers(values: dict[str, Any]) -> dict[str, int | float | str | None]:
    return {name: None if value is None else _number(value) for name, value in values.items()}


class TaskMetricGroup(MetricGroup):
    """Metrics by name under a scope, the names of the groups above; asking twice gives the same metric."""

    def __init__(self, clock: Clock, scope: tuple[str, ...] = ()) -> None:
        self._clock = clock
        self._scope = scope
        self._groups: dict[str, TaskMetricGroup] = {}
        self._counters: dict[str, TaskCounter] = {}
        self._meters: dict[str, TaskMeter] = {}
        self._gauges: dict[str, Callable[[], int]] = {}
        self._distributions: dict[str, TaskDistribution] = {}

    def collect(self) -> Iterator[tuple[str, MetricKind, MetricValue]]:
        """(name below the scope, kind, value) of every metric."""
        prefix = "".join(f"{each}." for each in self._scope)
        for name, counter in self._counters.items():
            yield _text(prefix + name), MetricKind.COUNTER, _number(counter.get_count())
        for name, meter in self._meters.items():
            values = {"count": meter.get_count(), "rate": meter.get_rate()}
            yield _text(prefix + name), MetricKind.METER, _numbers(values)
        for name, gauge in self._gauges.items():
            yield _text(prefix + name), MetricKind.GAUGE, _asked(gauge)
        for name, distribution in self._distributions.items():
            yield _text(prefix + name), MetricKind.DISTRIBUTION, _numbers(distribution.statistics())
        for group in self._groups.values():
            yield from group.collect()

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        scope = (name,) if extra is None else (name, extra)
        label = ".".join(scope)
        if label not in self._groups:
            self._groups[label] = TaskMetricGroup(self._clock, (*self._scope, *scope))
        return self._groups[label]

    def counter(self, name: str) -> Counter:
        return self._counters.setdefault(name, TaskCounter())

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        self._gauges[name] = obj

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._meters.setdefault(name, TaskMeter(self._clock, time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        return self._distributions.setdefault(name, TaskDistribution())
