"""Requests that act on a job: savepoints, checkpoints, stop, cancel. They go through the job's handle."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from rekindle.common.job_client import JobHandle
from rekindle.errors import CheckpointError
from rekindle.web.allowed_directories import is_inside
from rekindle.web.asked import (
    Asked,
    CheckpointTriggerRequestBody,
    SavepointTriggerRequestBody,
    StopWithSavepointRequestBody,
)
from rekindle.web.flink_values import Json
from rekindle.web.operations import Kind
from rekindle.web.request_errors import RequestError, bad_query_value

_STOP_REMOVED = (
    'The termination mode "stop" has been removed. For an ungraceful shutdown, please use "cancel" instead. For a '
    'graceful shutdown, please use "jobs/:jobId/stop" instead. '
)


def trigger_savepoint(asked: Asked) -> Json:
    """`POST /jobs/:jobid/savepoints`."""
    body = asked.decoded(SavepointTriggerRequestBody)
    if body.cancel_job:
        _refuse_unless_cancelling(asked)
    directory, form = body.target_directory, body.formatType or "CANONICAL"
    _check_directory(asked, directory, "target-directory")

    def begin(handle: JobHandle) -> Future[str]:
        act = handle.cancel_with_savepoint if body.cancel_job else handle.trigger_savepoint
        return act(directory, form)

    return _started(asked, "savepoint", body.triggerId, begin)


def savepoint_status(asked: Asked) -> Json:
    """`GET /jobs/:jobid/savepoints/:triggerid`."""
    ids = asked.hex_id("jobid"), asked.hex_id("triggerid")
    return asked.operations.status("savepoint", *ids, lambda location: {"location": location})


def stop(asked: Asked) -> Json:
    """`POST /jobs/:jobid/stop`."""
    body = asked.decoded(StopWithSavepointRequestBody)
    _refuse_unless_cancelling(asked)
    directory, form, drain = body.targetDirectory, body.formatType or "CANONICAL", body.drain or False
    _check_directory(asked, directory, "targetDirectory")
    return _started(
        asked, "savepoint", body.triggerId, lambda handle: handle.stop_with_savepoint(drain, directory, form)
    )


def trigger_checkpoint(asked: Asked) -> Json:
    """`POST /jobs/:jobid/checkpoints`."""
    body = asked.decoded(CheckpointTriggerRequestBody)
    full = body.checkpointType == "FULL"
    return _started(asked, "checkpoint", body.triggerId, lambda handle: handle.trigger_checkpoint(full))


def checkpoint_status(asked: Asked) -> Json:
    """`GET /jobs/:jobid/checkpoints/:triggerid`."""
    ids = asked.hex_id("jobid"), asked.hex_id("triggerid")
    return asked.operations.status("checkpoint", *ids, lambda checkpoint_id: {"checkpointId": checkpoint_id})


def cancel(asked: Asked) -> Json:
    """`PATCH /jobs/:jobid`."""
    mode = asked.query.get("mode", "cancel")
    if mode == "stop":
        raise RequestError(308, _STOP_REMOVED)
    if mode != "cancel":
        bad_query_value("mode", mode)
    _refuse_unless_cancelling(asked)
    view = asked.job()
    running = asked.jobs.running(view.job_id)
    if view.status in ("FINISHED", "FAILED") or (running is None and view.status != "CANCELED"):
        raise RequestError(
            409,
            f"Job cancellation failed because the job has already reached another terminal state ({view.status}).",
        )
    if running is not None:
        running.handle.cancel()
    return {}


def _started(asked: Asked, kind: Kind, request_id: str | None, begin: Callable[[JobHandle], Future[Any]]) -> Json:
    """Begin an operation. That a job is over is told, as in Flink, to those who ask about the operation."""
    view = asked.job()
    running = asked.jobs.running(view.job_id)

    def run() -> Future[Any]:
        if running is not None:
            return begin(running.handle)
        refused: Future[Any] = Future()
        refused.set_exception(CheckpointError(f"Job {view.job_id} does not run any more: it is {view.status}."))
        return refused

    known_as = None if request_id is None else request_id.lower()
    return {"request-id": asked.operations.start(kind, view.job_id, known_as, run)}


def _refuse_unless_cancelling(asked: Asked) -> None:
    job_id = asked.hex_id("jobid")
    running = asked.jobs.running(job_id)
    if not asked.options.may_cancel or (running is not None and not running.may_cancel):
        raise RequestError(403, "Jobs cannot be stopped or cancelled by requests: web.cancel.enable is false.")


def _check_directory(asked: Asked, directory: str | None, name: str) -> None:
    view = asked.job()
    running = asked.jobs.running(view.job_id)
    if directory is None:
        if view.checkpoint_config.savepoint_directory is None:
            raise RequestError(
                400,
                f"Config key [execution.checkpointing.savepoint-dir] is not set. Property [{name}] must be provided.",
            )
        return
    if running is not None and not is_inside(directory, running.directories):
        raise RequestError(
            400,
            f"{directory} lies outside the directories that requests may write into: name one below those of the "
            "job's checkpoints or savepoints, or allow it with rekindle.rest.directories.",
        )
