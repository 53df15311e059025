"""Flink's answers about the cluster: here, the driver's process with its jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version

from rekindle.monitor.job_view import JobView
from rekindle.web.flink_values import Json
from rekindle.web.slot_answers import slots

#: The version of Flink whose answers these are.
FLINK_VERSION = "2.3.0"


@cache
def revision() -> str:
    """The version of Rekindle, where Flink has its commit."""
    return f"rekindle-{version('rekindle')}"


def overview(views: Sequence[JobView]) -> Json:
    """`/overview`."""
    states = [view.status for view in views]
    hosted = len(list(slots(views)))
    return {
        "taskmanagers": hosted,
        "slots-total": hosted,
        "slots-available": 0,
        "jobs-running": sum(not view.ended and view.status != "SUSPENDED" for view in views),
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": FLINK_VERSION,
        "flink-commit": revision(),
    }


def config(refresh_ms: int, *, may_cancel: bool, is_history: bool) -> Json:
    """`/config`."""
    offset_s = time.localtime().tm_gmtoff or 0
    return {
        "refresh-interval": refresh_ms,
        "timezone-name": time.tzname[0],
        "timezone-offset": offset_s * 1000,
        "flink-version": FLINK_VERSION,
        "flink-revision": revision(),
        "features": {
            "web-submit": False,
            "web-cancel": may_cancel and not is_history,
            "web-rescale": False,
            "web-history": is_history,
        },
    }
