"""Flink's answers about metrics: without `get` their names, with it their values, or aggregated over subtasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rekindle.monitor.job_view import JobView, VertexView
from rekindle.web.flink_values import Json, number
from rekindle.web.metric_values import Value, Values, operator_metrics, task_metrics, user_metrics

#: The aggregations that a request can ask for.
AGGREGATIONS = ("min", "max", "avg", "sum", "skew")
_REPLACED = str.maketrans({" ": "_", ".": "_", ":": "_", ",": "_"})


def metrics(values: Mapping[str, Value], wanted: Sequence[str] | None) -> list[Json]:
    """The names of metrics, or the values of those that are wanted and known."""
    if wanted is None:
        return [{"id": name} for name in values]
    return [{"id": name, "value": _text(values[name])} for name in wanted if name in values]


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(number(value)) if isinstance(value, float) else str(value)


def aggregated(
    sources: Sequence[Mapping[str, Value]], wanted: Sequence[str] | None, aggregations: Sequence[str] = AGGREGATIONS
) -> list[Json]:
    """The names of metrics over several sources, or the aggregated values of those that are wanted and are numbers."""
    if wanted is None:
        return [{"id": name} for name in dict.fromkeys(name for source in sources for name in source)]
    return [each for name in wanted if (each := _aggregate(name, sources, aggregations)) is not None]


def _aggregate(name: str, sources: Sequence[Mapping[str, Value]], aggregations: Sequence[str]) -> Json | None:
    values = [as_number for source in sources if (as_number := _as_number(source.get(name))) is not None]
    if not values:
        return None
    average = sum(values) / len(values)
    figures = {
        "min": min(values),
        "max": max(values),
        "avg": average,
        "sum": sum(values),
        "skew": _skew(values, average),
    }
    return {"id": name, **{each: number(figures[each]) for each in aggregations}}


def _as_number(value: Value | None) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _skew(values: Sequence[float], average: float) -> float:
    """How far the values are from their average, in percent of it: at most 100, as in Flink.

    >>> _skew([10.0, 10.0], 10.0), _skew([0.0, 20.0], 10.0)
    (0.0, 100.0)
    """
    if average == 0 or not math.isfinite(average):
        return 0.0
    distance = sum(abs(value - average) for value in values) / len(values)
    return min(100.0, distance / average * 100)


def subtask_values(view: JobView, vertex: VertexView) -> list[Values]:
    """The metrics of each subtask of a task, those of its operators after the operators' names."""
    own = user_metrics(view)
    names = {operator.uid: operator.name.translate(_REPLACED) for operator in vertex.operators}
    found: list[Values] = []
    for subtask in vertex.subtasks:
        values = task_metrics(view, vertex, subtask)
        for operator in subtask.operators:
            each = operator_metrics(subtask, operator) | own.get((operator.uid, subtask.index), {})
            values |= {f"{names[operator.uid]}.{name}": value for name, value in each.items()}
        found.append(values)
    return found


def vertex_values(view: JobView, vertex: VertexView) -> Values:
    """The metrics of a task: those of each subtask after its index."""
    return {
        f"{index}.{name}": value
        for index, values in enumerate(subtask_values(view, vertex))
        for name, value in values.items()
    }
