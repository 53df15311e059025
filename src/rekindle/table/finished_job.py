"""The handle of an insertion that Spark has run: it is over when the program gets it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, TypeVar

from rekindle.common.checkpoint_statistics import CheckpointCounts, CheckpointOverview, CompletedSummary, Summary
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.errors import CheckpointError
from rekindle.metrics import MetricReading

T = TypeVar("T")


class FinishedJob:
    """Implements `rekindle.common.job_client.JobHandle`.

    >>> job = FinishedJob(run_time_ms=1200)
    >>> job.status().name, job.result().result().get_net_runtime()
    ('FINISHED', 1200)
    """

    def __init__(self, run_time_ms: int) -> None:
        self._id = JobID()
        self._result = _done(JobExecutionResult(self._id, run_time_ms))

    @property
    def job_id(self) -> JobID:
        """The id of the insertion."""
        return self._id

    def status(self) -> JobStatus:
        """Finished."""
        return JobStatus.FINISHED

    def cancel(self) -> Future[None]:
        """Nothing is left to cancel."""
        return _done(None)

    def suspend(self) -> Future[None]:
        """Nothing is left to cancel."""
        return _done(None)

    def result(self) -> Future[JobExecutionResult]:
        """The run time."""
        return self._result

    def accumulators(self) -> dict[str, Any]:
        """Functions of queries have none."""
        return {}

    def metrics(self) -> list[MetricReading]:
        """Functions of queries have none."""
        return []

    def trigger_checkpoint(self, full: bool = False) -> Future[int]:
        """Refused."""
        return _refused()

    def trigger_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        """Refused."""
        return _refused()

    def stop_with_savepoint(
        self, drain: bool, directory: str | None = None, format_type: str | None = None
    ) -> Future[str]:
        """Refused."""
        return _refused()

    def cancel_with_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        """Refused."""
        return _refused()

    def checkpoint_statistics(self) -> CheckpointOverview:
        """There were none."""
        none = CompletedSummary(Summary(), Summary(), Summary(), Summary(), Summary())
        return CheckpointOverview(CheckpointCounts(), none, (), None, None, None, None)

    def web_url(self) -> None:
        """Spark's own page shows its jobs."""


def _done(value: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(value)
    return future


def _refused() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(CheckpointError("Spark has run this insertion, and it is over: there is nothing to save."))
    return future
