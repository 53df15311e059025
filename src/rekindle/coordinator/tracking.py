"""Tells the recorder of statistics what the ledger decided and the subtasks said; readable from any thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rekindle.checkpoint.manifest import blob_size
from rekindle.common.checkpoint_statistics import (
    CheckpointOverview,
    CheckpointStatistics,
    OperatorSnapshot,
    SubtaskSnapshot,
)
from rekindle.coordinator.checkpoint_decisions import Aborted, Trigger
from rekindle.coordinator.checkpoint_statistics import CheckpointRecorder
from rekindle.coordinator.checkpoint_types import CompletedCheckpoint
from rekindle.coordinator.manifests import SubtaskWord
from rekindle.graph.nodes import JobPlan, OperatorKind


class CheckpointTracker:
    """The statistics of a job's checkpoints; tasks are named by the uid of their chain's head."""

    def __init__(self, plan: JobPlan) -> None:
        self._lock = threading.Lock()
        self._vertices = {
            chain.id: plan.nodes[chain.head].uid
            for chain in plan.chains
            if plan.nodes[chain.head].kind is not OperatorKind.SOURCE_DATAFRAME
        }
        self._names = {node.uid: node.name for node in plan.nodes}
        parallelism = {chain.id: chain.parallelism for chain in plan.chains}
        self._recorder = CheckpointRecorder({uid: parallelism[chain] for chain, uid in self._vertices.items()})

    def overview(self) -> CheckpointOverview:
        """Everything as it is now."""
        with self._lock:
            return self._recorder.overview()

    def triggered(self, trigger: Trigger, now_ms: float) -> None:
        """A checkpoint sets out."""
        format_type = trigger.request.format_type if trigger.request is not None else None
        with self._lock:
            self._recorder.triggered(trigger.id, trigger.kind, now_ms, trigger.timestamp_ms, format_type)

    def acknowledged(self, said: SubtaskWord, now_ms: float) -> None:
        """A subtask has acknowledged."""
        word, states = said.word, said.states
        times = {each.uid: each for each in word.operators}
        snapshot = SubtaskSnapshot(
            index=word.subtask,
            start_delay_ms=max(0, round(word.start_delay_ms)),
            sync_duration_ms=round(word.sync_ms),
            async_duration_ms=round(word.async_ms),
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
            self._recorder.acknowledged(word.checkpoint, self._vertices[word.chain], snapshot, now_ms)

    def completed(self, checkpoint: CompletedCheckpoint, external_path: str | None) -> CheckpointStatistics:
        """Its `_metadata` is published; `external_path`: what a recovery takes."""
        with self._lock:
            return self._recorder.completed(checkpoint.id, external_path)

    def aborted(self, aborted: Aborted, now_ms: float) -> None:
        """It came to nothing."""
        with self._lock:
            self._recorder.failed(aborted.id, f"{aborted.reason.text} {aborted.message}".rstrip(), now_ms)

    def restored(self, checkpoint: CompletedCheckpoint, external_path: str | None, wall_ms: int) -> None:
        """An attempt begins with it."""
        with self._lock:
            self._recorder.restored(checkpoint.id, checkpoint.kind.is_savepoint, external_path, wall_ms)

    def discarded(self, checkpoint_ids: Sequence[int]) -> None:
        """These were deleted."""
        with self._lock:
            self._recorder.discarded(checkpoint_ids)
