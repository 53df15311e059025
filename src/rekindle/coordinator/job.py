"""The job master: a thread that runs attempts of a job, and the handle through which users see it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from time import monotonic
from typing import Any

from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.attempt import Attempt, AttemptSettings, EpochSummary, Observer, PartitionedInput
from rekindle.coordinator.cluster import Cluster
from rekindle.coordinator.lifecycle import may_follow
from rekindle.coordinator.results import ResultQueue
from rekindle.errors import JobCancelledError
from rekindle.graph.nodes import JobPlan

_LOG = logging.getLogger("rekindle.job")


@dataclass(frozen=True)
class JobSpec:
    """Everything a job master needs to run a job."""

    job_id: JobID
    plan: JobPlan
    program: bytes
    settings: AttemptSettings
    dataframes: Callable[[], list[PartitionedInput]]
    decode_rows: Callable[[list[bytes]], list[Any]]


class JobMaster:
    """Runs a job on its own thread. Implements `common.job_client.JobHandle`."""

    def __init__(self, spec: JobSpec, cluster: Cluster, observer: Observer) -> None:
        self._spec = spec
        self._cluster = cluster
        self._observer = observer
        self._status = JobStatus.CREATED
        self._lock = threading.Lock()
        self._cancel_asked = False
        self._attempt: Attempt | None = None
        self._future: Future[JobExecutionResult] = Future()
        self._results = ResultQueue()
        self._accumulators: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, name=f"job master {spec.plan.job_name}", daemon=True)

    def start(self) -> JobMaster:
        """Begin."""
        self._thread.start()
        return self

    # -- handle -------------------------------------------------------------------------------------------------------

    @property
    def job_id(self) -> JobID:
        """The job's id."""
        return self._spec.job_id

    def status(self) -> JobStatus:
        """Where in its life the job is."""
        return self._status

    def cancel(self) -> Future[None]:
        """Cancel the job; the future is done when it has ended."""
        with self._lock:
            self._cancel_asked = True
            attempt = self._attempt
        self._results.abandon()
        if attempt is not None:
            attempt.cancel()
        ended: Future[None] = Future()
        self._future.add_done_callback(lambda _: ended.set_result(None))
        return ended

    def result(self) -> Future[JobExecutionResult]:
        """Done when the job is; holds its result or its error."""
        return self._future

    def accumulators(self) -> dict[str, Any]:
        """Accumulators; complete when the job has finished."""
        return dict(self._accumulators)

    def results(self) -> Iterator[list[Any]]:
        """What `execute_and_collect` reads, batch by batch, as it comes."""
        return self._results.batches()

    # -- thread -------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        started = monotonic()
        error: BaseException | None = None
        try:
            self._run_attempt(0)
        except BaseException as caught:
            error = caught
        if error is None:
            self._move(JobStatus.FINISHED)
        elif isinstance(error, JobCancelledError):
            self._move(JobStatus.CANCELLING)
            self._move(JobStatus.CANCELED)
        else:
            self._move(JobStatus.FAILING)
            self._move(JobStatus.FAILED)
        self._observer.on_ended()
        try:
            self._cluster.close()
        finally:
            self._results.end(error)
            if error is not None:
                self._future.set_exception(error)
            else:
                runtime_ms = round((monotonic() - started) * 1000)
                self._future.set_result(JobExecutionResult(self.job_id, runtime_ms, self._accumulators))

    def _run_attempt(self, number: int) -> None:
        spec = self._spec
        attempt = Attempt(
            spec.plan, str(spec.job_id), number, spec.program, self._cluster, spec.settings, self, self._deliver
        )
        with self._lock:
            self._attempt = attempt
            cancelled = self._cancel_asked
        if cancelled:
            attempt.cancel()
        try:
            attempt.run(spec.dataframes())
        finally:
            self._accumulators = attempt.accumulators

    def _deliver(self, rows: list[bytes]) -> None:
        self._results.put(self._spec.decode_rows(rows))

    def _move(self, status: JobStatus) -> None:
        assert may_follow(self._status, status), f"{self._status} -> {status}"
        _LOG.info("Job '%s' (%s): %s", self._spec.plan.job_name, self.job_id, status.name)
        self._status = status

    # -- observer of the attempt --------------------------------------------------------------------------------------

    def on_started(self) -> None:
        """Every function is open."""
        self._move(JobStatus.RUNNING)
        self._observer.on_started()

    def on_epoch(self, summary: EpochSummary) -> None:
        """An epoch counted."""
        self._observer.on_epoch(summary)

    def on_ended(self) -> None:
        """Said once for the job, not for each attempt."""
