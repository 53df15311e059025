"""The metrics of jobs under the names and labels of Flink's PrometheusReporter, as prometheus_client writes them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric

from rekindle.monitor.job_view import JobView, SlotView, SubtaskView, VertexView
from rekindle.web.metric_values import (
    Value,
    job_metrics,
    operator_metrics,
    slot_metrics,
    task_metrics,
    user_metrics,
)
from rekindle.web.rest_settings import ReporterOptions

_NO_NAME = re.compile(r"[^a-zA-Z0-9:_]")
#: The content type of the format that Prometheus reads.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class MetricScope:
    """The metrics of one thing: a job, a slot, a subtask or an operator in a subtask."""

    prefix: str
    values: Mapping[str, Value]
    labels: Mapping[str, str]


@dataclass(frozen=True)
class JobMetrics:
    """The metrics of jobs as prometheus_client collects them."""

    views: Sequence[JobView]
    options: ReporterOptions

    def collect(self) -> Iterable[Metric]:
        """The families of all metrics; values that are texts are left out, Prometheus has none."""
        families: dict[str, Metric] = {}
        for scope in scopes(self.views):
            labels = _labels(scope.labels, self.options)
            for name, value in scope.values.items():
                if not isinstance(value, str):
                    full = _family(scope.prefix, name)
                    if full not in families:
                        families[full] = Metric(full, f"{name} (scope: {scope.prefix.removeprefix('flink_')})", "gauge")
                    families[full].add_sample(full, labels, value)
        return families.values()


def prometheus_text(views: Sequence[JobView], options: ReporterOptions | None = None) -> str:
    """All metrics of jobs that are not over."""
    return generate_latest(JobMetrics(views, options or ReporterOptions())).decode()


@lru_cache(maxsize=4096)
def _family(prefix: str, name: str) -> str:
    return _filtered(f"{prefix}_{name}")


def _labels(labels: Mapping[str, str], options: ReporterOptions) -> dict[str, str]:
    kept = {name: value for name, value in labels.items() if name not in options.excluded}
    return {name: _filtered(value) for name, value in kept.items()} if options.filter_label_values else kept


@lru_cache(maxsize=4096)
def _filtered(value: str) -> str:
    return _NO_NAME.sub("_", value)


def scopes(views: Sequence[JobView]) -> Iterator[MetricScope]:
    """Everything that has metrics, of jobs that are not over."""
    host = socket.gethostname()
    running = [view for view in views if not view.ended and view.status != "SUSPENDED"]
    yield _cluster(running, host)
    for view in running:
        job = {"job_id": view.job_id, "job_name": view.name}
        yield MetricScope("flink_jobmanager_job", job_metrics(view), {"host": host, **job})
        yield MetricScope("rekindle_job", _own_metrics(view), {"host": host, **job})
        for slot in view.slots:
            yield MetricScope("flink_taskmanager", slot_metrics(slot), _slot_labels(slot))
        yield from _tasks(view, job)


def _cluster(views: Sequence[JobView], host: str) -> MetricScope:
    slots = sum(len(view.slots) for view in views)
    values: dict[str, Value] = {
        "numRunningJobs": len(views),
        "numRegisteredTaskManagers": slots,
        "taskSlotsTotal": slots,
        "taskSlotsAvailable": 0,
    }
    return MetricScope("flink_jobmanager", values, {"host": host})


def _own_metrics(view: JobView) -> dict[str, Value]:
    """Metrics of ours that Flink does not have."""
    good_ms = view.last_good_checkpoint_ms()
    values: dict[str, Value] = {"records_in": view.records_in, "records_out": view.records_out}
    if good_ms is not None:
        values["last_good_checkpoint_age_ms"] = view.now_ms - good_ms
    if view.epochs:
        values |= {"epoch": view.epochs[-1].epoch, "epoch_duration_ms": view.epochs[-1].duration_ms}
    return values


def _tasks(view: JobView, job: dict[str, str]) -> Iterator[MetricScope]:
    own = user_metrics(view)
    slots = {slot.index: _slot_labels(slot) for slot in view.slots}
    for vertex in view.vertices:
        names = {operator.uid: operator.name for operator in vertex.operators}
        for subtask in vertex.subtasks:
            labels = job | _task_labels(view, vertex, subtask) | slots.get(subtask.slot, {"host": "", "tm_id": ""})
            yield MetricScope("flink_taskmanager_job_task", task_metrics(view, vertex, subtask), labels)
            for operator in subtask.operators:
                values = operator_metrics(subtask, operator) | own.get((operator.uid, subtask.index), {})
                of_operator = {"operator_id": operator.uid, "operator_name": names[operator.uid]}
                yield MetricScope("flink_taskmanager_job_task_operator", values, labels | of_operator)


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
