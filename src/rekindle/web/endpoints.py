"""The table of endpoints: method, path, the function that answers, and a sentence. The routes and the OpenAPI document
are made of this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rekindle.checkpoint.checkpoint_listing import list_checkpoints
from rekindle.errors import CheckpointError
from rekindle.web import (
    actions,
    cluster_answers,
    failure_answers,
    job_answers,
    live_answers,
    probe_answers,
    slot_answers,
)
from rekindle.web import checkpoint_answers as checkpoints
from rekindle.web import vertex_answers as vertices
from rekindle.web.asked import (
    Asked,
    Body,
    CheckpointTriggerRequestBody,
    SavepointTriggerRequestBody,
    StopWithSavepointRequestBody,
)
from rekindle.web.flink_values import Json
from rekindle.web.metric_answers import aggregated, metrics, subtask_values, vertex_values
from rekindle.web.metric_values import Values, job_metrics, slot_metrics
from rekindle.web.request_errors import RequestError

Handler = Callable[[Asked], Any]
#: The most lines of a slot that are shown.
_LOG_LINES = 1000


@dataclass(frozen=True)
class PlainText:
    """An answer that is no JSON."""

    text: str
    content_type: str = "text/plain; charset=UTF-8"


@dataclass(frozen=True)
class Endpoint:
    """One thing that can be asked."""

    method: str
    path: str
    handler: Handler
    summary: str
    #: Parameters after the question mark.
    query: tuple[str, ...] = ()
    body: type[Body] | None = None
    status: int = 200
    #: Whether it may wait, for a disk or for a job: then it has a thread of its own.
    waits: bool = False


def _job(answer: Callable[..., Json]) -> Handler:
    return lambda asked: answer(asked.job())


def _all_jobs(answer: Callable[..., Json]) -> Handler:
    return lambda asked: answer(asked.jobs.views())


def _vertex(answer: Callable[..., Any]) -> Handler:
    return lambda asked: answer(*asked.vertex())


def _config(asked: Asked) -> Json:
    options = asked.options
    return cluster_answers.config(options.refresh_ms, may_cancel=options.may_cancel, is_history=asked.jobs.is_history)


def _ready(asked: Asked) -> Json:
    jobs = [(job.recorder.view(), job.max_checkpoint_age_ms) for job in asked.jobs.all_running()]
    return probe_answers.ready(jobs, is_history=asked.jobs.is_history)


def _exceptions(asked: Asked) -> Json:
    most = asked.positive("maxExceptions", failure_answers.DEFAULT_EXCEPTIONS)
    return failure_answers.exceptions(asked.job(), most)


def _checkpoint_subtasks(asked: Asked) -> Json:
    checkpoint, vertex_id = asked.checkpoint(), asked.hex_id("vertexid")
    task = checkpoint.task(vertex_id)
    if task is None:
        raise RequestError(404, f"There is no checkpoint statistics for task {vertex_id}.")
    return checkpoints.checkpoint_subtasks(checkpoint, task)


def _checkpoint_operators(asked: Asked) -> Json:
    answer = live_answers.checkpoint_operators(asked.job(), asked.checkpoint().id)
    assert answer is not None, "the checkpoint was found a moment before"
    return answer


def _jobs_metrics(asked: Asked) -> list[Json]:
    wanted_jobs = asked.query.get("jobs")
    chosen = None if wanted_jobs is None else set(wanted_jobs.lower().split(","))
    sources = [job_metrics(view) for view in asked.jobs.views() if chosen is None or view.job_id in chosen]
    return aggregated(sources, asked.wanted(), asked.aggregations())


def _job_metrics(asked: Asked) -> list[Json]:
    return metrics(job_metrics(asked.job()), asked.wanted())


def _vertex_metrics(asked: Asked) -> list[Json]:
    return metrics(vertex_values(*asked.vertex()), asked.wanted())


def _subtasks_metrics(asked: Asked) -> list[Json]:
    view, vertex = asked.vertex()
    values = subtask_values(view, vertex)
    chosen = [values[index] for index in asked.indexes("subtasks", len(values))]
    return aggregated(chosen, asked.wanted(), asked.aggregations())


def _subtask_metrics(asked: Asked) -> list[Json]:
    view, vertex, subtask = asked.subtask()
    return metrics(subtask_values(view, vertex)[subtask.index], asked.wanted())


def _subtask(asked: Asked) -> Json:
    view, _, subtask = asked.subtask()
    return vertices.subtask_details(view, subtask)


def _flamegraph(asked: Asked) -> Json:
    """As Flink answers when flame graphs are off."""
    asked.vertex()
    return {"endTimestamp": -2}


def _no_operator_metrics(asked: Asked) -> list[Json]:
    """Coordinators of sources have no metrics of their own."""
    asked.vertex()
    return []


def _slot(asked: Asked) -> Json:
    return slot_answers.task_manager(asked.jobs.views(), *asked.slot())


def _slot_metrics(asked: Asked) -> list[Json]:
    return metrics(slot_metrics(asked.slot()[1]), asked.wanted())


def _slots_metrics(asked: Asked) -> list[Json]:
    sources = [slot_metrics(slot) for _, slot in slot_answers.slots(asked.jobs.views())]
    return aggregated(sources, asked.wanted(), asked.aggregations())


def _log_list(asked: Asked) -> Json:
    return slot_answers.log_list(asked.slot(log_lines=_LOG_LINES)[1])


def _log_file(asked: Asked) -> PlainText:
    name = asked.path["filename"]
    if name not in (slot_answers.LOG, slot_answers.STDOUT):
        raise RequestError(404, f"The file {name} does not exist on the TaskExecutor.")
    return PlainText(slot_answers.log_text(asked.slot(log_lines=_LOG_LINES)[1], name))


def _log(asked: Asked) -> PlainText:
    return PlainText(slot_answers.log_text(asked.slot(log_lines=_LOG_LINES)[1], slot_answers.LOG))


def _stdout(asked: Asked) -> PlainText:
    return PlainText(slot_answers.log_text(asked.slot(log_lines=_LOG_LINES)[1], slot_answers.STDOUT))


def _driver_metrics(asked: Asked) -> list[Json]:
    views = [view for view in asked.jobs.views() if not view.ended]
    slots = sum(len(view.slots) for view in views)
    values: Values = {
        "numRunningJobs": len(views),
        "numRegisteredTaskManagers": slots,
        "taskSlotsTotal": slots,
        "taskSlotsAvailable": 0,
    }
    return metrics(values, asked.wanted())


def _jars(asked: Asked) -> Json:
    return {"address": asked.options.address, "files": []}


def _live(asked: Asked) -> Json:
    return live_answers.live(asked.job(), asked.positive("most", 300))


def _catalogue(asked: Asked) -> Json:
    view = asked.job()
    directory, running = view.checkpoint_config.directory, asked.jobs.running(view.job_id)
    if directory is None:
        return live_answers.catalogue("", [])
    try:
        entries = list_checkpoints(directory, running.store_options if running is not None else None)
    except CheckpointError as error:
        raise RequestError(503, f"The checkpoints of the job cannot be listed: {error}") from None
    return live_answers.catalogue(directory, (each for each in entries if each.job_name in (view.name, "")))


_PROBES = (
    Endpoint("GET", "/health", lambda asked: probe_answers.health(), "Whether the driver lives; without a token."),
    Endpoint("GET", "/ready", _ready, "Whether all jobs run and have young checkpoints; without a token."),
)

_CLUSTER = (
    Endpoint("GET", "/overview", _all_jobs(cluster_answers.overview), "Jobs and slots in numbers."),
    Endpoint("GET", "/config", _config, "The settings of pages."),
    Endpoint("GET", "/jars", _jars, "Programs that were uploaded: none, a driver runs its own."),
    Endpoint("GET", "/jobmanager/metrics", _driver_metrics, "Metrics of the driver.", ("get",)),
    Endpoint("GET", "/taskmanagers", _all_jobs(slot_answers.task_managers), "The slots of running jobs."),
    Endpoint("GET", "/taskmanagers/metrics", _slots_metrics, "Metrics of slots, aggregated.", ("get", "agg")),
    Endpoint("GET", "/taskmanagers/{taskmanagerid}", _slot, "One slot."),
    Endpoint("GET", "/taskmanagers/{taskmanagerid}/metrics", _slot_metrics, "Metrics of a slot.", ("get",)),
    Endpoint("GET", "/taskmanagers/{taskmanagerid}/logs", _log_list, "What a slot has written, as files."),
    Endpoint("GET", "/taskmanagers/{taskmanagerid}/logs/{filename}", _log_file, "The last lines of one of them."),
    Endpoint("GET", "/taskmanagers/{taskmanagerid}/log", _log, "The last lines that a slot has logged."),
    Endpoint("GET", "/taskmanagers/{taskmanagerid}/stdout", _stdout, "The last lines that a slot has printed."),
    Endpoint("GET", "/applications/overview", _all_jobs(job_answers.applications), "Applications: one per job."),
    Endpoint(
        "GET",
        "/applications/{applicationid}",
        lambda asked: job_answers.application(asked.job(name="applicationid")),
        "One application.",
    ),
    Endpoint(
        "GET",
        "/applications/{applicationid}/exceptions",
        lambda asked: asked.job(name="applicationid") and job_answers.application_exceptions(),
        "Failures of an application outside its job.",
    ),
)

_JOBS = (
    Endpoint("GET", "/jobs", _all_jobs(job_answers.jobs), "The jobs and their states."),
    Endpoint("GET", "/jobs/overview", _all_jobs(job_answers.jobs_overview), "The jobs in short."),
    Endpoint("GET", "/jobs/metrics", _jobs_metrics, "Metrics of jobs, aggregated.", ("get", "agg", "jobs")),
    Endpoint("GET", "/jobs/{jobid}", _job(job_answers.job_details), "One job with its tasks and plan."),
    Endpoint("PATCH", "/jobs/{jobid}", actions.cancel, "Cancel a job.", ("mode",), status=202, waits=True),
    Endpoint("GET", "/jobs/{jobid}/plan", _job(job_answers.job_plan), "The plan of a job."),
    Endpoint("GET", "/jobs/{jobid}/config", _job(job_answers.job_config), "The settings of a job."),
    Endpoint("GET", "/jobs/{jobid}/status", _job(job_answers.job_status), "The state of a job."),
    Endpoint("GET", "/jobs/{jobid}/accumulators", _job(job_answers.job_accumulators), "Accumulators of a job."),
    Endpoint("GET", "/jobs/{jobid}/execution-result", _job(job_answers.execution_result), "How a job ended."),
    Endpoint("GET", "/jobs/{jobid}/exceptions", _exceptions, "Failures of a job.", ("maxExceptions",)),
    Endpoint("GET", "/jobs/{jobid}/metrics", _job_metrics, "Metrics of a job.", ("get",)),
)

_CHECKPOINTS = (
    Endpoint("GET", "/jobs/{jobid}/checkpoints", _job(checkpoints.checkpoints), "Statistics of checkpoints."),
    Endpoint("GET", "/jobs/{jobid}/checkpoints/config", _job(checkpoints.checkpoint_config), "Their settings."),
    Endpoint(
        "GET",
        "/jobs/{jobid}/checkpoints/details/{checkpointid}",
        lambda asked: checkpoints.checkpoint_details(asked.checkpoint()),
        "One checkpoint.",
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/checkpoints/details/{checkpointid}/subtasks/{vertexid}",
        _checkpoint_subtasks,
        "A task's part of a checkpoint, by subtask.",
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/checkpoints/details/{checkpointid}/operators",
        _checkpoint_operators,
        "Each operator's part of a checkpoint.",
    ),
    Endpoint(
        "POST",
        "/jobs/{jobid}/checkpoints",
        actions.trigger_checkpoint,
        "Make a checkpoint.",
        body=CheckpointTriggerRequestBody,
        status=202,
        waits=True,
    ),
    Endpoint("GET", "/jobs/{jobid}/checkpoints/{triggerid}", actions.checkpoint_status, "What became of that request."),
    Endpoint(
        "POST",
        "/jobs/{jobid}/savepoints",
        actions.trigger_savepoint,
        "Make a savepoint.",
        body=SavepointTriggerRequestBody,
        status=202,
        waits=True,
    ),
    Endpoint("GET", "/jobs/{jobid}/savepoints/{triggerid}", actions.savepoint_status, "What became of that request."),
    Endpoint(
        "POST",
        "/jobs/{jobid}/stop",
        actions.stop,
        "Stop a job with a savepoint.",
        body=StopWithSavepointRequestBody,
        status=202,
        waits=True,
    ),
)

_V = "/jobs/{jobid}/vertices/{vertexid}"
_VERTICES = (
    Endpoint("GET", _V, _vertex(vertices.vertex_details), "A task with its subtasks."),
    Endpoint(
        "GET",
        f"{_V}/accumulators",
        lambda asked: vertices.vertex_accumulators(asked.vertex()[1]),
        "Accumulators of a task.",
    ),
    Endpoint("GET", f"{_V}/backpressure", _vertex(vertices.back_pressure), "How long a task waits for those after it."),
    Endpoint("GET", f"{_V}/flamegraph", _flamegraph, "Flame graphs are not made."),
    Endpoint("GET", f"{_V}/jm-operator-metrics", _no_operator_metrics, "Metrics of coordinators: none."),
    Endpoint("GET", f"{_V}/metrics", _vertex_metrics, "Metrics of a task, by subtask.", ("get",)),
    Endpoint("GET", f"{_V}/subtasktimes", _vertex(vertices.subtask_times), "When subtasks entered their states."),
    Endpoint(
        "GET",
        f"{_V}/subtasks/accumulators",
        _vertex(vertices.subtask_accumulators),
        "Accumulators of subtasks.",
    ),
    Endpoint(
        "GET",
        f"{_V}/subtasks/metrics",
        _subtasks_metrics,
        "Metrics of subtasks, aggregated.",
        ("get", "agg", "subtasks"),
    ),
    Endpoint("GET", f"{_V}/subtasks/{{subtaskindex}}", _subtask, "One subtask."),
    Endpoint("GET", f"{_V}/subtasks/{{subtaskindex}}/metrics", _subtask_metrics, "Metrics of a subtask.", ("get",)),
    Endpoint("GET", f"{_V}/taskmanagers", _vertex(vertices.vertex_slots), "A task by slot."),
    Endpoint(
        "GET", f"{_V}/watermarks", lambda asked: vertices.watermarks(asked.vertex()[1]), "Watermarks of subtasks."
    ),
)

_OWN = (
    Endpoint("GET", "/jobs/{jobid}/live", _live, "A whole job in one document, for pages.", ("most",)),
    Endpoint("GET", "/jobs/{jobid}/failures", _job(failure_answers.failures), "Failures with their record."),
    Endpoint("GET", "/jobs/{jobid}/catalogue", _catalogue, "The job's checkpoints and savepoints on disk.", waits=True),
)

#: Everything that can be asked; a path with a fixed word stands before one that takes any.
ENDPOINTS: tuple[Endpoint, ...] = (*_PROBES, *_CLUSTER, *_JOBS, *_CHECKPOINTS, *_VERTICES, *_OWN)
