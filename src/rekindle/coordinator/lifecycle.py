"""The life of a job as a table; the diagram in `docs/architecture.md` is drawn from it."""

from __future__ import annotations

from rekindle.common.job_status import JobStatus

TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.CREATED: frozenset({JobStatus.RUNNING, JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.RESTARTING}),
    JobStatus.RUNNING: frozenset({JobStatus.FINISHED, JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.RESTARTING}),
    JobStatus.RESTARTING: frozenset({JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING}),
    JobStatus.FAILING: frozenset({JobStatus.FAILED, JobStatus.RESTARTING, JobStatus.CANCELLING}),
    JobStatus.CANCELLING: frozenset({JobStatus.CANCELED, JobStatus.FAILED}),
    JobStatus.FINISHED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.CANCELED: frozenset(),
}


def may_follow(current: JobStatus, following: JobStatus) -> bool:
    """Whether a job in `current` may go to `following`.

    >>> may_follow(JobStatus.RUNNING, JobStatus.FINISHED), may_follow(JobStatus.FAILED, JobStatus.RUNNING)
    (True, False)
    """
    return following in TRANSITIONS[current]
