"""Metrics of user functions: counters, gauges, meters and distributions. A slot sends their values to the driver."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any, Final, Protocol

from rekindle.clock import Clock
from rekindle.graph.nodes import OperatorNode
from rekindle.metrics import Counter, Distribution, Meter, MetricGroup, MetricKind, MetricReading
from rekindle.metrics.reading import MetricValue
from rekindle.runtime.log_capture import sendable

#: How often the driver hears of metrics, at most.
_REPORT_EVERY_S: Final = 1.0


class TaskCounter(Counter):
    """A counter, which can also count down."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count


class TaskMeter(Meter):
    """A meter: counts events and their rate over a time span."""

    def __init__(self, clock: Clock, span_s: int) -> None:
        self._clock = clock
        self._span_s = span_s
        self._count = 0
        self._seconds: deque[tuple[int, int]] = deque(maxlen=span_s)  # (second, events), one entry per second at most

    def mark_event(self, value: int = 1) -> None:
        self._count += value
        second = int(self._clock.monotonic())
        if self._seconds and self._seconds[-1][0] == second:
            value += self._seconds.pop()[1]
        self._seconds.append((second, value))

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """Return the events per second over the span."""
        since = int(self._clock.monotonic()) - self._span_s
        return sum(events for second, events in self._seconds if second > since) / self._span_s


class TaskDistribution(Distribution):
    """A distribution: count, sum, minimum and maximum of its values."""

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
        """Return count, sum, minimum, maximum and mean."""
        mean = self.sum / self.count if self.count else None
        return {"count": self.count, "sum": self.sum, "min": self.min, "max": self.max, "mean": mean}


def _gauge_value(gauge: Callable[[], Any]) -> MetricValue:
    """Return the value of a user's gauge; an error becomes the value, since a gauge must not fail the job."""
    try:
        value = gauge()
        return value if value is None or isinstance(value, bool) else _sendable_number(value)
    except Exception as error:
        return sendable(f"{type(error).__name__}: {error}")


def _sendable_number(value: Any) -> int | float | str:
    """Return a number as it can be sent: users also count with NumPy's numbers and with numbers beyond 64 bits."""
    try:
        whole = index(value)
        return whole if -(2**63) <= whole < 2**64 else float(whole)
    except (TypeError, OverflowError):
        pass
    try:
        return float(value) if not isinstance(value, str) else sendable(value)
    except (TypeError, ValueError, OverflowError):
        return sendable(str(value))


def _sendable_numbers(values: dict[str, Any]) -> dict[str, int | float | str | None]:
    return {name: None if value is None else _sendable_number(value) for name, value in values.items()}


class TaskMetricGroup(MetricGroup):
    """Metrics by name below a scope, which is the names of the groups above. The same name returns the same metric."""

    def __init__(self, clock: Clock, scope: tuple[str, ...] = ()) -> None:
        self._clock = clock
        self._scope = scope
        self._groups: dict[str, TaskMetricGroup] = {}
        self._counters: dict[str, TaskCounter] = {}
        self._meters: dict[str, TaskMeter] = {}
        self._gauges: dict[str, Callable[[], int]] = {}
        self._distributions: dict[str, TaskDistribution] = {}

    def collect(self) -> Iterator[tuple[str, MetricKind, MetricValue]]:
        """Yield (name with scope, kind, value) of every metric."""
        prefix = "".join(f"{each}." for each in self._scope)
        for name, counter in self._counters.items():
            yield sendable(prefix + name), MetricKind.COUNTER, _sendable_number(counter.get_count())
        for name, meter in self._meters.items():
            values = {"count": meter.get_count(), "rate": meter.get_rate()}
            yield sendable(prefix + name), MetricKind.METER, _sendable_numbers(values)
        for name, gauge in self._gauges.items():
            yield sendable(prefix + name), MetricKind.GAUGE, _gauge_value(gauge)
        for name, distribution in self._distributions.items():
            yield sendable(prefix + name), MetricKind.DISTRIBUTION, _sendable_numbers(distribution.statistics())
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


class MeteredOperator(Protocol):
    """An operator's node, subtask and clock, and the metrics of its functions."""

    @property
    def node(self) -> OperatorNode: ...
    @property
    def subtask(self) -> int: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def metrics(self) -> TaskMetricGroup: ...


class TaskMetrics:
    """Reads the metrics of a task's operators. Gauges are user code, so read them on the task's thread."""

    def __init__(self, operators: Sequence[MeteredOperator]) -> None:
        self._operators = operators
        self._due = 0.0

    def read(self) -> list[MetricReading]:
        """Return the current value of every metric."""
        return [
            MetricReading(operator.node.name, operator.node.uid, operator.subtask, *metric)
            for operator in self._operators
            for metric in operator.metrics.collect()
        ]

    def read_if_due(self, *, last: bool) -> list[MetricReading]:
        """Return the current values, or nothing if the last ones are young; the `last` values are always due."""
        now = self._operators[0].clock.monotonic()
        if now < self._due and not last:
            return []
        self._due = now + _REPORT_EVERY_S
        return self.read()
