"""Values as Flink's answers spell them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rekindle.common.checkpoint_statistics import Summary, percentile
from rekindle.monitor.job_view import TASK_STATES

#: A part of an answer.
Json = dict[str, Any]

_PERCENTILES = (("p25", 25.0), ("median", 50.0), ("p75", 75.0), ("p95", 95.0))
_PRECEDENCE = ("FAILED", "CANCELING", "CANCELED", "INITIALIZING", "DEPLOYING", "SCHEDULED", "RUNNING")


def number(value: float) -> float | str:
    """A number; JSON has no NaN.

    >>> number(2.5), number(math.nan), number(math.inf)
    (2.5, 'NaN', 'Infinity')
    """
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def summary(values: Summary) -> Json:
    """Minimum, maximum, average and percentiles of checkpoints."""
    percentiles = {name: number(getattr(values, name)) for name in ("p50", "p90", "p95", "p99", "p999")}
    return {"min": values.min, "max": values.max, "avg": values.avg, **percentiles}


def statistics(values: Sequence[float]) -> Json:
    """Minimum, maximum, average, sum and percentiles over subtasks.

    >>> statistics([2, 6])
    {'min': 2, 'max': 6, 'avg': 4, 'sum': 8, 'p25': 2, 'median': 4, 'p75': 6, 'p95': 6}
    """
    ordered = sorted(int(value) for value in values)
    if not ordered:
        return dict.fromkeys(("min", "max", "avg", "sum", *(name for name, _ in _PERCENTILES)), 0)
    figures = {"min": ordered[0], "max": ordered[-1], "avg": sum(ordered) // len(ordered), "sum": sum(ordered)}
    return figures | {name: int(percentile(ordered, percent)) for name, percent in _PERCENTILES}


def state_counts(states: Iterable[str]) -> dict[str, int]:
    """The number of tasks in each state, states without tasks included."""
    counts = dict.fromkeys(TASK_STATES, 0)
    for state in states:
        counts[state] += 1
    return counts


def aggregate_state(states: Sequence[str]) -> str:
    """The state of a task from those of its subtasks.

    >>> aggregate_state(["FINISHED", "RUNNING"]), aggregate_state(["CANCELED", "FAILED"]), aggregate_state(["FINISHED"])
    ('RUNNING', 'FAILED', 'FINISHED')
    """
    present = set(states)
    if present == {"FINISHED"}:
        return "FINISHED"
    if "FINISHED" in present and not present & {"FAILED", "CANCELING", "CANCELED"}:
        return "RUNNING"
    return next((state for state in _PRECEDENCE if state in present), "CREATED")
