"""`JobClient`: a program's handle of a running job."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from rekindle.common.checkpoint_statistics import CheckpointOverview
from rekindle.common.completable_future import CompletableFuture
from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.metrics import MetricReading

__all__ = ["JobClient", "JobHandle"]


class JobHandle(Protocol):
    """The engine's handle of a job, behind `JobClient`."""

    @property
    def job_id(self) -> JobID:
        """The job's id."""
        ...

    def status(self) -> JobStatus:
        """The job's current status."""
        ...

    def cancel(self) -> Future[None]:
        """Cancels the job; the future is complete when the job has stopped."""
        ...

    def suspend(self) -> Future[None]:
        """Cancels the job, and keeps its checkpoints whatever its settings say: it is to go on later."""
        ...

    def result(self) -> Future[JobExecutionResult]:
        """The future of the job's result or error, complete when the job is over. The same future each time."""
        ...

    def accumulators(self) -> dict[str, Any]:
        """The accumulators as far as the driver knows them."""
        ...

    def metrics(self) -> list[MetricReading]:
        """The last readings of the functions' metrics."""
        ...

    def trigger_checkpoint(self, full: bool = False) -> Future[int]:
        """Makes a checkpoint now, with all state if `full`; the future has its id."""
        ...

    def trigger_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        """Makes a savepoint; the future has its path. `format_type` is only shown, with its statistics."""
        ...

    def stop_with_savepoint(
        self, drain: bool, directory: str | None = None, format_type: str | None = None
    ) -> Future[str]:
        """Ends the job with a savepoint; the future has its path."""
        ...

    def cancel_with_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        """Makes a savepoint and cancels the job; the future has its path."""
        ...

    def checkpoint_statistics(self) -> CheckpointOverview:
        """The statistics of the checkpoints so far."""
        ...

    def web_url(self) -> str | None:
        """Where the job is shown; None: nowhere."""
        ...


class JobClient(RefusesJavaNames):
    """A job that was started with `execute_async`."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._handle.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """The job's current status."""
        return CompletableFuture.completed(self._handle.status())

    def cancel(self) -> CompletableFuture[None]:
        """Cancels the job; the future is complete when it has stopped."""
        return CompletableFuture(self._handle.cancel())

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The accumulators as far as the driver knows them."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_metrics(self) -> list[MetricReading]:
        """The last readings of the functions' metrics (`RuntimeContext.get_metrics_group()`) per operator and subtask.

        Subtasks send them with their epochs, at most once a second, and at the end; a restart starts them anew.
        """
        return self._handle.metrics()

    def trigger_checkpoint(self) -> CompletableFuture[int]:
        """Makes a checkpoint now, whatever the interval; the future has its id once the checkpoint is complete."""
        return CompletableFuture(self._handle.trigger_checkpoint())

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Makes a savepoint while the job continues; the future has the path to restore from.

        Without a directory the savepoint goes to the one that `execution.checkpointing.savepoint-dir` names.
        """
        return CompletableFuture(self._handle.trigger_savepoint(savepoint_directory))

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Ends the job with a savepoint; the future has its path once the output up to the savepoint is committed.

        With `advance_to_end_of_event_time` (drain) the sources end first, every timer and window fires, and a job that
        starts from the savepoint has nothing left to do. Without it the job can be continued.
        """
        return CompletableFuture(self._handle.stop_with_savepoint(advance_to_end_of_event_time, savepoint_directory))

    def cancel_with_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Makes a savepoint and cancels the job; the future has the path when the job has ended.

        A job that starts from the savepoint writes again what this job wrote between savepoint and cancellation:
        `stop_with_savepoint` has no such gap.
        """
        return CompletableFuture(self._handle.cancel_with_savepoint(savepoint_directory))

    def get_checkpoint_statistics(self) -> CheckpointOverview:
        """Statistics of the checkpoints so far: counts, sizes and times, per checkpoint, task, subtask and operator."""
        return self._handle.checkpoint_statistics()

    def get_web_interface_url(self) -> str | None:
        """The address of the REST API and its page, with the token if there is one; None: the job is not shown."""
        return self._handle.web_url()

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The future of the job's result or error, complete when the job is over."""
        return CompletableFuture(self._handle.result())
