"""The job master: a thread that runs the attempts of a job, and the handle behind `JobClient`."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from rekindle.common.checkpoint_statistics import CheckpointOverview
from rekindle.common.job_execution_result import JobExecutionResult
from rekindle.common.job_id import JobID
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.attempt import Attempt
from rekindle.coordinator.attempt_spec import AttemptSpec, PartitionedInput, SlotEnvironment
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.requests import mapped
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.coordinator.closed_output import heard_by
from rekindle.coordinator.cluster import Cluster
from rekindle.coordinator.driver_log import JOB_OF_THREAD
from rekindle.coordinator.failure_messages import headline, output_closed
from rekindle.coordinator.job_events import (
    AttemptFailed,
    CheckpointRequested,
    EpochCounted,
    FunctionsOpened,
    JobEnded,
    JobEvent,
    JobOver,
    JobShown,
    SlotsClosed,
    StatusEntered,
)
from rekindle.coordinator.job_lifelines import JobLifelines
from rekindle.coordinator.lifecycle import may_follow
from rekindle.coordinator.restart import FailureHistory, GiveUp, RestartStrategy
from rekindle.coordinator.results import ResultReceiver
from rekindle.coordinator.source_splits import StartingSplits
from rekindle.errors import (
    CheckpointNotFoundError,
    ClusterGoneError,
    CorruptCheckpointError,
    IncompatibleStateError,
    JobCancelledError,
    JobExecutionError,
    OutputClosedError,
    OwnershipLostError,
    RekindleError,
    SerializationError,
    StoreError,
)
from rekindle.graph.nodes import JobPlan
from rekindle.metrics import MetricReading

_LOG = logging.getLogger("rekindle.job")
#: The errors after which a restart would fail again, or must not come.
_FINAL_ERRORS = (
    JobCancelledError,
    OwnershipLostError,
    OutputClosedError,
    CheckpointNotFoundError,
    ClusterGoneError,
    IncompatibleStateError,
    SerializationError,
)


def _is_final(error: BaseException) -> bool:
    """Whether a restart cannot help."""
    return isinstance(error, _FINAL_ERRORS) or (isinstance(error, StoreError) and not error.retryable)


def _as_it_is(error: BaseException) -> BaseException:
    return error


@dataclass(frozen=True)
class JobSpec:
    """Everything a job master needs to run a job."""

    job_id: JobID
    plan: JobPlan
    program: bytes
    environment: SlotEnvironment
    checkpointing: CheckpointDriver
    restart: RestartStrategy
    dataframes: Callable[[], list[PartitionedInput]]
    decode_chunks: Callable[[list[bytes]], list[Any]]
    #: The error that the program gets for the job's error.
    as_raised: Callable[[BaseException], BaseException] = _as_it_is


class LatestMetrics:
    """The latest reading of each metric of the current or last attempt; readable from any thread."""

    def __init__(self) -> None:
        self._readings: dict[tuple[str, int, str], MetricReading] = {}  # by uid, subtask and name

    def clear(self) -> None:
        """Forget all readings: another attempt begins."""
        self._readings = {}

    def update(self, readings: Iterable[MetricReading]) -> None:
        """Take newer readings."""
        newer = {(each.uid, each.subtask, each.name): each for each in readings}
        if newer:
            self._readings = self._readings | newer  # a new dict: other threads read the old one meanwhile

    def readings(self) -> list[MetricReading]:
        """The latest reading of each metric."""
        return list(self._readings.values())


class JobMaster:
    """Runs a job on its own thread. Implements `common.job_client.JobHandle`; hears the job's events before others."""

    def __init__(self, spec: JobSpec, cluster: Cluster) -> None:
        self._spec = spec
        self._checkpointing = spec.checkpointing
        self._clock = spec.checkpointing.clock
        self._cluster = cluster
        self._events = spec.checkpointing.events
        self._status = JobStatus.CREATED
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._suspended = False
        self._restarts = 0
        self._random = random.Random()
        self._attempt: Attempt | None = None
        self._lifelines: JobLifelines | None = None
        self._starting_splits = StartingSplits(spec.plan)
        self._future: Future[JobExecutionResult] = Future()
        self._accumulators: dict[str, Any] = {}
        self._metrics = LatestMetrics()
        self._link: str | None = None
        self._receiver = ResultReceiver(spec.decode_chunks, hold_back=spec.checkpointing.enabled, on_room=self._wake)
        for own in (self._receiver, self):
            self._events.subscribe(own, trusted=True)
        self._logged_traceback = ""
        self._lost_output: RekindleError | None = None
        self._stop: Future[str] | None = None
        self._thread = threading.Thread(target=self._run, name=f"job master {spec.plan.job_name}", daemon=True)

    def start(self) -> JobMaster:
        """Start the job's thread."""
        self._thread.start()
        return self

    # -- handle -------------------------------------------------------------------------------------------------------

    @property
    def job_id(self) -> JobID:
        """The job's id."""
        return self._spec.job_id

    def status(self) -> JobStatus:
        """The job's status."""
        return self._status

    def cancel(self) -> Future[None]:
        """Cancel the job; the future is done when it has ended."""
        self._cancelled.set()
        with self._lock:
            attempt = self._attempt
        self._receiver.queue.abandon()
        if attempt is not None:
            attempt.cancel()
        ended: Future[None] = Future()
        self._future.add_done_callback(lambda _: ended.set_result(None))
        return ended

    def suspend(self) -> Future[None]:
        """Cancel the job and keep its checkpoints, whatever their retention: the driver is told to end, not the job."""
        self._suspended = True
        return self.cancel()

    def result(self) -> Future[JobExecutionResult]:
        """Done when the job is; holds its result or its error."""
        return self._future

    def accumulators(self) -> dict[str, Any]:
        """Accumulators; complete when the job has finished."""
        return dict(self._accumulators)

    def metrics(self) -> list[MetricReading]:
        """The latest reading of each metric of the current or last attempt."""
        return self._metrics.readings()

    def results(self) -> Iterator[list[Any]]:
        """The batches that `execute_and_collect` reads, as they come."""
        return self._receiver.queue.batches()

    def checkpoint_statistics(self) -> CheckpointOverview:
        """The statistics of the job's checkpoints."""
        return self._checkpointing.tracker.overview()

    def web_url(self) -> str | None:
        """Where the job is shown; None: nowhere."""
        return self._link

    # -- requested checkpoints ----------------------------------------------------------------------------------------

    def trigger_checkpoint(self, full: bool = False) -> Future[int]:
        """Make a checkpoint now; its id, when it is complete. `full`: write all state, not only what has changed."""
        future = self._checkpointing.requests.ask(CheckpointKind.CHECKPOINT, full=full)
        return mapped(future, lambda checkpoint: checkpoint.id)

    def trigger_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        """Make a savepoint below `directory` or the configured one; its path, when it is complete. The job goes on.

        `format_type` is Flink's name for a format: it is kept with the statistics, there is one format here.
        """
        future = self._checkpointing.requests.ask(CheckpointKind.SAVEPOINT, directory, format_type=format_type)
        return mapped(future, lambda savepoint: savepoint.location)

    def stop_with_savepoint(
        self, drain: bool, directory: str | None = None, format_type: str | None = None
    ) -> Future[str]:
        """End the job with a savepoint (I17); its path, when everything is committed and the job has ended."""
        future = self._checkpointing.requests.ask(CheckpointKind.STOP, directory, drain, format_type)
        self._stop = self._at_the_end(mapped(future, lambda savepoint: savepoint.location), lambda: None)
        return self._stop

    def cancel_with_savepoint(self, directory: str | None = None, format_type: str | None = None) -> Future[str]:
        """Make a savepoint, then cancel; its path, when the job has ended. Without a savepoint the job goes on."""
        return self._at_the_end(self.trigger_savepoint(directory, format_type), self.cancel)

    def _at_the_end(self, savepoint: Future[str], on_success: Callable[[], object]) -> Future[str]:
        """The path of a savepoint, done when the job has ended; the savepoint's error at once."""
        path: Future[str] = Future()

        def made(savepoint: Future[str]) -> None:
            if (error := savepoint.exception()) is not None:
                path.set_exception(error)
                return
            on_success()
            self._future.add_done_callback(lambda _: path.set_result(savepoint.result()))

        savepoint.add_done_callback(made)
        return path

    def on_event(self, event: JobEvent) -> None:
        """Take those of the job's events that concern its master."""
        match event:
            case FunctionsOpened():
                self._move(JobStatus.RUNNING)
            case EpochCounted(summary):
                self._metrics.update(summary.metrics)
            case CheckpointRequested():
                self._wake()
            case JobShown(link):
                self._link = link

    def _wake(self) -> None:
        with self._lock:
            attempt = self._attempt
        if attempt is not None:
            attempt.wake()

    # -- the job's thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        started = self._clock.monotonic()
        JOB_OF_THREAD.set(self._spec.plan.job_name)
        try:
            with heard_by(self._on_closed_output):
                error = self._run_attempts()
        except BaseException as unexpected:  # the job's future must be completed whatever happens
            error = unexpected
            self._tell_failure(unexpected)
        if error is None:
            self._move(JobStatus.FINISHED)
        elif isinstance(error, JobCancelledError):
            self._move(JobStatus.CANCELLING)
            self._move(JobStatus.CANCELED)
        else:
            self._move(JobStatus.FAILING)
            self._move(JobStatus.FAILED)
        self._events.emit(JobEnded())
        try:
            suspended = self._suspended and self._status is JobStatus.CANCELED
            job_ended = partial(self._checkpointing.job_ended, JobStatus.SUSPENDED if suspended else self._status)
            for clean_up in (job_ended, self._end_lifelines, self._cluster.close):
                try:
                    clean_up()
                except Exception as late:
                    _LOG.warning("Job '%s': cleaning up failed: %s", self._spec.plan.job_name, late)
            self._events.emit(JobOver())
        finally:
            error = None if error is None else self._spec.as_raised(error)
            self._receiver.queue.end(error)
            if error is not None:
                self._future.set_exception(error)
            else:
                runtime_ms = round((self._clock.monotonic() - started) * 1000)
                self._future.set_result(JobExecutionResult(self.job_id, runtime_ms, self._accumulators))

    def _run_attempts(self) -> BaseException | None:
        """Run attempts until one succeeds, the user cancels, or the strategy gives up. Returns the job's error."""
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
                if self._cancelled.is_set() and not isinstance(error, JobCancelledError | OutputClosedError):
                    # Functions may fail because they are cancelled; as in Flink the job is cancelled all the same.
                    _LOG.info("Job '%s' failed while it was cancelled: %s", self._spec.plan.job_name, error)
                    return self._cancellation()
                if _is_final(error):
                    self._tell_failure(error)
                    return error
                self._receiver.drop_held()
                self._checkpointing.failed(headline(error))
                decision = self._spec.restart.on_failure(history, self._clock.monotonic() * 1000, self._random)
                if isinstance(decision, GiveUp):
                    if history.restarts:
                        error.add_note(decision.reason)
                    self._tell_failure(error)
                    return error
                history = decision.history
                self._events.emit(AttemptFailed(error, decision.delay_ms))
                name = self._spec.plan.job_name
                _LOG.warning("Job '%s' failed, restart in %d ms: %s", name, decision.delay_ms, self._told(error))
                self._move(JobStatus.RESTARTING)
                if self._clock.wait(self._cancelled, decision.delay_ms / 1000):
                    return self._cancellation()
            except BaseException as error:
                return error

    def _told(self, error: BaseException) -> str:
        """A failure for the log: in a sentence, with the traceback if it is not the one of the failure before."""
        text = error.origin.traceback if isinstance(error, JobExecutionError) and error.origin is not None else ""
        is_known, self._logged_traceback = text == self._logged_traceback, text
        return headline(error) if is_known or not text else f"{headline(error)}\n{text}"

    def _tell_failure(self, error: BaseException) -> None:
        """Tell of a failure after which the job ends; a cancellation is none."""
        if not isinstance(error, JobCancelledError):
            self._events.emit(AttemptFailed(error, None))

    def _cancellation(self) -> RekindleError:
        return self._lost_output or JobCancelledError(f"Job '{self._spec.plan.job_name}' was cancelled.")

    def _on_closed_output(self, stream: str, error: Exception) -> None:
        """End the job, also while it waits for a restart or its cluster; one that stops goes on to its savepoint."""
        if self._stop is not None and not self._stop.done():
            return
        self._lost_output = self._lost_output or output_closed(self._spec.plan.job_name, stream, error)
        with self._lock:
            attempt = self._attempt
        if attempt is not None:
            attempt.fail(self._lost_output)
        self._cancelled.set()

    def _go_back(self, damage: CorruptCheckpointError) -> BaseException | None:
        """Let the next attempt restore an older checkpoint. Returns the error if the job may not go back (I16)."""
        self._receiver.drop_held()
        try:
            self._checkpointing.failed(str(damage))
            self._checkpointing.go_back(damage)
        except RekindleError as refusal:
            self._tell_failure(refusal)
            return refusal
        self._events.emit(AttemptFailed(damage, 0))
        self._move(JobStatus.RESTARTING)
        return None

    def _run_attempt(self) -> None:
        self._metrics.clear()
        self._cluster.prepare(self._cancelled)
        attempt = Attempt(self._attempt_spec())
        with self._lock:
            self._attempt = attempt
        if self._cancelled.is_set():
            attempt.cancel()
        try:
            attempt.run(self._spec.dataframes())
        finally:
            self._accumulators = attempt.accumulators
            self._metrics.update(attempt.last_metrics)
            self._events.emit(SlotsClosed(self._accumulators, attempt.last_metrics))

    def _end_lifelines(self) -> None:
        if self._lifelines is not None:
            self._lifelines.close()

    def _attempt_spec(self) -> AttemptSpec:
        spec = self._spec
        if self._lifelines is None and spec.plan.settings.keeps_local_copies:
            self._lifelines = JobLifelines(self._cluster.driver_host(), spec.environment.tls)
        restarts = self._restarts
        self._restarts += 1
        return AttemptSpec(
            spec.plan,
            spec.program,
            spec.environment,
            spec.checkpointing,
            self._cluster,
            receiver=self._receiver,
            starting_splits=self._starting_splits,
            restarts=restarts,
            lifelines=self._lifelines,
        )

    def _move(self, status: JobStatus) -> None:
        assert may_follow(self._status, status), f"{self._status} -> {status}"
        _LOG.info("Job '%s' (%s): %s", self._spec.plan.job_name, self.job_id, status.name)
        self._status = status
        self._events.emit(StatusEntered(status))
