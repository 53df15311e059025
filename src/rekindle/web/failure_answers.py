"""Answers about the failures of a job: Flink's, and ours with the failing record."""

from __future__ import annotations

from rekindle.monitor.job_view import FailureView, JobView
from rekindle.web.flink_values import Json

#: The number of exceptions in Flink's answer unless the request says another one.
DEFAULT_EXCEPTIONS = 20
#: The characters of a failure's summary and record where it is told in short.
_SHORT = 300


def exceptions(view: JobView, most: int = DEFAULT_EXCEPTIONS) -> Json:
    """`/jobs/:jobid/exceptions`."""
    return {
        "exceptionHistory": {
            "entries": [_entry(each) for each in view.failures[:most]],
            "truncated": view.failure_count > min(most, len(view.failures)),
        }
    }


def _entry(failure: FailureView) -> Json:
    entry: Json = {
        "exceptionName": failure.name,
        "stacktrace": failure.message,
        "timestamp": failure.at_ms,
        "failureLabels": {},
    }
    if failure.task is not None:
        entry["taskName"] = f"{failure.task} - execution #{failure.restarts}"
    if failure.slot is not None:
        entry |= {"endpoint": failure.host or "", "taskManagerId": failure.slot}
    return entry | {"concurrentExceptions": []}


def last_failure(view: JobView) -> Json | None:
    """The newest failure in short; None: nothing has failed."""
    if not view.failures:
        return None
    last = view.failures[0]
    return {
        "timestamp": last.at_ms,
        "summary": _summary(last)[:_SHORT],
        "operator": last.operator,
        "subtask": last.subtask,
        "record": None if last.record is None else last.record[:_SHORT],
        "restart-in": last.restart_in_ms,
    }


def _summary(failure: FailureView) -> str:
    """The line of a traceback that names the exception, else its first line."""
    lines = [line for line in failure.message.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(failure.name)), lines[0] if lines else failure.name)


def failures(view: JobView) -> Json:
    """`/jobs/:jobid/failures`: the same with operator, subtask, record, and what followed."""
    return {
        "count": view.failure_count,
        "restarts": view.restarts,
        "failures": [
            {
                "timestamp": each.at_ms,
                "exception": each.name,
                "message": each.message,
                "attempt": each.attempt,
                "task": each.task,
                "vertex": each.vertex,
                "operator": each.operator,
                "subtask": each.subtask,
                "record": each.record,
                "slot": each.slot,
                "restart-in": each.restart_in_ms,
            }
            for each in view.failures
        ],
    }
