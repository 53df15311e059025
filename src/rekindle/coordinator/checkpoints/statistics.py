"""Statistics of checkpoints, as `JobClient.get_checkpoint_statistics` returns them; readable from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from rekindle import config
from rekindle.checkpoint.manifest import blob_size
from rekindle.common.checkpoint_statistics import (
    CheckpointCounts,
    CheckpointOverview,
    CheckpointStatistics,
    CheckpointStatus,
    CheckpointType,
    CompletedSummary,
    OperatorSnapshot,
    RestoredCheckpoint,
    SubtaskSnapshot,
    SubtaskStatistics,
    Summary,
    TaskStatistics,
    percentile,
)
from rekindle.coordinator.checkpoints.types import Aborted, CheckpointKind, CompletedCheckpoint, TriggerCheckpoint
from rekindle.coordinator.checkpoints.under_way import AcknowledgedSubtask
from rekindle.coordinator.job_events import CheckpointChanged
from rekindle.graph.nodes import JobPlan

#: Percentiles cover this many of the last completed checkpoints; minimum, maximum and average cover all.
_WINDOW = 10_000


def flink_type(kind: CheckpointKind) -> CheckpointType:
    """Flink's name of the kind.

    >>> flink_type(CheckpointKind.FINAL)
    'CHECKPOINT'
    """
    if kind is CheckpointKind.SAVEPOINT:
        return "SAVEPOINT"
    return "SYNC_SAVEPOINT" if kind is CheckpointKind.STOP else "CHECKPOINT"


class _RunningSummary:
    """A summary of values as they come; bounded."""

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


_Latest = Literal["completed", "savepoint", "failed"]


class CheckpointRecorder:
    """Records the statistics of a job's checkpoints; bounded. Not thread-safe.

    >>> recorder = CheckpointRecorder({"vertex": 1})
    >>> _ = recorder.triggered(1, CheckpointKind.CHECKPOINT, now_ms=100, wall_ms=5000)
    >>> recorder.acknowledged(1, "vertex", SubtaskSnapshot(0, state_size=70, checkpointed_size=7), now_ms=130)
    >>> recorder.completed(1, "file:/chk-1").state_size
    70
    >>> overview = recorder.overview()
    >>> overview.history[0].end_to_end_duration_ms, overview.summary.state_size.avg, overview.counts.completed
    (30, 70, 1)
    """

    def __init__(self, parallelism: Mapping[str, int], history: int = config.CHECKPOINT_HISTORY.default) -> None:
        self._parallelism = dict(parallelism)
        self._limit = history
        self._counts = CheckpointCounts()
        self._started_ms: dict[int, float] = {}  # of checkpoints in progress; monotonic
        self._in_progress: dict[int, CheckpointStatistics] = {}
        self._history: dict[int, CheckpointStatistics] = {}  # oldest first
        self._latest: dict[_Latest, CheckpointStatistics] = {}
        self._restored: RestoredCheckpoint | None = None
        self._sizes, self._full_sizes, self._durations = _RunningSummary(), _RunningSummary(), _RunningSummary()
        self._processed, self._persisted = _RunningSummary(), _RunningSummary()
        self._summary: CompletedSummary | None = None  # until the next checkpoint completes: it sorts many values

    def triggered(
        self, checkpoint_id: int, kind: CheckpointKind, now_ms: float, wall_ms: int, savepoint_format: str | None = None
    ) -> CheckpointStatistics:
        """A checkpoint was triggered."""
        tasks = tuple(TaskStatistics(vertex, (None,) * count) for vertex, count in self._parallelism.items())
        self._started_ms[checkpoint_id] = now_ms
        triggered = CheckpointStatistics(
            checkpoint_id, flink_type(kind), CheckpointStatus.IN_PROGRESS, wall_ms, tasks, savepoint_format
        )
        self._keep(triggered)
        self._count(total=1, in_progress=1)
        return triggered

    def acknowledged(self, checkpoint_id: int, vertex_id: str, snapshot: SubtaskSnapshot, now_ms: float) -> None:
        """A subtask has acknowledged; ignored unless the checkpoint is in progress."""
        checkpoint = self._in_progress.get(checkpoint_id)
        if checkpoint is None:
            return
        elapsed_ms = self._elapsed_ms(checkpoint_id, now_ms)
        subtask = SubtaskStatistics(snapshot, checkpoint.trigger_timestamp_ms + elapsed_ms, elapsed_ms)
        tasks = tuple(task.with_subtask(subtask) if task.vertex_id == vertex_id else task for task in checkpoint.tasks)
        self._keep(replace(checkpoint, tasks=tasks))

    def completed(self, checkpoint_id: int, external_path: str | None) -> CheckpointStatistics:
        """A checkpoint is published. `external_path`: the path from which a job restores it."""
        checkpoint = self._end(
            replace(self._in_progress[checkpoint_id], status=CheckpointStatus.COMPLETED, external_path=external_path)
        )
        self._update_latest("savepoint" if checkpoint.is_savepoint else "completed", checkpoint)
        self._count(in_progress=-1, completed=1)
        for running, value in (
            (self._sizes, checkpoint.checkpointed_size),
            (self._full_sizes, checkpoint.state_size),
            (self._durations, checkpoint.end_to_end_duration_ms),
            (self._processed, checkpoint.processed_data),
            (self._persisted, checkpoint.persisted_data),
        ):
            running.add(value)
        self._summary = None
        return checkpoint

    def failed(self, checkpoint_id: int, message: str, now_ms: float) -> CheckpointStatistics:
        """A checkpoint was aborted."""
        checkpoint = self._in_progress[checkpoint_id]
        failed = replace(
            checkpoint,
            status=CheckpointStatus.FAILED,
            failure_timestamp_ms=checkpoint.trigger_timestamp_ms + self._elapsed_ms(checkpoint_id, now_ms),
            failure_message=message,
        )
        self._update_latest("failed", self._end(failed))
        self._count(in_progress=-1, failed=1)
        return failed

    def restored(self, checkpoint_id: int, is_savepoint: bool, external_path: str | None, wall_ms: int) -> None:
        """An attempt has restored this checkpoint."""
        self._restored = RestoredCheckpoint(checkpoint_id, wall_ms, is_savepoint, external_path)
        self._count(restored=1)

    def discarded(self, checkpoint_ids: Iterable[int]) -> None:
        """These checkpoints were deleted."""
        for checkpoint_id in checkpoint_ids:
            if checkpoint_id in self._history:
                self._history[checkpoint_id] = replace(self._history[checkpoint_id], discarded=True)
            for name, latest in self._latest.items():
                if latest.id == checkpoint_id:
                    self._latest[name] = replace(latest, discarded=True)

    def overview(self) -> CheckpointOverview:
        """The statistics as of now."""
        if self._summary is None:
            self._summary = CompletedSummary(
                checkpointed_size=self._sizes.summary(),
                state_size=self._full_sizes.summary(),
                end_to_end_duration_ms=self._durations.summary(),
                processed_data=self._processed.summary(),
                persisted_data=self._persisted.summary(),
            )
        return CheckpointOverview(
            counts=self._counts,
            summary=self._summary,
            history=tuple(reversed(self._history.values())),
            latest_completed=self._latest.get("completed"),
            latest_savepoint=self._latest.get("savepoint"),
            latest_failed=self._latest.get("failed"),
            latest_restored=self._restored,
        )

    def _elapsed_ms(self, checkpoint_id: int, now_ms: float) -> int:
        return max(0, round(now_ms - self._started_ms[checkpoint_id]))

    def _keep(self, checkpoint: CheckpointStatistics) -> None:
        """Update the history, which drops its oldest entries, in progress or not."""
        self._in_progress[checkpoint.id] = checkpoint
        newest = max(self._history, default=0)
        if checkpoint.id in self._history or checkpoint.id > newest:
            self._history[checkpoint.id] = checkpoint
        while len(self._history) > self._limit:
            del self._history[next(iter(self._history))]

    def _end(self, checkpoint: CheckpointStatistics) -> CheckpointStatistics:
        self._keep(checkpoint)
        del self._in_progress[checkpoint.id], self._started_ms[checkpoint.id]
        return checkpoint

    def _update_latest(self, name: _Latest, checkpoint: CheckpointStatistics) -> None:
        """Update the latest, the one with the highest id: a savepoint may complete after the next one."""
        known = self._latest.get(name)
        if known is None or known.id < checkpoint.id:
            self._latest[name] = checkpoint

    def _count(self, **more: int) -> None:
        current = self._counts
        self._counts = replace(current, **{name: getattr(current, name) + change for name, change in more.items()})


class CheckpointTracker:
    """The thread-safe recorder of a plan's checkpoints; names each task by the uid of its chain's head."""

    def __init__(self, plan: JobPlan, emit: Callable[[CheckpointChanged], None]) -> None:
        self._lock = threading.Lock()
        self._emit = emit
        self._vertices = {chain.id: plan.nodes[chain.head].uid for chain in plan.chains if plan.has_tasks(chain)}
        self._names = {node.uid: node.name for node in plan.nodes}
        parallelism = {chain.id: chain.parallelism for chain in plan.chains}
        self._recorder = CheckpointRecorder(
            {uid: parallelism[chain] for chain, uid in self._vertices.items()},
            plan.settings.checkpoints.statistics_retained,
        )

    def overview(self) -> CheckpointOverview:
        """The statistics as of now."""
        with self._lock:
            return self._recorder.overview()

    def triggered(self, trigger: TriggerCheckpoint, now_ms: float) -> None:
        """A checkpoint was triggered."""
        format_type = trigger.request.format_type if trigger.request is not None else None
        with self._lock:
            triggered = self._recorder.triggered(trigger.id, trigger.kind, now_ms, trigger.timestamp_ms, format_type)
        self._emit(CheckpointChanged(triggered))

    def acknowledged(self, subtask: AcknowledgedSubtask, now_ms: float) -> None:
        """A subtask has acknowledged."""
        message, states = subtask.message, subtask.states
        times = {each.uid: each for each in message.operators}
        snapshot = SubtaskSnapshot(
            index=message.subtask,
            start_delay_ms=max(0, round(message.start_delay_ms)),
            sync_duration_ms=round(message.sync_ms),
            async_duration_ms=round(message.async_ms),
            checkpointed_size=sum(state.new_bytes for _, state in states),
            state_size=sum(state.full_bytes for _, state in states),
            persisted_data=sum(blob_size(state.in_flight) for _, state in states if state.in_flight is not None),
            operators=tuple(
                OperatorSnapshot(
                    operator=self._names[uid],
                    checkpointed_size=state.new_bytes,
                    state_size=state.full_bytes,
                    sync_duration_ms=round(times[uid].sync_ms),
                    async_duration_ms=round(times[uid].async_ms),
                )
                for uid, state in states
            ),
        )
        with self._lock:
            self._recorder.acknowledged(message.checkpoint, self._vertices[message.chain], snapshot, now_ms)

    def completed(self, checkpoint: CompletedCheckpoint, external_path: str | None) -> CheckpointStatistics:
        """A checkpoint is published. `external_path`: the path from which a job restores it."""
        with self._lock:
            completed = self._recorder.completed(checkpoint.id, external_path)
        self._emit(CheckpointChanged(completed))
        return completed

    def aborted(self, aborted: Aborted, now_ms: float) -> None:
        """A checkpoint was aborted."""
        with self._lock:
            failed = self._recorder.failed(aborted.id, aborted.reason.sentence(aborted.message), now_ms)
        self._emit(CheckpointChanged(failed))

    def restored(self, checkpoint: CompletedCheckpoint, external_path: str | None, wall_ms: int) -> None:
        """An attempt has restored this checkpoint."""
        with self._lock:
            self._recorder.restored(checkpoint.id, checkpoint.kind.is_savepoint, external_path, wall_ms)

    def discarded(self, checkpoint_ids: Sequence[int]) -> None:
        """These checkpoints were deleted."""
        with self._lock:
            self._recorder.discarded(checkpoint_ids)
