"""The metrics of jobs as Flink's PrometheusReporter writes them: the same names and labels."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rekindle.monitor.job_view import JobView, SlotView, SubtaskView, VertexView
from rekindle.web.metric_values import (
    Value,
    job_metrics,
    operator_metrics,
    slot_metrics,
    task_metrics,
    user_metrics,
)

_NO_NAME = re.compile(r"[^a-zA-Z0-9:_]")
#: The content type of the format that Prometheus reads.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class ReporterOptions:
    """The settings of a reporter."""

    #: Replace what is neither letter, digit, colon nor underscore in the values of labels, as Flink does by default.
    filter_label_values: bool = True
    #: Labels that are left out.
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sample:
    """One value of a metric."""

    scope: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    value: float = 0.0


def prometheus_text(views: Sequence[JobView], options: ReporterOptions | None = None) -> str:
    """All metrics of jobs that are not over."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.exposition import generate_latest
    from prometheus_client.registry import Collector, CollectorRegistry

    families: dict[str, GaugeMetricFamily] = {}
    for sample in samples(views):
        name = _NO_NAME.sub("_", f"{sample.scope}_{sample.name}")
        labels = _labels(sample.labels, options or ReporterOptions())
        family = families.get(name)
        if family is None:
            text = f"{sample.name} (scope: {sample.scope.removeprefix('flink_')})"
            family = families[name] = GaugeMetricFamily(name, text, labels=list(labels))
        family.add_metric(list(labels.values()), sample.value)

    class Everything(Collector):
        def collect(self) -> Iterable[GaugeMetricFamily]:
            return families.values()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Everything())
    return generate_latest(registry).decode("utf-8")


def _labels(labels: Mapping[str, str], options: ReporterOptions) -> dict[str, str]:
    kept = {name: value for name, value in labels.items() if name not in options.excluded}
    return {name: _NO_NAME.sub("_", value) if options.filter_label_values else value for name, value in kept.items()}


def samples(views: Sequence[JobView]) -> Iterator[Sample]:
    """Every value that is a number, of jobs that are not over."""
    host = socket.gethostname()
    running = [view for view in views if not view.ended and view.status != "SUSPENDED"]
    yield from _cluster(running, host)
    for view in running:
        job = {"job_id": view.job_id, "job_name": view.name}
        yield from _numbers("flink_jobmanager_job", job_metrics(view), {"host": host, **job})
        yield from _own(view, {"host": host, **job})
        for slot in view.slots:
            yield from _numbers("flink_taskmanager", slot_metrics(slot), _slot_labels(slot))
        yield from _tasks(view, job)


def _cluster(views: Sequence[JobView], host: str) -> Iterator[Sample]:
    slots = sum(len(view.slots) for view in views)
    values: dict[str, Value] = {
        "numRunningJobs": len(views),
        "numRegisteredTaskManagers": slots,
        "taskSlotsTotal": slots,
        "taskSlotsAvailable": 0,
    }
    return _numbers("flink_jobmanager", values, {"host": host})


def _own(view: JobView, labels: Mapping[str, str]) -> Iterator[Sample]:
    """What Flink has no metric for."""
    good_ms = view.last_good_checkpoint_ms()
    values: dict[str, Value] = {"records_in": view.records_in, "records_out": view.records_out}
    if good_ms is not None:
        values["last_good_checkpoint_age_ms"] = view.now_ms - good_ms
    if view.epochs:
        values |= {"epoch": view.epochs[-1].epoch, "epoch_duration_ms": view.epochs[-1].duration_ms}
    return _numbers("rekindle_job", values, labels)


def _tasks(view: JobView, job: dict[str, str]) -> Iterator[Sample]:
    own = user_metrics(view)
    slots = {slot.index: _slot_labels(slot) for slot in view.slots}
    for vertex in view.vertices:
        names = {operator.uid: operator.name for operator in vertex.operators}
        for subtask in vertex.subtasks:
            labels = _task_labels(view, vertex, subtask) | job | slots.get(subtask.slot, {"host": "", "tm_id": ""})
            yield from _numbers("flink_taskmanager_job_task", task_metrics(view, vertex, subtask), labels)
            for operator in subtask.operators:
                values = operator_metrics(subtask, operator) | own.get((operator.uid, subtask.index), {})
                of_operator = {"operator_id": operator.uid, "operator_name": names[operator.uid]}
                yield from _numbers("flink_taskmanager_job_task_operator", values, labels | of_operator)


def _slot_labels(slot: SlotView) -> dict[str, str]:
    return {"host": slot.host, "tm_id": slot.id}


def _task_labels(view: JobView, vertex: VertexView, subtask: SubtaskView) -> dict[str, str]:
    return {
        "task_id": vertex.id,
        "task_name": vertex.name,
        "task_attempt_id": f"{view.job_id}_{vertex.id}_{subtask.index}_{view.attempt}",
        "task_attempt_num": str(view.restarts),
        "subtask_index": str(subtask.index),
    }


def _numbers(scope: str, values: Mapping[str, Value], labels: Mapping[str, str]) -> Iterator[Sample]:
    """The values that are numbers: Prometheus has no others."""
    for name, value in values.items():
        if not isinstance(value, str):
            yield Sample(scope, name, labels, float(value))
