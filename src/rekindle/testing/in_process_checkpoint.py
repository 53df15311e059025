"""Checkpoints of an `InProcessJob`: the same snapshots, files and manifest as on Spark, in a store in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from rekindle.checkpoint import load_checkpoint
from rekindle.checkpoint.manifest import Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.parts import CapturedOperator, on_top_of
from rekindle.checkpoint.paths import (
    StateFileName,
    checkpoint_folder,
    new_savepoint_folder,
    root_of,
    savepoint_reference,
    shared_reference,
)
from rekindle.checkpoint.publish import put_metadata
from rekindle.checkpoint.rescale import SubtaskShare, assign
from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.store.port import Store
from rekindle.clock import SystemClock
from rekindle.graph.nodes import JobPlan
from rekindle.graph.restore_targets import restore_targets
from rekindle.protocol import CheckpointOrder
from rekindle.runtime.snapshot import CapturedTask, SnapshotDeclinedError
from rekindle.runtime.task_snapshots import TaskShare

JOB_ID = "0" * 32
TIMELINE = "00000001-0a1b2c3d"
# Small, so that even a test's state lies partly in files.
_INLINE_BYTES = 64
_encode = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(SubtaskState).decode
_decode_restore = msgspec.msgpack.Decoder(SubtaskShare).decode


@dataclass(eq=False)
class Lineage:
    """Shared by all jobs that descend from one job: the store, and the counters of attempts and checkpoints."""

    store: Store = field(default_factory=MemoryStore)
    attempts: int = 0
    last_id: int = 0
    claimed_ms: int = 0

    def begin_attempt(self) -> int:
        """Return the number of the next attempt; 0 for the first."""
        self.attempts += 1
        return self.attempts - 1

    def claim(self) -> int:
        """Return the time at which the next attempt is claimed: that of this machine, and above all earlier ones."""
        self.claimed_ms = max(SystemClock().wall_ms(), self.claimed_ms + 1)
        return self.claimed_ms

    def next_id(self) -> int:
        """Return the id of the next checkpoint."""
        self.last_id += 1
        return self.last_id


@dataclass(eq=False)
class InProcessCheckpoint:
    """A checkpoint of an `InProcessJob`: the barrier has passed, and every task has taken its snapshot.

    The snapshots are encoded and written when `manifest` is first asked for, as late as a slow upload would be.
    """

    id: int
    #: The records that the epoch with the barrier collected.
    results: list[Any]
    lineage: Lineage
    plan: JobPlan
    order: CheckpointOrder
    attempt: int
    base: Manifest | None
    snapshots: Sequence[CapturedTask] = field(repr=False)
    aborted: bool = False
    #: The error of a task that declined its snapshot.
    declined: SnapshotDeclinedError | None = None

    @property
    def store(self) -> Store:
        """The store with the state files and `_metadata`: a test may damage them."""
        return self.lineage.store

    @cached_property
    def path(self) -> str:
        """The folder of the checkpoint or savepoint in the store."""
        if self.order.savepoint:
            return new_savepoint_folder(JOB_ID)
        return checkpoint_folder(self.plan.job_name, TIMELINE, self.id)

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest of the checkpoint; the first access writes and publishes the checkpoint."""
        assert not self.aborted, f"checkpoint {self.id} was aborted{f': {self.declined}' if self.declined else ''}"
        states: dict[str, list[SubtaskState]] = {}
        for snapshot in self.snapshots:
            for uid, state in self._written(snapshot):
                base = _state_in(self.base, uid, state.subtask)
                states.setdefault(uid, []).append(on_top_of(base, state))
        manifest = Manifest(
            kind=ManifestKind.SAVEPOINT if self.order.savepoint else ManifestKind.CHECKPOINT,
            checkpoint_id=self.id,
            job_id=JOB_ID,
            job_name=self.plan.job_name,
            timeline=TIMELINE,
            attempt=self.attempt,
            timestamp_ms=self.order.timestamp_ms,
            operators=[
                OperatorState(
                    node.uid,
                    node.name,
                    node.parallelism,
                    node.max_parallelism,
                    states[node.uid],
                    node.details.state_layout(),
                )
                for node in self.plan.nodes
                if node.uid in states
            ],
        )
        put_metadata(self.store, self.path, manifest)
        return manifest

    def _written(self, snapshot: CapturedTask) -> list[tuple[str, SubtaskState]]:
        refer = savepoint_reference if self.order.savepoint else shared_reference

        def writer(operator: CapturedOperator) -> StateFileWriter:
            file = StateFileName.of(self.id, self.attempt, operator.uid, operator.subtask)
            return StateFileWriter(self.store, root_of(self.path), refer(file), inline_bytes=_INLINE_BYTES)

        return [(each.uid, _decode_state(each.state)) for each in snapshot.write(writer, SystemClock())]


@dataclass(eq=False)
class StoredCheckpoint:
    """A checkpoint or savepoint that any job has written, perhaps in production: a test can continue from it."""

    store: Store
    #: The folder of the checkpoint in the store.
    path: str
    manifest: Manifest = field(repr=False)

    @staticmethod
    def at(url: str) -> StoredCheckpoint:
        """Load the checkpoint at a path or URL, as `execution.state-recovery.path` takes it."""
        location = load_checkpoint.locate(url)
        loaded = load_checkpoint.load(location.store, location.path)
        return StoredCheckpoint(location.store, loaded.path, loaded.manifest)

    @property
    def lineage(self) -> Lineage:
        """A new lineage for jobs that continue from the checkpoint: they write to another store."""
        return Lineage(attempts=self.manifest.attempt + 1, last_id=self.manifest.checkpoint_id)


@dataclass(frozen=True)
class RestorePoint:
    """The checkpoint from which a job is restored, shared out to its subtasks."""

    #: Whether the job writes to the store of this checkpoint: only then may its deltas be based on it (I14).
    own: bool
    manifest: Manifest
    restores: Mapping[int, TaskShare]  # by subtask; a task restores the operators whose uids it has

    @staticmethod
    def of(checkpoint: InProcessCheckpoint | StoredCheckpoint, plan: JobPlan) -> RestorePoint:
        """Load, verify and share out a checkpoint as the driver does, for any parallelism."""
        assert checkpoint.manifest is not None  # the first access writes the checkpoint
        loaded = load_checkpoint.load(checkpoint.store, checkpoint.path)
        allow = plan.settings.allow_non_restored_state
        assigned = assign(loaded.manifest, restore_targets(plan), allow_non_restored_state=allow)
        by_subtask: dict[int, dict[str, SubtaskShare]] = {}
        for restores in assigned.values():
            for restore in restores:
                by_subtask.setdefault(restore.subtask, {})[restore.uid] = _decode_restore(_encode(restore))
        return RestorePoint(
            isinstance(checkpoint, InProcessCheckpoint),
            loaded.manifest,
            {subtask: TaskShare(checkpoint.store, loaded.root, found) for subtask, found in by_subtask.items()},
        )

    def for_deltas(self, plan: JobPlan) -> Manifest | None:
        """Return the base for deltas: this checkpoint if the same plan is restarted, else None."""
        saved = {(state.uid, state.parallelism) for state in self.manifest.operators}
        same = saved == {(node.uid, node.parallelism) for node in plan.nodes}
        return self.manifest if self.own and same and self.manifest.kind is ManifestKind.CHECKPOINT else None


def _state_in(manifest: Manifest | None, uid: str, subtask: int) -> SubtaskState | None:
    for operator in manifest.operators if manifest is not None else ():
        if operator.uid == uid:
            return next((state for state in operator.subtasks if state.subtask == subtask), None)
    return None
