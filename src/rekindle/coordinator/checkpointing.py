"""Carries out what the ledger decides about checkpoints: claims, manifests, the store, and words to the slots.

One object per job, over all its attempts; only the job master's thread calls it.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from rekindle.checkpoint import resolve
from rekindle.checkpoint.manifest import Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.ownership import Claim, claim_first, claim_next
from rekindle.checkpoint.paths import timeline_folder
from rekindle.checkpoint.publish import publish, remove
from rekindle.checkpoint.rescale import OperatorTarget, SourceState, SplitState, SubtaskRestore, assign
from rekindle.checkpoint.retention import orphans, outdated
from rekindle.checkpoint.statefile import read_blob
from rekindle.checkpoint.store import Store, check_usable
from rekindle.checkpoint.subtask import on_top_of
from rekindle.clock import Clock
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoint_decisions import (
    Aborted,
    Completed,
    Decision,
    Discard,
    EndJob,
    FailJob,
    NotifyComplete,
    Publish,
    Trigger,
)
from rekindle.coordinator.checkpoint_types import (
    CheckpointKind,
    CheckpointPolicy,
    CompletedCheckpoint,
    PendingCheckpoint,
)
from rekindle.coordinator.checkpoints import (
    CheckpointLedger,
    Step,
)
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import CheckpointError, IncompatibleStateError, OwnershipLostError, StoreError
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.protocol import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointOrder,
    Committed,
    Message,
    SnapshotDeclined,
    SnapshotTaken,
    Storage,
)
from rekindle.serde import tagged_dumps, tagged_loads

_LOG = logging.getLogger("rekindle.checkpoint")
_decode_state = msgspec.msgpack.Decoder(SubtaskState).decode
_encode = msgspec.msgpack.Encoder().encode
#: Flink's bound for state in the JobManager's memory.
MAX_INLINE_BYTES = 5 << 20

SlotWord = SnapshotTaken | SnapshotDeclined | Committed


@dataclass(frozen=True)
class AttemptBasis:
    """From where an attempt begins."""

    attempt: int
    storage: Storage
    restored_id: int | None = None
    restore_url: str | None = None
    restore_root: str = ""
    restores: tuple[SubtaskRestore, ...] = ()


@dataclass
class RestoredFrom:
    """The checkpoint from which the job was started by hand, and its store."""

    store: Store
    loaded: resolve.LoadedCheckpoint


@dataclass
class Checkpointing:
    """The driver's side of checkpoints."""

    plan: JobPlan
    job_id: str
    store: Store
    clock: Clock
    in_memory: bool
    recovery: RestoredFrom | None = None
    ledger: CheckpointLedger = field(init=False)
    ended: bool = False
    _claim: Claim | None = None
    _acknowledged: dict[int, dict[tuple[int, int], SnapshotTaken]] = field(default_factory=dict)
    _bases: dict[int, int | None] = field(default_factory=dict)
    _manifests: dict[int, Manifest] = field(default_factory=dict)
    _unread: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    _send: Callable[[Message], None] = lambda message: None
    #: Told when a cut stands and when its checkpoint is complete: results wait in between.
    on_cut: Callable[[int], None] = lambda checkpoint_id: None
    on_completed: Callable[[int], None] = lambda checkpoint_id: None

    def __post_init__(self) -> None:
        policy = CheckpointPolicy.from_settings(self.plan.settings)
        self.ledger = CheckpointLedger(policy, frozenset(_subtasks(self.plan)))

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are made without being asked for."""
        return self.ledger.policy.enabled

    # -- attempts -----------------------------------------------------------------------------------------------------

    def begin_attempt(self) -> AttemptBasis:
        """Claim the next attempt, clean up after the last one, and say what its tasks restore."""
        now_ms = self.clock.wall_ms()
        driver = f"{socket.gethostname()}:{os.getpid()}"
        if self._claim is None:
            if not self.in_memory:
                check_usable(self.store)
            self._claim = claim_first(self.store, self.plan.job_name, self.job_id, driver, now_ms)
        else:
            self._claim = claim_next(self.store, self._claim, now_ms)
        self._acknowledged.clear()
        self._bases.clear()
        self._unread.clear()
        self._sweep()
        return self._basis(self._claim)

    def _basis(self, claim: Claim) -> AttemptBasis:
        root = timeline_folder(claim.job_name, claim.timeline)
        url = None if self.in_memory else self.store.url
        storage = Storage(url, root, MAX_INLINE_BYTES)
        point = self.ledger.restore_point
        if point is not None and point.id in self._manifests:
            manifest = self._manifests[point.id]
            return AttemptBasis(claim.attempt, storage, point.id, url, root, self._assigned(manifest))
        if self.recovery is not None:
            loaded = self.recovery.loaded
            restores = self._assigned(loaded.manifest)
            return AttemptBasis(
                claim.attempt, storage, loaded.manifest.checkpoint_id, self.recovery.store.url, loaded.root, restores
            )
        return AttemptBasis(claim.attempt, storage)

    def _assigned(self, manifest: Manifest) -> tuple[SubtaskRestore, ...]:
        targets = [
            OperatorTarget(node.uid, node.name, node.parallelism, node.max_parallelism) for node in self.plan.nodes
        ]
        allow = bool(self.plan.settings.get("allow_non_restored_state", False))
        assigned = assign(manifest, targets, allow_non_restored_state=allow)
        return tuple(restore for restores in assigned.values() for restore in restores)

    def started(self, send: Callable[[Message], None]) -> None:
        """Every function is open; `send` speaks to all slots of the attempt."""
        self._send = send
        self.ended = False
        restored = self.ledger.restore_point
        if restored is None and self.recovery is not None:
            manifest = self.recovery.loaded.manifest
            restored = CompletedCheckpoint(
                manifest.checkpoint_id, CheckpointKind.CHECKPOINT, self.recovery.loaded.path, manifest.timestamp_ms
            )
        self._do(self.ledger.attempt_started(_now_ms(), restored))

    def failed(self, message: str) -> None:
        """The attempt is over."""
        self._send = lambda message: None
        self._do(self.ledger.attempt_failed(message))

    def job_ended(self, status: JobStatus) -> None:
        """The job is over: keep or remove what the policy says."""
        self._do(self.ledger.job_ended(status))

    # -- between epochs -----------------------------------------------------------------------------------------------

    def next_order(self) -> CheckpointOrder | None:
        """The barrier that the next epoch carries, if one is due."""
        self._do(self.ledger.expire(_now_ms()))
        self.ledger, decisions = self.ledger.trigger(_now_ms(), self.clock.wall_ms())
        for decision in decisions:
            if isinstance(decision, Trigger):
                base_id = decision.base_id if self.enabled else None
                self._bases[decision.id] = base_id
                reach(CrashPoint.BEFORE_CUT)
                return CheckpointOrder(decision.id, decision.timestamp_ms, base_id, decision.kind.is_savepoint)
        return None

    def cut_stands(self, order: CheckpointOrder, unread: Mapping[int, Sequence[int]]) -> None:
        """The epoch that carried the barrier counted. `unread`: the partitions left of each DataFrame source (I10)."""
        self._unread[order.id] = {node: tuple(partitions) for node, partitions in unread.items()}
        reach(CrashPoint.AFTER_CUT)
        self.on_cut(order.id)
        self._do(self.ledger.cut_stands(order.id))

    def hear(self, word: SlotWord) -> None:
        """What a slot said about a checkpoint."""
        subtask = word.chain, word.subtask
        match word:
            case SnapshotTaken():
                self._acknowledged.setdefault(word.checkpoint, {})[subtask] = word
                self._do(self.ledger.acknowledge(word.checkpoint, subtask))
            case SnapshotDeclined():
                self._do(self.ledger.decline(word.checkpoint, subtask, word.message, _now_ms()))
            case Committed():
                self._do(self.ledger.commit_acknowledged(word.checkpoint, subtask))

    def input_ended(self) -> None:
        """Every task has finished: the final checkpoint is due, or, without checkpoints, the end."""
        self._do(self.ledger.input_ended(_now_ms()))

    def wait_ms(self) -> float | None:
        """How long the shell may sleep if nothing happens."""
        now = _now_ms()
        wake = self.ledger.next_wake_ms(now)
        return None if wake is None else max(0.0, wake - now)

    # -- decisions ----------------------------------------------------------------------------------------------------

    def _do(self, step: Step) -> None:
        self.ledger, decisions = step
        for decision in decisions:
            self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case Publish(checkpoint=checkpoint):
                self._publish(checkpoint)
            case Completed(checkpoint=done):
                _LOG.info("Completed checkpoint %d for job %s (%s).", done.id, self.job_id, done.location)
                self.on_completed(done.id)
            case NotifyComplete():
                reach(CrashPoint.BEFORE_NOTIFY)
                self._send(CheckpointCompleted(decision.id, decision.acknowledge))
                reach(CrashPoint.AFTER_NOTIFY)
            case Aborted():
                _LOG.warning("Checkpoint %d was aborted: %s %s", decision.id, decision.reason.text, decision.message)
                self._acknowledged.pop(decision.id, None)
                self._unread.pop(decision.id, None)
                self._send(CheckpointAborted(decision.id))
            case Discard():
                self._discard(decision.checkpoints)
            case FailJob():
                raise CheckpointError(f"Checkpoint {decision.id} failed: {decision.reason.text} {decision.message}")
            case EndJob():
                self.ended = True

    def _publish(self, checkpoint: PendingCheckpoint) -> None:
        assert self._claim is not None
        manifest = self._manifest(checkpoint)
        reach(CrashPoint.BEFORE_PUBLISH)
        try:
            folder = publish(self.store, self._claim, manifest)
        except OwnershipLostError:
            raise
        except (StoreError, CheckpointError) as error:
            self._do(self.ledger.publish_failed(checkpoint.id, str(error), _now_ms()))
            return
        reach(CrashPoint.AFTER_PUBLISH)
        self._manifests[checkpoint.id] = manifest
        self._acknowledged.pop(checkpoint.id, None)
        self._do(self.ledger.published(checkpoint.id, folder, _now_ms()))

    def _manifest(self, checkpoint: PendingCheckpoint) -> Manifest:
        assert self._claim is not None
        base_id = self._bases.pop(checkpoint.id, None)
        base = self._manifests.get(base_id) if base_id is not None else None
        words = self._acknowledged[checkpoint.id].values()
        states: dict[str, list[SubtaskState]] = {}
        for word in words:
            for operator in word.operators:
                state = _decode_state(operator.state)
                whole = on_top_of(_base_of(base, operator.uid, state.subtask), state)
                states.setdefault(operator.uid, []).append(whole)
        return Manifest(
            kind=ManifestKind.CHECKPOINT,
            checkpoint_id=checkpoint.id,
            job_id=self.job_id,
            job_name=self.plan.job_name,
            timeline=self._claim.timeline,
            attempt=self._claim.attempt,
            timestamp_ms=checkpoint.timestamp_ms,
            duration_ms=round(_now_ms() - checkpoint.triggered_ms),
            operators=[
                OperatorState(node.uid, node.name, node.parallelism, node.max_parallelism, states[node.uid])
                for node in self.plan.nodes
                if node.uid in states
            ]
            + self._frames(checkpoint.id),
        )

    def _frames(self, checkpoint_id: int) -> list[OperatorState]:
        """The positions of DataFrame sources, which the driver reads itself."""
        return [
            OperatorState(
                self.plan.nodes[node].uid,
                self.plan.nodes[node].name,
                1,
                self.plan.nodes[node].max_parallelism,
                [SubtaskState(0, finished=not partitions, source=_partitions_left(partitions))],
            )
            for node, partitions in self._unread.pop(checkpoint_id, {}).items()
        ]

    def unread_partitions(self, node: int) -> list[int] | None:
        """The partitions of a DataFrame source that the restored checkpoint does not contain; None: it has none."""
        point = self.ledger.restore_point
        manifest = self._manifests.get(point.id) if point is not None else None
        store, root = self.store, ""
        if manifest is None and self.recovery is not None:
            self._refuse_rescaled_frames(self.recovery.loaded.manifest)
            manifest, store, root = self.recovery.loaded.manifest, self.recovery.store, self.recovery.loaded.root
        uid = self.plan.nodes[node].uid
        for operator in manifest.operators if manifest is not None else ():
            blob = operator.subtasks[0].source
            if operator.uid == uid and blob is not None:
                splits = SourceState.decode(read_blob(store, root, blob)).splits
                return [int(tagged_loads(split.position)) for split in splits]
        return None

    def _refuse_rescaled_frames(self, manifest: Manifest) -> None:
        """Which partitions have ended is known per channel, and channels do not survive a change of parallelism."""
        saved = {operator.uid: operator.parallelism for operator in manifest.operators}
        for node in self.plan.nodes:
            old = saved.get(node.uid, node.parallelism)
            if node.kind is not OperatorKind.SOURCE_DATAFRAME and old != node.parallelism:
                raise IncompatibleStateError(
                    f"A job with a DataFrame source can only be restored with the parallelism it was saved with: set "
                    f"that of '{node.name}' to {old}."
                )

    def _discard(self, checkpoints: Sequence[CompletedCheckpoint]) -> None:
        assert self._claim is not None
        gone = {each.id for each in checkpoints}
        kept = [manifest for id_, manifest in sorted(self._manifests.items()) if id_ not in gone]
        bases = {base for base in self._bases.values() if base is not None}
        ordered = [self._manifests[id_] for id_ in sorted(self._manifests)]
        removal = outdated(ordered, self._claim.timeline, len(kept), bases)
        for id_ in removal.checkpoint_ids:
            self._manifests.pop(id_, None)
        remove(self.store, self._claim, removal)

    def _sweep(self) -> None:
        """Files of attempts that died before their checkpoint was complete."""
        assert self._claim is not None
        claim = self._claim
        files = [entry.path for entry in self.store.list(timeline_folder(claim.job_name, claim.timeline))]
        kept = self._manifests.values()
        remove(self.store, claim, orphans(files, kept, claim.job_name, claim.timeline, claim.attempt))


def _partitions_left(partitions: Sequence[int]) -> bytes:
    return SourceState([SplitState(tagged_dumps(str(each)), tagged_dumps(each)) for each in partitions]).encode()


def _subtasks(plan: JobPlan) -> list[tuple[int, int]]:
    return [
        (chain.id, subtask)
        for chain in plan.chains
        for subtask in range(chain.parallelism)
        if plan.nodes[chain.head].kind is not OperatorKind.SOURCE_DATAFRAME
    ]


def _base_of(base: Manifest | None, uid: str, subtask: int) -> SubtaskState | None:
    if base is None:
        return None
    operator = next((each for each in base.operators if each.uid == uid), None)
    return next((each for each in operator.subtasks if each.subtask == subtask), None) if operator else None


def _now_ms() -> float:
    return monotonic() * 1000
