"""The read model of a running job: hears of the job's life, and gives views of it to any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rekindle.clock import Clock
from rekindle.common.checkpoint_statistics import CheckpointOverview, CheckpointStatistics, CheckpointStatus
from rekindle.common.job_status import JobStatus
from rekindle.common.secret_settings import shown
from rekindle.coordinator.epoch_rules import EpochSummary
from rekindle.coordinator.job_events import (
    AttemptEntered,
    AttemptFailed,
    CheckpointChanged,
    EpochCounted,
    JobEvent,
    LinePrinted,
    SlotAlive,
    SlotsClosed,
    SlotsConnected,
    StatusEntered,
)
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.graph.nodes import JobPlan
from rekindle.metrics import MetricReading
from rekindle.monitor.failure_book import FailureBook
from rekindle.monitor.job_view import NO_CHECKPOINTS, AccumulatorView, CheckpointPoint, EpochView, JobView
from rekindle.monitor.plan_views import checkpoint_config_of, edges_of, vertices_of
from rekindle.monitor.slot_book import SlotBook
from rekindle.monitor.task_book import TaskBook
from rekindle.protocol import LogLine, SlotHeartbeat, SlotHello

#: The number of epochs, and of points of checkpoints, that are kept.
_EPOCHS = 300
_POINTS = 300
#: The status in which Flink's jobs begin.
_FIRST = "INITIALIZING"


class JobRecorder:
    """Records what happens to a job; bounded. `version` changes with every change that a page shows.

    The job's threads never wait for a reader longer than it takes to copy a few lists.
    """

    def __init__(
        self,
        job_id: str,
        plan: JobPlan,
        clock: Clock,
        restart_strategy: str = "",
        failures: int = 16,
        *,
        checkpoints: Callable[[], CheckpointOverview] = lambda: NO_CHECKPOINTS,
        spark_url: str | None = None,
    ) -> None:
        self.version = 0
        #: Gives the statistics of the checkpoints.
        self._checkpoints = checkpoints
        self._spark_url = spark_url
        self._lock = threading.Lock()
        self._job_id, self._plan, self._clock = job_id, plan, clock
        self._restart_strategy = restart_strategy
        self._vertices, self._edges = vertices_of(plan), edges_of(plan)
        self._config = checkpoint_config_of(plan)
        parameters = plan.settings.global_job_parameters
        self._parameters = {str(name): shown(str(name), str(value)) for name, value in parameters.items()}
        self._started_ms = clock.wall_ms()
        self._status = JobStatus.CREATED.name
        self._entered_ms: dict[str, int] = {_FIRST: self._started_ms, self._status: self._started_ms}
        self._spent_ms: dict[str, int] = {}
        self._ended_ms = -1
        self._attempt, self._restarts = 0, 0
        self._tasks = TaskBook(plan, clock)
        self._slots = SlotBook(plan.slots)
        self._failures = FailureBook(plan, failures, self._slots.id_of)
        self._epochs: deque[EpochView] = deque(maxlen=_EPOCHS)
        self._points: deque[CheckpointPoint] = deque(maxlen=_POINTS)
        self._records_in = self._records_out = 0
        self._readings: dict[tuple[str, int, str], MetricReading] = {}
        self._accumulators: list[AccumulatorView] = []

    # -- the job's life -----------------------------------------------------------------------------------------------

    def on_event(self, event: JobEvent) -> None:
        """Record an event."""
        match event:
            case StatusEntered(status):
                self._enter_status(status)
            case AttemptEntered(number, state):
                self._enter_attempt(number, state)
            case SlotsConnected(slots):
                self._connect(slots)
            case EpochCounted(summary):
                self._count(summary)
            case LinePrinted(slot, line):
                self._line(slot, line)
            case SlotAlive(slot, heartbeat):
                self._heartbeat(slot, heartbeat)
            case CheckpointChanged(checkpoint):
                self._checkpoint(checkpoint)
            case AttemptFailed(error, restart_in_ms):
                self._fail(error, restart_in_ms)
            case SlotsClosed(accumulators, metrics):
                self._close(accumulators, metrics)

    def _enter_status(self, status: JobStatus) -> None:
        now_ms = self._clock.wall_ms()
        with self._lock:
            spent = now_ms - self._entered_ms.get(self._status, now_ms)
            self._spent_ms[self._status] = self._spent_ms.get(self._status, 0) + spent
            self._status = status.name
            self._entered_ms[status.name] = now_ms
            if status.is_globally_terminal_state():
                self._ended_ms = now_ms
            self.version += 1

    def _enter_attempt(self, number: int, state: AttemptState) -> None:
        with self._lock:
            self._attempt = number or self._attempt
            if state is AttemptState.ACQUIRING:
                self._readings = {}
                self._slots.begin()
            self._tasks.attempt_entered(state)
            self.version += 1

    def _connect(self, slots: Sequence[SlotHello]) -> None:
        with self._lock:
            self._slots.connected(slots, self._clock.wall_ms())
            self.version += 1

    def _count(self, summary: EpochSummary) -> None:
        with self._lock:
            self._tasks.epoch(summary)
            self._records_in += summary.records_in
            self._records_out += summary.records_out
            self._readings.update(((each.uid, each.subtask, each.name), each) for each in summary.metrics)
            self._epochs.append(_epoch(summary, self._clock.wall_ms()))
            self.version += 1

    def _line(self, slot: int, line: LogLine) -> None:
        with self._lock:
            self._slots.line(slot, line, self._clock.wall_ms())

    def _heartbeat(self, slot: int, heartbeat: SlotHeartbeat) -> None:
        with self._lock:
            self._slots.heartbeat(slot, heartbeat, self._clock.wall_ms())

    def _checkpoint(self, checkpoint: CheckpointStatistics) -> None:
        with self._lock:
            if checkpoint.status is not CheckpointStatus.IN_PROGRESS:
                self._points.append(_point(checkpoint))
            self.version += 1

    def _fail(self, error: BaseException, restart_in_ms: int | None) -> None:
        now_ms = self._clock.wall_ms()
        with self._lock:
            self._failures.add(error, now_ms, self._attempt, self._restarts, restart_in_ms)
            self._tasks.failed(self._failures.chain_of(error), error)
            self._restarts += restart_in_ms is not None
            self.version += 1

    def _close(self, accumulators: Mapping[str, Any], metrics: Sequence[MetricReading]) -> None:
        with self._lock:
            self._readings.update(((each.uid, each.subtask, each.name), each) for each in metrics)
            self._accumulators = [_accumulator(name, value) for name, value in accumulators.items()]
            self.version += 1

    # -- views --------------------------------------------------------------------------------------------------------

    @property
    def job_name(self) -> str:
        """The job's name."""
        return self._plan.job_name

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self._ended_ms >= 0

    def view(self, *, log_lines: int = 0) -> JobView:
        """The job as of now, with the last lines of each slot; safe from any thread."""
        checkpoints = self._checkpoints()
        with self._lock:
            return JobView(
                job_id=self._job_id,
                name=self._plan.job_name,
                mode="BATCH" if self._plan.batch else "STREAMING",
                status=self._status,
                taken_ms=self._clock.wall_ms(),
                started_ms=self._started_ms,
                ended_ms=self._ended_ms,
                entered_ms=dict(self._entered_ms),
                spent_ms=dict(self._spent_ms),
                parallelism=max((chain.parallelism for chain in self._plan.chains), default=1),
                object_reuse=self._plan.settings.object_reuse,
                restart_strategy=self._restart_strategy,
                parameters=self._parameters,
                checkpoint_config=self._config,
                vertices=self._tasks.vertices(self._vertices),
                edges=self._tasks.edges(self._edges),
                attempt=self._attempt,
                restarts=self._restarts,
                slots=self._slots.views(log_lines),
                checkpoints=checkpoints,
                checkpoint_trend=list(self._points),
                failures=self._failures.views(),
                failure_count=self._failures.count,
                epochs=list(self._epochs),
                records_in=self._records_in,
                records_out=self._records_out,
                metrics=list(self._readings.values()),
                accumulators=self._accumulators,
                spark_url=self._spark_url,
            )


def _epoch(summary: EpochSummary, now_ms: int) -> EpochView:
    return EpochView(
        epoch=summary.epoch,
        ended_ms=now_ms,
        duration_ms=summary.duration_ms,
        records_in=summary.records_in,
        records_out=summary.records_out,
        work_ms=summary.work_ms,
        watermark=summary.watermark,
        in_flight=summary.in_flight,
    )


def _point(checkpoint: CheckpointStatistics) -> CheckpointPoint:
    return CheckpointPoint(
        id=checkpoint.id,
        triggered_ms=checkpoint.trigger_timestamp_ms,
        duration_ms=checkpoint.end_to_end_duration_ms,
        size=checkpoint.checkpointed_size,
        full_size=checkpoint.state_size,
        status=checkpoint.status.value,
        is_savepoint=checkpoint.is_savepoint,
    )


def _accumulator(name: str, value: Any) -> AccumulatorView:
    return AccumulatorView(name=name, type=type(value).__name__, value=str(value))
