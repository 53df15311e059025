"""`JobClient`: what a program can do with a job that runs."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from rekindle.common.completable_future import CompletableFuture
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus

__all__ = ["JobClient", "JobHandle"]


class JobHandle(Protocol):
    """What the engine offers for a job it runs."""

    @property
    def job_id(self) -> JobID:
        """The job's id."""
        ...

    def status(self) -> JobStatus:
        """Where the job is in its life, now."""
        ...

    def cancel(self) -> Future[None]:
        """Asks the job to stop; complete when it has."""
        ...

    def result(self) -> Future[JobExecutionResult]:
        """Complete when the job is over: its result, or why it failed. The same future each time."""
        ...

    def accumulators(self) -> dict[str, Any]:
        """The accumulators as far as they are known."""
        ...


class JobClient:
    """A job that was started with `execute_async`."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._handle.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job is in its life."""
        return CompletableFuture.completed(self._handle.status())

    def cancel(self) -> CompletableFuture[None]:
        """Cancels the job; the future is complete when it has stopped."""
        return CompletableFuture(self._handle.cancel())

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The accumulators as far as they are known."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Complete when the job is over: its result, or why it failed."""
        return CompletableFuture(self._handle.result())
