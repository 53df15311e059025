"""The job master: a thread that runs attempts of a job, and the handle through which users see it."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from rekindle.common.checkpoint_statistics import CheckpointOverview
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.attempt import Attempt, AttemptSettings, Observer, PartitionedInput
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.types import CheckpointKind, CompletedCheckpoint
from rekindle.coordinator.cluster import Cluster
from rekindle.coordinator.epochs import EpochSummary
from rekindle.coordinator.lifecycle import may_follow
from rekindle.coordinator.restart import FailureHistory, GiveUp, RestartStrategy
from rekindle.coordinator.results import ResultQueue
from rekindle.errors import (
    CheckpointNotFoundError,
    ClusterGoneError,
    CorruptCheckpointError,
    IncompatibleStateError,
    JobCancelledError,
    OwnershipLostError,
    RekindleError,
    SerializationError,
    StoreError,
)
from rekindle.graph.nodes import JobPlan
from rekindle.metrics import MetricReading

T = TypeVar("T")

_LOG = logging.getLogger("rekindle.job")
#: A restart would meet them again, or must not come.
_FINAL_ERRORS = (
    JobCancelledError,
    OwnershipLostError,
    CheckpointNotFoundError,
    ClusterGoneError,
    IncompatibleStateError,
    SerializationError,
)


def _is_final(error: BaseException) -> bool:
    """Whether a restart would only meet it again."""
    return isinstance(error, _FINAL_ERRORS) or (isinstance(error, StoreError) and not error.retryable)


@dataclass(frozen=True)
class JobSpec:
    """Everything a job master needs to run a job."""

    job_id: JobID
    plan: JobPlan
    program: bytes
    settings: AttemptSettings
    checkpointing: CheckpointDriver
    restart: RestartStrategy
    dataframes: Callable[[], list[PartitionedInput]]
    decode_rows: Callable[[list[bytes]], list[Any]]


@dataclass
class _HeldResults:
    """Results that no completed checkpoint contains yet."""

    uncut: list[list[Any]] = field(default_factory=list)
    cut: dict[int, list[list[Any]]] = field(default_factory=dict)

    def clear(self) -> None:
        """They will be made again."""
        self.uncut.clear()
        self.cut.clear()


def _then(asked: Future[CompletedCheckpoint], take: Callable[[CompletedCheckpoint], T]) -> Future[T]:
    """The part of an answer that its asker wants."""
    wanted: Future[T] = Future()

    def settle(answered: Future[CompletedCheckpoint]) -> None:
        if not wanted.set_running_or_notify_cancel():
            return
        if (error := answered.exception()) is not None:
            wanted.set_exception(error)
        else:
            wanted.set_result(take(answered.result()))

    asked.add_done_callback(settle)
    return wanted


class JobMaster:
    """Runs a job on its own thread. Implements `common.job_client.JobHandle`."""

    def __init__(self, spec: JobSpec, cluster: Cluster, observer: Observer) -> None:
        self._spec = spec
        self._cluster = cluster
        self._observer = observer
        self._status = JobStatus.CREATED
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._restarts = 0
        self._chance = random.Random()
        self._results_held = _HeldResults()
        spec.checkpointing.on_cut = self._on_cut
        spec.checkpointing.on_completed = self._on_completed
        spec.checkpointing.requests.on_request = self._wake
        self._attempt: Attempt | None = None
        self._future: Future[JobExecutionResult] = Future()
        self._results = ResultQueue()
        self._results.on_room = self._wake
        self._accumulators: dict[str, Any] = {}
        self._metrics: dict[tuple[str, int, str], MetricReading] = {}  # by uid, subtask and name
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
        self._cancelled.set()
        with self._lock:
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

    def metrics(self) -> list[MetricReading]:
        """What the metrics of the current or last attempt said last."""
        return list(self._metrics.values())

    def _heard(self, readings: Iterable[MetricReading]) -> None:
        heard = {(each.uid, each.subtask, each.name): each for each in readings}
        if heard:
            self._metrics = self._metrics | heard  # a new dict: others read the old one meanwhile

    def results(self) -> Iterator[list[Any]]:
        """What `execute_and_collect` reads, batch by batch, as it comes."""
        return self._results.batches()

    # -- checkpoints by hand ------------------------------------------------------------------------------------------

    def trigger_checkpoint(self) -> Future[int]:
        """A checkpoint now; its id, when it is complete."""
        asked = self._spec.checkpointing.requests.ask(CheckpointKind.CHECKPOINT)
        return _then(asked, lambda checkpoint: checkpoint.id)

    def trigger_savepoint(self, directory: str | None = None) -> Future[str]:
        """A savepoint, below `directory` or the configured one; its path, when it is complete. The job goes on."""
        asked = self._spec.checkpointing.requests.ask(CheckpointKind.SAVEPOINT, directory)
        return _then(asked, lambda savepoint: savepoint.location)

    def stop_with_savepoint(self, drain: bool, directory: str | None = None) -> Future[str]:
        """A savepoint with which the job ends (I17); its path, when everything is committed and the job has ended."""
        asked = self._spec.checkpointing.requests.ask(CheckpointKind.STOP, directory, drain)
        return self._with_the_end(_then(asked, lambda savepoint: savepoint.location), lambda: None)

    def cancel_with_savepoint(self, directory: str | None = None) -> Future[str]:
        """A savepoint, then a cancellation; its path, when the job has ended. Without a savepoint the job goes on."""
        return self._with_the_end(self.trigger_savepoint(directory), self.cancel)

    def _with_the_end(self, savepoint: Future[str], then: Callable[[], object]) -> Future[str]:
        """A savepoint's path, when the job has ended because of it."""
        path: Future[str] = Future()

        def made(savepoint: Future[str]) -> None:
            if (error := savepoint.exception()) is not None:
                path.set_exception(error)
                return
            then()
            self._future.add_done_callback(lambda _: path.set_result(savepoint.result()))

        savepoint.add_done_callback(made)
        return path

    def checkpoint_statistics(self) -> CheckpointOverview:
        """What the checkpoints took."""
        return self._spec.checkpointing.tracker.overview()

    def _wake(self) -> None:
        with self._lock:
            attempt = self._attempt
        if attempt is not None:
            attempt.wake()

    # -- thread -------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        started = monotonic()
        try:
            error = self._run_attempts()
        except BaseException as unexpected:  # whoever waits for the job must hear of its end
            error = unexpected
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
            for clean_up in (partial(self._spec.checkpointing.job_ended, self._status), self._cluster.close):
                try:
                    clean_up()
                except Exception as late:
                    _LOG.warning("Job '%s': cleaning up failed: %s", self._spec.plan.job_name, late)
        finally:
            self._results.end(error)
            if error is not None:
                self._future.set_exception(error)
            else:
                runtime_ms = round((monotonic() - started) * 1000)
                self._future.set_result(JobExecutionResult(self.job_id, runtime_ms, self._accumulators))

    def _run_attempts(self) -> BaseException | None:
        """Attempts until one ends well, somebody cancels, or the strategy gives up; the error that is left."""
        history = FailureHistory()
        while True:
            try:
                self._run_attempt()
                return None
            except CorruptCheckpointError as error:
                refusal = self._go_back(error)
                if refusal is not None:
                    return refusal
            except Exception as error:
                if self._cancelled.is_set() and not isinstance(error, JobCancelledError):
                    # Functions may fail because they are cancelled; as in Flink the job is cancelled all the same.
                    _LOG.info("Job '%s' failed while it was cancelled: %s", self._spec.plan.job_name, error)
                    return self._was_cancelled()
                if _is_final(error):
                    return error
                self._results_held.clear()
                self._spec.checkpointing.failed(str(error))
                decision = self._spec.restart.on_failure(history, monotonic() * 1000, self._chance)
                if isinstance(decision, GiveUp):
                    if history.restarts:
                        error.add_note(decision.reason)
                    return error
                history = decision.history
                name = self._spec.plan.job_name
                _LOG.warning("Job '%s' failed, restart in %d ms: %s", name, decision.delay_ms, error)
                self._move(JobStatus.RESTARTING)
                if self._cancelled.wait(decision.delay_ms / 1000):
                    return self._was_cancelled()
            except BaseException as error:
                return error

    def _was_cancelled(self) -> JobCancelledError:
        return JobCancelledError(f"Job '{self._spec.plan.job_name}' was cancelled.")

    def _go_back(self, damage: CorruptCheckpointError) -> BaseException | None:
        """From the damaged checkpoint to an older one, at once; the error if that may not be (I16)."""
        self._results_held.clear()
        try:
            self._spec.checkpointing.failed(str(damage))
            self._spec.checkpointing.go_back(damage)
        except RekindleError as refusal:
            return refusal
        self._move(JobStatus.RESTARTING)
        return None

    def _run_attempt(self) -> None:
        spec = self._spec
        settings = replace(spec.settings, restarts=self._restarts)
        self._restarts += 1
        self._metrics = {}
        self._cluster.prepare()
        attempt = Attempt(spec.plan, spec.checkpointing, spec.program, self._cluster, settings, self, self)
        with self._lock:
            self._attempt = attempt
        if self._cancelled.is_set():
            attempt.cancel()
        try:
            attempt.run(spec.dataframes())
        finally:
            self._accumulators = attempt.accumulators
            self._heard(attempt.last_metrics)

    # -- results: with checkpoints each once, after the checkpoint that contains it -----------------------------------

    def has_room(self) -> bool:
        """Whether the results' reader keeps up."""
        return self._results.has_room()

    def deliver(self, rows: list[bytes]) -> None:
        """Take what an epoch brought."""
        records = self._spec.decode_rows(rows)
        if self._spec.checkpointing.enabled:
            self._results_held.uncut.append(records)
        else:
            self._results.put(records)

    def _on_cut(self, checkpoint_id: int) -> None:
        held = self._results_held
        held.cut[checkpoint_id], held.uncut = held.uncut, []

    def _on_completed(self, checkpoint_id: int) -> None:
        held = self._results_held.cut
        for covered in sorted(each for each in held if each <= checkpoint_id):
            for records in held.pop(covered):
                self._results.put(records)

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
        self._heard(summary.metrics)
        self._observer.on_epoch(summary)

    def on_ended(self) -> None:
        """Said once for the job, not for each attempt."""
