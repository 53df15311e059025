"""What the checkpoints took: per checkpoint, task, subtask and operator, as Flink's REST API shows it.

Frozen values, and a recorder that the shell tells what happens. Only the trigger's wall clock is read: every later
timestamp is that plus the monotonic time since, so that timestamps and durations agree whatever the wall clock does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from rekindle.coordinator.checkpoint_types import (
    CheckpointKind,
)

DEFAULT_HISTORY = 10
#: Percentiles look at so many of the last completed checkpoints; minimum, maximum and average at all.
_WINDOW = 10_000


class CheckpointStatus(Enum):
    """Flink's names."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


# -- numbers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """Minimum, maximum, average and percentiles; NaN where there is nothing to take a percentile of."""

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
        """Of a few values, such as those of subtasks: Flink takes no percentiles there.

        >>> summary = Summary.of([4643, 4692])
        >>> summary.min, summary.max, summary.avg, summary.p50
        (4643, 4692, 4667, nan)
        """
        return Summary(min(values), max(values), sum(values) // len(values)) if values else Summary()


#: What Flink shows for alignment buffers, which it no longer has.
NO_BUFFERS = Summary(p50=0.0, p90=0.0, p95=0.0, p99=0.0, p999=0.0)


def percentile(ordered: Sequence[int], percent: float) -> float:
    """A percentile as Flink's histograms estimate it: at position percent * (n + 1), between its neighbours.

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


class _Running:
    """A summary that grows; bounded."""

    def __init__(self) -> None:
        self._count = self._sum = self._min = self._max = 0
        self._recent: deque[int] = deque(maxlen=_WINDOW)

    def add(self, value: int) -> None:
        self._min = value if self._count == 0 else min(self._min, value)
        self._max = max(self._max, value)
        self._count += 1
        self._sum += value
        self._recent.append(value)

    def summary(self) -> Summary:
        ordered = sorted(self._recent)
        percentiles = [percentile(ordered, percent) for percent in (50.0, 90.0, 95.0, 99.0, 99.9)]
        average = self._sum // self._count if self._count else 0
        return Summary(self._min, self._max, average, *percentiles)


# -- what is known about a checkpoint ---------------------------------------------------------------------------------


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
    """What a subtask reports with its acknowledgement. Sizes: written by this checkpoint, and in full."""

    index: int
    start_delay_ms: int = 0  # from the trigger until the barrier arrived
    sync_duration_ms: int = 0
    async_duration_ms: int = 0
    checkpointed_size: int = 0
    state_size: int = 0
    processed_data: int = 0
    persisted_data: int = 0
    alignment_duration_ms: int = 0  # the end of an epoch waits for nothing (I19)
    operators: tuple[OperatorSnapshot, ...] = ()


@dataclass(frozen=True)
class SubtaskStatistics:
    """A subtask that has acknowledged."""

    snapshot: SubtaskSnapshot
    ack_timestamp_ms: int
    end_to_end_duration_ms: int


@dataclass(frozen=True)
class TaskSummary:
    """The spread over the subtasks of a task."""

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
        """How many subtasks have acknowledged."""
        return len(self.acknowledged)

    @property
    def latest_ack_timestamp_ms(self) -> int:
        """When the last acknowledgement came; -1 before the first."""
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
        """The spread over the subtasks."""
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
        """After an acknowledgement; a repeated one changes nothing."""
        at = subtask.snapshot.index
        if self.subtasks[at] is not None:
            return self
        return replace(self, subtasks=(*self.subtasks[:at], subtask, *self.subtasks[at + 1 :]))


@dataclass(frozen=True)
class CheckpointStatistics(_Totals):
    """One checkpoint, in progress or over."""

    id: int
    kind: CheckpointKind
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
        """How many subtasks have to acknowledge."""
        return sum(task.num_subtasks for task in self.tasks)

    @property
    def is_savepoint(self) -> bool:
        """Whether it belongs to the user."""
        return self.kind.is_savepoint

    @property
    def checkpoint_type(self) -> Literal["CHECKPOINT", "SAVEPOINT", "SYNC_SAVEPOINT"]:
        """Flink's name of the kind; a bounded job's final checkpoint is one like the others there."""
        if self.kind is CheckpointKind.SAVEPOINT:
            return "SAVEPOINT"
        return "SYNC_SAVEPOINT" if self.kind is CheckpointKind.STOP else "CHECKPOINT"

    @property
    def end_to_end_duration_ms(self) -> int:
        """From the trigger to the last acknowledgement, or to the failure; -1 before either."""
        if self.failure_timestamp_ms is not None:
            return self.failure_timestamp_ms - self.trigger_timestamp_ms
        return max((task.end_to_end_duration_ms for task in self.tasks), default=-1)

    def task(self, vertex_id: str) -> TaskStatistics | None:
        """The task of that id."""
        return next((each for each in self.tasks if each.vertex_id == vertex_id), None)


@dataclass(frozen=True)
class RestoredCheckpoint:
    """The checkpoint that the current attempt began with."""

    id: int
    restore_timestamp_ms: int
    is_savepoint: bool
    external_path: str | None


@dataclass(frozen=True)
class CheckpointCounts:
    """How many checkpoints there were, by what became of them."""

    restored: int = 0
    total: int = 0
    in_progress: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True)
class CompletedSummary:
    """The spread over the completed checkpoints and savepoints."""

    checkpointed_size: Summary
    state_size: Summary
    end_to_end_duration_ms: Summary
    processed_data: Summary
    persisted_data: Summary
    alignment_buffered: Summary = NO_BUFFERS


@dataclass(frozen=True)
class CheckpointOverview:
    """Everything at one moment; `history` newest first."""

    counts: CheckpointCounts
    summary: CompletedSummary
    history: tuple[CheckpointStatistics, ...]
    latest_completed: CheckpointStatistics | None
    latest_savepoint: CheckpointStatistics | None
    latest_failed: CheckpointStatistics | None
    latest_restored: RestoredCheckpoint | None

    def find(self, checkpoint_id: int) -> CheckpointStatistics | None:
        """A checkpoint of the history, or one of the latest."""
        known = (*self.history, self.latest_completed, self.latest_savepoint, self.latest_failed)
        return next((each for each in known if each is not None and each.id == checkpoint_id), None)


_Latest = Literal["completed", "savepoint", "failed"]


# -- the recorder -----------------------------------------------------------------------------------------------------


class CheckpointRecorder:
    """Collects the statistics of a job; what it remembers is bounded. Not safe for threads: call it under a lock.

    >>> recorder = CheckpointRecorder({"vertex": 1})
    >>> recorder.triggered(1, CheckpointKind.CHECKPOINT, now_ms=100, wall_ms=5000)
    >>> recorder.acknowledged(1, "vertex", SubtaskSnapshot(0, state_size=70, checkpointed_size=7), now_ms=130)
    >>> recorder.completed(1, "file:/chk-1")
    >>> overview = recorder.overview()
    >>> overview.history[0].end_to_end_duration_ms, overview.summary.state_size.avg, overview.counts.completed
    (30, 70, 1)
    """

    def __init__(self, parallelism: Mapping[str, int], history: int = DEFAULT_HISTORY) -> None:
        self._parallelism = dict(parallelism)
        self._limit = history
        self._counts = CheckpointCounts()
        self._started_ms: dict[int, float] = {}  # in progress -> when it was triggered, monotonic
        self._in_progress: dict[int, CheckpointStatistics] = {}
        self._history: dict[int, CheckpointStatistics] = {}  # oldest first
        self._latest: dict[_Latest, CheckpointStatistics] = {}
        self._restored: RestoredCheckpoint | None = None
        self._sizes, self._full_sizes, self._durations = _Running(), _Running(), _Running()
        self._processed, self._persisted = _Running(), _Running()

    def triggered(
        self, checkpoint_id: int, kind: CheckpointKind, now_ms: float, wall_ms: int, savepoint_format: str | None = None
    ) -> None:
        """A checkpoint sets out."""
        tasks = tuple(TaskStatistics(vertex, (None,) * count) for vertex, count in self._parallelism.items())
        self._started_ms[checkpoint_id] = now_ms
        self._keep(
            CheckpointStatistics(
                checkpoint_id, kind, CheckpointStatus.IN_PROGRESS, wall_ms, tasks, savepoint_format=savepoint_format
            )
        )
        self._count(total=1, in_progress=1)

    def acknowledged(self, checkpoint_id: int, vertex_id: str, snapshot: SubtaskSnapshot, now_ms: float) -> None:
        """A subtask has acknowledged; for a checkpoint that is over this means nothing."""
        checkpoint = self._in_progress.get(checkpoint_id)
        if checkpoint is None:
            return
        elapsed_ms = self._elapsed_ms(checkpoint_id, now_ms)
        subtask = SubtaskStatistics(snapshot, checkpoint.trigger_timestamp_ms + elapsed_ms, elapsed_ms)
        tasks = tuple(task.with_subtask(subtask) if task.vertex_id == vertex_id else task for task in checkpoint.tasks)
        self._keep(replace(checkpoint, tasks=tasks))

    def completed(self, checkpoint_id: int, external_path: str) -> None:
        """Its `_metadata` is published."""
        checkpoint = self._over(
            replace(self._in_progress[checkpoint_id], status=CheckpointStatus.COMPLETED, external_path=external_path)
        )
        self._now_latest("savepoint" if checkpoint.is_savepoint else "completed", checkpoint)
        self._count(in_progress=-1, completed=1)
        for running, value in (
            (self._sizes, checkpoint.checkpointed_size),
            (self._full_sizes, checkpoint.state_size),
            (self._durations, checkpoint.end_to_end_duration_ms),
            (self._processed, checkpoint.processed_data),
            (self._persisted, checkpoint.persisted_data),
        ):
            running.add(value)

    def failed(self, checkpoint_id: int, message: str, now_ms: float) -> None:
        """It was aborted."""
        checkpoint = self._in_progress[checkpoint_id]
        failed = replace(
            checkpoint,
            status=CheckpointStatus.FAILED,
            failure_timestamp_ms=checkpoint.trigger_timestamp_ms + self._elapsed_ms(checkpoint_id, now_ms),
            failure_message=message,
        )
        self._now_latest("failed", self._over(failed))
        self._count(in_progress=-1, failed=1)

    def refused(self) -> None:
        """A request came to nothing before there was a checkpoint."""
        self._count(total=1, failed=1)

    def restored(self, checkpoint_id: int, is_savepoint: bool, external_path: str | None, wall_ms: int) -> None:
        """An attempt begins with this checkpoint."""
        self._restored = RestoredCheckpoint(checkpoint_id, wall_ms, is_savepoint, external_path)
        self._count(restored=1)

    def discarded(self, checkpoint_ids: Iterable[int]) -> None:
        """These were deleted."""
        for checkpoint_id in checkpoint_ids:
            if checkpoint_id in self._history:
                self._history[checkpoint_id] = replace(self._history[checkpoint_id], discarded=True)
            for name, latest in self._latest.items():
                if latest.id == checkpoint_id:
                    self._latest[name] = replace(latest, discarded=True)

    def overview(self) -> CheckpointOverview:
        """Everything as it is now."""
        return CheckpointOverview(
            counts=self._counts,
            summary=CompletedSummary(
                checkpointed_size=self._sizes.summary(),
                state_size=self._full_sizes.summary(),
                end_to_end_duration_ms=self._durations.summary(),
                processed_data=self._processed.summary(),
                persisted_data=self._persisted.summary(),
            ),
            history=tuple(reversed(self._history.values())),
            latest_completed=self._latest.get("completed"),
            latest_savepoint=self._latest.get("savepoint"),
            latest_failed=self._latest.get("failed"),
            latest_restored=self._restored,
        )

    def _elapsed_ms(self, checkpoint_id: int, now_ms: float) -> int:
        return max(0, round(now_ms - self._started_ms[checkpoint_id]))

    def _keep(self, checkpoint: CheckpointStatistics) -> None:
        """In the history as long as there is room; the oldest go first, whatever they are."""
        self._in_progress[checkpoint.id] = checkpoint
        newest = max(self._history, default=0)
        if checkpoint.id in self._history or checkpoint.id > newest:
            self._history[checkpoint.id] = checkpoint
        while len(self._history) > self._limit:
            del self._history[next(iter(self._history))]

    def _over(self, checkpoint: CheckpointStatistics) -> CheckpointStatistics:
        self._keep(checkpoint)
        del self._in_progress[checkpoint.id], self._started_ms[checkpoint.id]
        return checkpoint

    def _now_latest(self, name: _Latest, checkpoint: CheckpointStatistics) -> None:
        """The latest is the one with the highest id: a savepoint may take longer than the next one."""
        known = self._latest.get(name)
        if known is None or known.id < checkpoint.id:
            self._latest[name] = checkpoint

    def _count(self, **more: int) -> None:
        current = self._counts
        self._counts = replace(current, **{name: getattr(current, name) + change for name, change in more.items()})
