"""`JobClient`: what a program can do with a job that runs."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from rekindle.common.checkpoint_statistics import CheckpointOverview
from rekindle.common.completable_future import CompletableFuture
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.metrics import MetricReading

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

    def metrics(self) -> list[MetricReading]:
        """What the metrics of functions said last."""
        ...

    def trigger_checkpoint(self) -> Future[int]:
        """A checkpoint now; complete with its id."""
        ...

    def trigger_savepoint(self, directory: str | None = None) -> Future[str]:
        """A savepoint; complete with its path."""
        ...

    def stop_with_savepoint(self, drain: bool, directory: str | None = None) -> Future[str]:
        """A savepoint with which the job ends; complete with its path."""
        ...

    def cancel_with_savepoint(self, directory: str | None = None) -> Future[str]:
        """A savepoint, then a cancellation; complete with its path."""
        ...

    def checkpoint_statistics(self) -> CheckpointOverview:
        """What the checkpoints took so far."""
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

    def get_metrics(self) -> list[MetricReading]:
        """What the metrics of functions (`RuntimeContext.get_metrics_group()`) said last, per operator and subtask.

        Subtasks tell them with their epochs, at most once a second, and at the end; a restarted job begins anew.
        """
        return self._handle.metrics()

    def trigger_checkpoint(self) -> CompletableFuture[int]:
        """Makes a checkpoint now, whatever the interval; the future has its id when it is complete."""
        return CompletableFuture(self._handle.trigger_checkpoint())

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Makes a savepoint and lets the job go on; the future has the path to restore from.

        Without a directory it goes to the one that `execution.checkpointing.savepoint-dir` names.
        """
        return CompletableFuture(self._handle.trigger_savepoint(savepoint_directory))

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Ends the job with a savepoint; the future has its path when all that it contains is committed.

        With `advance_to_end_of_event_time` (drain) the sources end first, every timer and window fires, and a job that
        starts from the savepoint has nothing left to do. Without it the job can be continued.
        """
        return CompletableFuture(self._handle.stop_with_savepoint(advance_to_end_of_event_time, savepoint_directory))

    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Makes a savepoint and cancels the job; the future has the path when the job has ended.

        What the job wrote between the two is written again by a job that starts from the savepoint:
        `stop_with_savepoint` leaves no such gap.
        """
        return CompletableFuture(self._handle.cancel_with_savepoint(savepoint_directory))

    def get_checkpoint_statistics(self) -> CheckpointOverview:
        """What the checkpoints took so far: counts, sizes and times, per checkpoint, task, subtask and operator."""
        return self._handle.checkpoint_statistics()

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Complete when the job is over: its result, or why it failed."""
        return CompletableFuture(self._handle.result())
