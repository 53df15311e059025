"""Statistics of checkpoints, per checkpoint, task, subtask and operator, as Flink's REST API shows them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

#: Flink's names for the kinds; the final checkpoint of a bounded job is a CHECKPOINT too.
CheckpointType = Literal["CHECKPOINT", "SAVEPOINT", "SYNC_SAVEPOINT"]


class CheckpointStatus(Enum):
    """The status of a checkpoint, under Flink's names."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


# -- numbers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """Minimum, maximum, average and percentiles; a percentile is NaN where none was taken."""

    min: int = 0
    max: int = 0
    avg: int = 0
    p50: float = math.nan
    p90: float = math.nan
    p95: float = math.nan
    p99: float = math.nan
    p999: float = math.nan

    @staticmethod
    def of(values: Sequence[int]) -> Summary:
        """Summarize a few values, such as those of subtasks, without percentiles, as Flink does.

        >>> summary = Summary.of([4643, 4692])
        >>> summary.min, summary.max, summary.avg, summary.p50
        (4643, 4692, 4667, nan)
        """
        return Summary(min(values), max(values), sum(values) // len(values)) if values else Summary()


#: Flink's REST API still shows alignment buffers, which Flink no longer has.
NO_BUFFERS = Summary(p50=0.0, p90=0.0, p95=0.0, p99=0.0, p999=0.0)


def percentile(ordered: Sequence[int], percent: float) -> float:
    """A percentile as Flink's histograms estimate it: interpolated at position percent * (n + 1) / 100.

    >>> percentile([10, 20, 30], 50), percentile([10, 20, 30], 99.9)
    (20.0, 30.0)
    """
    count = len(ordered)
    if count == 0:
        return math.nan
    position = percent * (count + 1) / 100
    if position < 1:
        return float(ordered[0])
    if position >= count:
        return float(ordered[-1])
    below = math.floor(position)
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])


# -- checkpoints, tasks, subtasks, operators --------------------------------------------------------------------------


@dataclass(frozen=True)
class OperatorSnapshot:
    """One operator's part of a subtask's snapshot."""

    operator: str
    checkpointed_size: int = 0
    state_size: int = 0
    sync_duration_ms: int = 0
    async_duration_ms: int = 0


@dataclass(frozen=True)
class SubtaskSnapshot:
    """Figures that a subtask reports with its acknowledgement.

    `checkpointed_size` is what this checkpoint wrote, `state_size` the full state.
    """

    index: int
    start_delay_ms: int = 0  # from the trigger until the barrier arrived
    sync_duration_ms: int = 0
    async_duration_ms: int = 0
    checkpointed_size: int = 0
    state_size: int = 0
    processed_data: int = 0
    persisted_data: int = 0
    alignment_duration_ms: int = 0  # always 0: the end of an epoch waits for nothing (I19)
    operators: tuple[OperatorSnapshot, ...] = ()


@dataclass(frozen=True)
class SubtaskStatistics:
    """A subtask that has acknowledged."""

    snapshot: SubtaskSnapshot
    ack_timestamp_ms: int
    end_to_end_duration_ms: int


@dataclass(frozen=True)
class TaskSummary:
    """Minimum, maximum and average of each figure over the subtasks of a task."""

    checkpointed_size: Summary
    state_size: Summary
    end_to_end_duration_ms: Summary
    sync_duration_ms: Summary
    async_duration_ms: Summary
    processed_data: Summary
    persisted_data: Summary
    alignment_duration_ms: Summary
    start_delay_ms: Summary


class _Totals(ABC):
    """Sums over acknowledged subtasks, for a task and for a whole checkpoint."""

    @property
    @abstractmethod
    def acknowledged(self) -> tuple[SubtaskStatistics, ...]:
        """The subtasks that have acknowledged."""

    @property
    def num_acknowledged_subtasks(self) -> int:
        """The number of subtasks that have acknowledged."""
        return len(self.acknowledged)

    @property
    def latest_ack_timestamp_ms(self) -> int:
        """The time of the last acknowledgement; -1 before the first."""
        return max((each.ack_timestamp_ms for each in self.acknowledged), default=-1)

    @property
    def checkpointed_size(self) -> int:
        """Bytes that this checkpoint wrote."""
        return sum(each.snapshot.checkpointed_size for each in self.acknowledged)

    @property
    def state_size(self) -> int:
        """Bytes that a restore reads."""
        return sum(each.snapshot.state_size for each in self.acknowledged)

    @property
    def processed_data(self) -> int:
        """Bytes processed while barriers were aligned."""
        return sum(each.snapshot.processed_data for each in self.acknowledged)

    @property
    def persisted_data(self) -> int:
        """Bytes in flight that were persisted."""
        return sum(each.snapshot.persisted_data for each in self.acknowledged)


@dataclass(frozen=True)
class TaskStatistics(_Totals):
    """One task (a chain) of a checkpoint; `subtasks[i]` is None until subtask i has acknowledged."""

    vertex_id: str
    subtasks: tuple[SubtaskStatistics | None, ...]

    @property
    def acknowledged(self) -> tuple[SubtaskStatistics, ...]:
        """The subtasks that have acknowledged."""
        return tuple(each for each in self.subtasks if each is not None)

    @property
    def num_subtasks(self) -> int:
        """The task's parallelism."""
        return len(self.subtasks)

    @property
    def end_to_end_duration_ms(self) -> int:
        """From the trigger to the last acknowledgement; -1 before the first."""
        return max((each.end_to_end_duration_ms for each in self.acknowledged), default=-1)

    @property
    def summary(self) -> TaskSummary:
        """Minimum, maximum and average of each figure over the acknowledged subtasks."""
        snapshots = [each.snapshot for each in self.acknowledged]
        return TaskSummary(
            checkpointed_size=Summary.of([each.checkpointed_size for each in snapshots]),
            state_size=Summary.of([each.state_size for each in snapshots]),
            end_to_end_duration_ms=Summary.of([each.end_to_end_duration_ms for each in self.acknowledged]),
            sync_duration_ms=Summary.of([each.sync_duration_ms for each in snapshots]),
            async_duration_ms=Summary.of([each.async_duration_ms for each in snapshots]),
            processed_data=Summary.of([each.processed_data for each in snapshots]),
            persisted_data=Summary.of([each.persisted_data for each in snapshots]),
            alignment_duration_ms=Summary.of([each.alignment_duration_ms for each in snapshots]),
            start_delay_ms=Summary.of([each.start_delay_ms for each in snapshots]),
        )

    def with_subtask(self, subtask: SubtaskStatistics) -> TaskStatistics:
        """The statistics after a subtask's acknowledgement; a repeated one changes nothing."""
        at = subtask.snapshot.index
        if self.subtasks[at] is not None:
            return self
        return replace(self, subtasks=(*self.subtasks[:at], subtask, *self.subtasks[at + 1 :]))


@dataclass(frozen=True)
class CheckpointStatistics(_Totals):
    """One checkpoint, in progress or over."""

    id: int
    checkpoint_type: CheckpointType
    status: CheckpointStatus
    trigger_timestamp_ms: int
    tasks: tuple[TaskStatistics, ...]
    savepoint_format: str | None = None
    external_path: str | None = None  # COMPLETED
    discarded: bool = False  # COMPLETED
    failure_timestamp_ms: int | None = None  # FAILED
    failure_message: str | None = None  # FAILED

    @property
    def acknowledged(self) -> tuple[SubtaskStatistics, ...]:
        """The subtasks, of all tasks, that have acknowledged."""
        return tuple(each for task in self.tasks for each in task.acknowledged)

    @property
    def num_subtasks(self) -> int:
        """The number of subtasks that have to acknowledge."""
        return sum(task.num_subtasks for task in self.tasks)

    @property
    def is_savepoint(self) -> bool:
        """Whether it is a savepoint, which belongs to the user."""
        return self.checkpoint_type != "CHECKPOINT"

    @property
    def end_to_end_duration_ms(self) -> int:
        """From the trigger to the last acknowledgement, or to the failure; -1 before either."""
        if self.failure_timestamp_ms is not None:
            return self.failure_timestamp_ms - self.trigger_timestamp_ms
        return max((task.end_to_end_duration_ms for task in self.tasks), default=-1)

    def task(self, vertex_id: str) -> TaskStatistics | None:
        """The task with this id; None when there is none."""
        return next((each for each in self.tasks if each.vertex_id == vertex_id), None)


@dataclass(frozen=True)
class RestoredCheckpoint:
    """The checkpoint that the current attempt started from."""

    id: int
    restore_timestamp_ms: int
    is_savepoint: bool
    external_path: str | None


@dataclass(frozen=True)
class CheckpointCounts:
    """The number of checkpoints by status."""

    restored: int = 0
    total: int = 0
    in_progress: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True)
class CompletedSummary:
    """Summary of each figure over the completed checkpoints and savepoints."""

    checkpointed_size: Summary
    state_size: Summary
    end_to_end_duration_ms: Summary
    processed_data: Summary
    persisted_data: Summary
    alignment_buffered: Summary = NO_BUFFERS


@dataclass(frozen=True)
class CheckpointOverview:
    """All statistics of a job at one moment; `history` is newest first."""

    counts: CheckpointCounts
    summary: CompletedSummary
    history: tuple[CheckpointStatistics, ...]
    latest_completed: CheckpointStatistics | None
    latest_savepoint: CheckpointStatistics | None
    latest_failed: CheckpointStatistics | None
    latest_restored: RestoredCheckpoint | None

    def find(self, checkpoint_id: int) -> CheckpointStatistics | None:
        """The checkpoint with this id, in the history or among the latest; None when it is in neither."""
        known = (*self.history, self.latest_completed, self.latest_savepoint, self.latest_failed)
        return next((each for each in known if each is not None and each.id == checkpoint_id), None)
