"""One moment of a job as plain, frozen data, which the REST API, the page, metrics and the history show.

Times are milliseconds since 1970; -1 and 0 mean "not yet", as in Flink's answers.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from rekindle.common.checkpoint_statistics import (
    CheckpointCounts,
    CheckpointOverview,
    CompletedSummary,
    Summary,
)
from rekindle.metrics import MetricReading

#: The states of a task, under Flink's names.
TASK_STATES = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
)
#: The states in which a task is over.
ENDED_TASK_STATES = frozenset({"FINISHED", "CANCELED", "FAILED"})
#: The states in which a job is over.
ENDED_JOB_STATES = frozenset({"FINISHED", "CANCELED", "FAILED"})
#: The watermark of an operator that has seen none.
NO_WATERMARK = -(2**63)


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parts of a view."""


class TaskFigures(View, frozen=True, kw_only=True):
    """The work of a subtask in its current attempt."""

    records_in: int = 0
    records_out: int = 0
    records_sunk: int = 0
    #: Records that wait in front of the task because the epoch's time was over.
    in_flight: int = 0
    busy_ms: float = 0.0
    back_pressured_ms: float = 0.0
    idle_ms: float = 0.0
    in_per_s: float = 0.0
    out_per_s: float = 0.0
    sunk_per_s: float = 0.0
    busy_ms_per_s: float = 0.0
    back_pressured_ms_per_s: float = 0.0
    idle_ms_per_s: float = 0.0
    input_watermark: int = NO_WATERMARK
    output_watermark: int = NO_WATERMARK


class OperatorFigures(View, frozen=True, kw_only=True):
    """The records of one operator in one subtask."""

    uid: str
    records_in: int = 0
    records_out: int = 0
    in_per_s: float = 0.0
    out_per_s: float = 0.0


class SubtaskView(View, frozen=True, kw_only=True):
    """One subtask of a task."""

    index: int
    slot: int
    status: str = "CREATED"
    #: When it entered each state in this attempt.
    entered_ms: dict[str, int] = {}
    figures: TaskFigures = TaskFigures()
    operators: list[OperatorFigures] = []


class OperatorView(View, frozen=True, kw_only=True):
    """An operator of a task."""

    uid: str
    name: str
    description: str
    #: The uid that the user gave it.
    user_uid: str | None = None


class VertexView(View, frozen=True, kw_only=True):
    """A task: operators that run as one, its head first."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    stage: int
    slot_sharing_group: str
    operators: list[OperatorView]
    subtasks: list[SubtaskView] = []


class EdgeView(View, frozen=True, kw_only=True):
    """An exchange between two tasks."""

    source: str
    target: str
    ship_strategy: str
    records: int = 0
    per_s: float = 0.0


class LogLineView(View, frozen=True, kw_only=True):
    """A line that a slot printed or logged."""

    at_ms: int
    stream: str
    source: str
    text: str
    level: int = 0


class SlotView(View, frozen=True, kw_only=True):
    """A slot: a process that hosts one subtask of each task."""

    index: int
    #: Unique over all attempts; Flink's task managers have such ids.
    id: str
    host: str
    pid: int
    started_ms: int
    last_heartbeat_ms: int
    memory_bytes: int = 0
    cpu_s: float = 0.0
    log: list[LogLineView] = []


class FailureView(View, frozen=True, kw_only=True):
    """A failure of the job, and what followed."""

    at_ms: int
    #: The exception's type.
    name: str
    #: The user's own traceback first.
    message: str
    attempt: int
    restarts: int
    #: When the job restarted or was to restart; None: it did not.
    restart_in_ms: int | None = None
    task: str | None = None
    vertex: str | None = None
    operator: str | None = None
    subtask: int | None = None
    record: str | None = None
    slot: str | None = None
    host: str | None = None


class EpochView(View, frozen=True, kw_only=True):
    """An epoch that counted."""

    epoch: int
    ended_ms: int
    duration_ms: float
    records_in: int
    records_out: int
    work_ms: float
    watermark: int | None = None
    in_flight: int = 0


class AccumulatorView(View, frozen=True, kw_only=True):
    """An accumulator of the job."""

    name: str
    type: str
    value: str


class CheckpointPoint(View, frozen=True, kw_only=True):
    """A checkpoint that is over, in short: for figures over a longer time than the history has."""

    id: int
    triggered_ms: int
    duration_ms: int
    size: int
    full_size: int
    status: str
    is_savepoint: bool


class CheckpointConfigView(View, frozen=True, kw_only=True):
    """The settings of checkpoints."""

    interval_ms: int
    timeout_ms: int
    min_pause_ms: int
    max_concurrent: int
    tolerable_failures: int
    externalized: bool
    delete_on_cancellation: bool
    state_backend: Literal["HashMapStateBackend", "EmbeddedRocksDBStateBackend"]
    storage: Literal["JobManagerCheckpointStorage", "FileSystemCheckpointStorage"]
    unaligned: bool
    aligned_timeout_ms: int
    directory: str | None = None
    savepoint_directory: str | None = None


NO_CHECKPOINTS = CheckpointOverview(
    CheckpointCounts(),
    CompletedSummary(Summary(), Summary(), Summary(), Summary(), Summary()),
    (),
    None,
    None,
    None,
    None,
)


class JobView(View, frozen=True, kw_only=True):
    """A job at one moment."""

    job_id: str
    name: str
    mode: Literal["STREAMING", "BATCH"]
    status: str
    #: The moment of this view.
    taken_ms: int
    started_ms: int
    ended_ms: int = -1
    #: When the job entered each status.
    entered_ms: dict[str, int] = {}
    #: How long it was in each status, those of earlier attempts included.
    spent_ms: dict[str, int] = {}
    parallelism: int = 1
    object_reuse: bool = False
    restart_strategy: str = ""
    parameters: dict[str, str] = {}
    checkpoint_config: CheckpointConfigView
    vertices: list[VertexView] = []
    edges: list[EdgeView] = []
    #: The number of the current attempt, counted over all drivers, and the restarts of this driver.
    attempt: int = 0
    restarts: int = 0
    slots: list[SlotView] = []
    checkpoints: CheckpointOverview = NO_CHECKPOINTS
    checkpoint_trend: list[CheckpointPoint] = []
    failures: list[FailureView] = []
    #: The number of all failures, also of those that are not kept.
    failure_count: int = 0
    epochs: list[EpochView] = []
    records_in: int = 0
    records_out: int = 0
    metrics: list[MetricReading] = []
    accumulators: list[AccumulatorView] = []
    #: Where Spark's own page of the job is.
    spark_url: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self.status in ENDED_JOB_STATES

    @property
    def now_ms(self) -> int:
        """The time until which durations count."""
        return self.ended_ms if self.ended_ms >= 0 else self.taken_ms

    def vertex(self, vertex_id: str) -> VertexView | None:
        """The task with this id; None when there is none."""
        return next((each for each in self.vertices if each.id == vertex_id), None)

    def last_good_checkpoint_ms(self) -> int | None:
        """When the checkpoint from which a restart begins was triggered; None: there is none."""
        completed = self.checkpoints.latest_completed
        triggered = [completed.trigger_timestamp_ms] if completed is not None else []
        stopped = self.checkpoints.latest_savepoint
        if stopped is not None and stopped.checkpoint_type == "SYNC_SAVEPOINT":
            triggered.append(stopped.trigger_timestamp_ms)
        return max(triggered, default=None)
