"""Flink's answers about jobs: lists, details, plan, settings, accumulators, results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from rekindle.monitor.job_view import EdgeView, JobView, VertexView
from rekindle.web.flink_values import Json, state_counts
from rekindle.web.java_throwable import failure_cause
from rekindle.web.vertex_answers import vertex_summary

#: Flink's states of a job, in which `timestamps` has a time or 0.
_JOB_STATES = (
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
)
_APPLICATION_STATES = ("CREATED", "RUNNING", "FAILING", "FAILED", "CANCELING", "CANCELED", "FINISHED")


def jobs(views: Sequence[JobView]) -> Json:
    """`/jobs`."""
    return {"jobs": [{"id": view.job_id, "status": view.status} for view in views]}


def jobs_overview(views: Sequence[JobView]) -> Json:
    """`/jobs/overview`."""
    return {"jobs": [job_summary(view) for view in views]}


def job_summary(view: JobView) -> Json:
    """A job in a list."""
    return {
        "jid": view.job_id,
        "name": view.name,
        "jobType": view.mode,
        "schedulerType": "Default",
        "start-time": view.started_ms,
        "end-time": view.ended_ms,
        "duration": view.now_ms - view.started_ms,
        "state": view.status,
        "last-modification": _last_modification(view),
        "tasks": _task_counts(view),
        "pending-operators": 0,
    }


def _last_modification(view: JobView) -> int:
    entered = [at for vertex in view.vertices for subtask in vertex.subtasks for at in subtask.entered_ms.values()]
    return max([*view.entered_ms.values(), *entered])


def _task_counts(view: JobView) -> dict[str, int]:
    states = [subtask.status for vertex in view.vertices for subtask in vertex.subtasks]
    return {"total": len(states)} | {state.lower(): count for state, count in state_counts(states).items()}


def job_details(view: JobView) -> Json:
    """`/jobs/:jobid`."""
    vertices = [vertex_summary(view, vertex) for vertex in view.vertices]
    return {
        "jid": view.job_id,
        "application-id": view.job_id,
        "name": view.name,
        "isStoppable": False,
        "state": view.status,
        "job-type": view.mode,
        "schedulerType": "Default",
        "start-time": view.started_ms,
        "end-time": view.ended_ms,
        "duration": view.now_ms - view.started_ms,
        "maxParallelism": -1,
        "now": view.taken_ms,
        "timestamps": {state: view.entered_ms.get(state, 0) for state in _JOB_STATES},
        "vertices": vertices,
        "status-counts": state_counts(vertex["status"] for vertex in vertices),
        "plan": plan(view),
        "pending-operators": 0,
    }


def job_plan(view: JobView) -> Json:
    """`/jobs/:jobid/plan`."""
    return {"plan": plan(view)}


def plan(view: JobView) -> Json:
    """The tasks and the exchanges between them, those after others first, as Flink lists them."""
    return {
        "jid": view.job_id,
        "name": view.name,
        "type": view.mode,
        "nodes": [_node(vertex, view.edges) for vertex in reversed(view.vertices)],
    }


def _node(vertex: VertexView, edges: Sequence[EdgeView]) -> Json:
    into = [edge for edge in edges if edge.target == vertex.id]
    node: Json = {
        "id": vertex.id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": _description(vertex),
        "optimizer_properties": {},
    }
    if into:
        node["inputs"] = [
            {"id": edge.source, "num": number, "exchange": "pipelined_bounded", "ship_strategy": edge.ship_strategy}
            for number, edge in enumerate(into)
        ]
    return node


def _description(vertex: VertexView) -> str:
    """The operators, each below the one before, as Flink's dashboard shows them: HTML, so the names are escaped."""
    lines = [
        f"{'   ' * (depth - 1)}{'+- ' if depth else ''}{escape(operator.description, quote=False)}<br/>"
        for depth, operator in enumerate(vertex.operators)
    ]
    return "".join(lines)


def job_config(view: JobView) -> Json:
    """`/jobs/:jobid/config`."""
    return {
        "jid": view.job_id,
        "name": view.name,
        "execution-config": {
            "restart-strategy": view.restart_strategy,
            "job-parallelism": view.parallelism,
            "object-reuse-mode": view.object_reuse,
            "user-config": view.parameters,
        },
    }


def job_status(view: JobView) -> Json:
    """`/jobs/:jobid/status`."""
    return {"status": view.status}


def job_accumulators(view: JobView) -> Json:
    """`/jobs/:jobid/accumulators`: those that the slots have reported, when they closed."""
    accumulators = [{"name": each.name, "type": each.type, "value": each.value} for each in view.accumulators]
    return {
        "job-accumulators": [],
        "user-task-accumulators": accumulators,
        "serialized-user-task-accumulators": {},
    }


def execution_result(view: JobView) -> Json:
    """`/jobs/:jobid/execution-result`."""
    if not view.ended:
        return {"status": {"id": "IN_PROGRESS"}}
    statuses = {"FINISHED": "SUCCEEDED", "CANCELED": "CANCELED", "FAILED": "FAILED"}
    result: Json = {
        "id": view.job_id,
        "name": view.name,
        "application-status": statuses[view.status],
        "accumulator-results": {},
        "net-runtime": view.now_ms - view.started_ms,
    }
    if view.status == "FAILED" and view.failures:
        result["failure-cause"] = failure_cause(view.failures[0].name, view.failures[0].message)
    times = {"application-id": view.job_id, "start-time": view.started_ms, "end-time": view.ended_ms}
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result | times}


# -- applications: Flink 2.3 groups jobs into them; here each has one job ---------------------------------------------


def applications(views: Sequence[JobView]) -> Json:
    """`/applications/overview`."""
    return {
        "applications": [
            {
                "id": view.job_id,
                "name": _application_name(view),
                "start-time": view.started_ms,
                "end-time": view.ended_ms,
                "duration": view.now_ms - view.started_ms,
                "status": _application_status(view),
                "jobs": dict(Counter([view.status])),
            }
            for view in views
        ]
    }


def application(view: JobView) -> Json:
    """`/applications/:applicationid`."""
    entered = {state.replace("CANCELLING", "CANCELING"): at for state, at in view.entered_ms.items()}
    return {
        "id": view.job_id,
        "name": _application_name(view),
        "status": _application_status(view),
        "start-time": view.started_ms,
        "end-time": view.ended_ms,
        "duration": view.now_ms - view.started_ms,
        "timestamps": {state: entered.get(state, 0) for state in _APPLICATION_STATES},
        "jobs": [job_summary(view)],
    }


def application_exceptions() -> Json:
    """`/applications/:applicationid/exceptions`: an application fails as its job does, and with nothing else."""
    return {"exceptionHistory": {"entries": []}}


def _application_name(view: JobView) -> str:
    return f"SingleJobApplication({view.name})"


def _application_status(view: JobView) -> str:
    status = view.status.replace("CANCELLING", "CANCELING")
    return status if status in _APPLICATION_STATES else "RUNNING"
