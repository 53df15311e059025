"""`/health` and `/ready`, for probes of Kubernetes and load balancers. Without a token they tell the state alone."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.monitor.job_view import JobView
from rekindle.web.flink_values import Json
from rekindle.web.request_errors import RequestError

#: The paths that are answered without a token.
PROBES = frozenset(f"{version}{path}" for version in ("", "/v1") for path in ("/health", "/ready"))
_RUNNING = "RUNNING"


def health() -> Json:
    """`/health`: the driver's server lives."""
    return {"status": "alive"}


def ready(jobs: Sequence[tuple[JobView, int | None]], *, is_history: bool = False) -> Json:
    """`/ready`: every job runs, and its last completed checkpoint is not older than the milliseconds beside it.

    RequestError says why not, without names.
    """
    if not jobs and not is_history:
        raise RequestError(503, "No job runs.")
    others = [view.status for view, _ in jobs if view.status != _RUNNING]
    if others:
        do = "does" if len(others) == 1 else "do"
        states = ", ".join(sorted(set(others)))
        raise RequestError(503, f"{len(others)} of {len(jobs)} jobs {do} not run: {states}.")
    for view, max_age_ms in jobs:
        age_ms = _checkpoint_age_ms(view)
        if max_age_ms is not None and age_ms > max_age_ms:
            age_s, most_s = age_ms // 1000, max_age_ms / 1000
            raise RequestError(503, f"The last completed checkpoint of a job is {age_s} s old, more than {most_s:g} s.")
    return {"status": "ready"}


def _checkpoint_age_ms(view: JobView) -> int:
    """The time since the last checkpoint was complete, or since the job's start if there is none; 0 without them."""
    if view.checkpoint_config.interval_ms <= 0:
        return 0
    latest = view.checkpoints.latest_completed
    since_ms = view.started_ms if latest is None else latest.trigger_timestamp_ms + latest.end_to_end_duration_ms
    return view.taken_ms - since_ms
