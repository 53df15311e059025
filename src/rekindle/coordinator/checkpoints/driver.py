"""Carries out what the ledger decides about checkpoints: claims, manifests, the store, and words to the slots.

One object per job, over all its attempts; only the job master's thread calls it.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from rekindle.checkpoint.latest import is_url
from rekindle.checkpoint.manifest import Manifest, ManifestKind
from rekindle.checkpoint.notes import Beginning
from rekindle.checkpoint.ownership import Claim, claim_first, claim_next
from rekindle.checkpoint.part_formats import SourceState
from rekindle.checkpoint.paths import (
    new_savepoint_folder,
)
from rekindle.checkpoint.rescale import SubtaskRestore, assign
from rekindle.checkpoint.resolve import RestoredFrom, highest_checkpoint_id
from rekindle.checkpoint.statefile import read_blob
from rekindle.checkpoint.store.open_store import check_usable
from rekindle.checkpoint.store.options import open_configured
from rekindle.checkpoint.store.port import Store, url_of
from rekindle.clock import Clock
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.catalogue import (
    Acknowledged,
    CheckpointCatalogue,
    SavepointPlace,
    SubtaskWord,
    refuse_rescaled_frames,
)
from rekindle.coordinator.checkpoints.fallback import GoingBack, choose_restore
from rekindle.coordinator.checkpoints.ledger import CheckpointLedger, Step
from rekindle.coordinator.checkpoints.requests import CheckpointRequests
from rekindle.coordinator.checkpoints.statistics import CheckpointTracker, flink_type
from rekindle.coordinator.checkpoints.types import (
    Aborted,
    Answer,
    CheckpointFailureReason,
    CheckpointKind,
    CheckpointPolicy,
    Completed,
    CompletedCheckpoint,
    Decision,
    Discard,
    DiscardLate,
    EndJob,
    FailJob,
    NotifyComplete,
    PendingCheckpoint,
    Publish,
    ResumeInput,
    Trigger,
)
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import CheckpointError, CorruptCheckpointError, OwnershipLostError
from rekindle.graph.modules import with_own_paths
from rekindle.graph.nodes import JobPlan
from rekindle.graph.state_layout import restore_targets
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
from rekindle.serde import tagged_loads

_LOG = logging.getLogger("rekindle.checkpoint")

CheckpointMessage = SnapshotTaken | SnapshotDeclined | Committed


@dataclass(frozen=True)
class AttemptBasis:
    """From where an attempt begins."""

    attempt: int
    storage: Storage
    restored_id: int | None = None
    restore_url: str | None = None
    restore_root: str = ""
    restores: tuple[SubtaskRestore, ...] = ()
    store_options: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)


@dataclass
class CheckpointDriver:
    """The driver's side of checkpoints."""

    plan: JobPlan
    job_id: str
    store: Store
    clock: Clock
    in_memory: bool
    #: Finds what the user wants to start from. Asked after the first claim: what an older driver publishes before it
    #: sees the claim is then found, and what it publishes later it commits to nobody (I14).
    recover: Callable[[], RestoredFrom | None] = lambda: None
    #: Of object stores, by kind; with secrets.
    store_options: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    ledger: CheckpointLedger = field(init=False)
    tracker: CheckpointTracker = field(init=False)
    catalogue: CheckpointCatalogue = field(init=False)
    requests: CheckpointRequests = field(default_factory=CheckpointRequests)
    ended: bool = False
    _recovery: RestoredFrom | None = None
    _acknowledged: dict[int, dict[tuple[int, int], SubtaskWord]] = field(default_factory=dict)
    _bases: dict[int, int | None] = field(default_factory=dict)
    _unread: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    _send: Callable[[Message], None] = lambda message: None
    #: Told when a cut stands and when its checkpoint is complete: results wait in between.
    on_cut: Callable[[int], None] = lambda checkpoint_id: None
    on_completed: Callable[[int], None] = lambda checkpoint_id: None

    def __post_init__(self) -> None:
        policy = CheckpointPolicy.from_settings(self.plan.settings)
        self.ledger = CheckpointLedger(policy, frozenset(self.plan.subtasks))
        self.tracker = CheckpointTracker(self.plan)
        self.catalogue = CheckpointCatalogue(self.store, self.in_memory)

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are made without being asked for."""
        return self.ledger.policy.enabled

    @property
    def _max_memory_bytes(self) -> int:
        return self.plan.settings.checkpoint_max_memory_bytes

    # -- attempts -----------------------------------------------------------------------------------------------------

    def begin_attempt(self) -> AttemptBasis:
        """Claim the next attempt, clean up after the last one, and say what its tasks restore."""
        now_ms = self.clock.wall_ms()
        if self.catalogue.claim is None:
            self._take_over(now_ms)
        else:
            self.catalogue.begin(claim_next(self.store, self.catalogue.claim, now_ms), self._beginning())
        self._acknowledged.clear()
        self._bases.clear()
        self._unread.clear()
        self._sweep(self.catalogue.owner.attempt)
        return self._basis(self.catalogue.owner)

    def _take_over(self, now_ms: int) -> None:
        """The driver's first attempt: claim the job, then look for what to begin from."""
        driver = f"{socket.gethostname()}:{os.getpid()}"
        claim = claim_first(self.store, self.plan.job_name, self.job_id, driver, now_ms)
        # Before the claim is kept: when the store fails here, the restarted attempt has to look again.
        self._recovery = self.recover()
        if self._recovery is not None:
            # Above what a dead driver has triggered too, though it never completed it.
            self.ledger = replace(self.ledger, last_id=highest_checkpoint_id(self.store, self.plan.job_name))
        self.catalogue.begin(claim, self._beginning())
        self.catalogue.sweep_abandoned()

    def _beginning(self) -> Beginning:
        """Of the run, over all its attempts: those that go on from the run's own checkpoints change nothing of it."""
        if self._recovery is None:
            # Whoever always starts with `latest` wants the final checkpoint kept, and has looked for one.
            return Beginning(on_purpose=not self.ledger.policy.keep_final)
        return self._recovery.beginning(self.store, self.plan.job_name)

    def _basis(self, claim: Claim) -> AttemptBasis:
        storage = Storage(None if self.in_memory else self.store.url, self.catalogue.root, self._max_memory_bytes)
        source = self._restored()
        if source is None:
            return AttemptBasis(claim.attempt, storage, store_options=self.store_options)
        url = None if self.in_memory and source.store is self.store else source.store.url
        loaded = source.loaded
        restores = self._assigned(loaded.manifest)
        restored_id = loaded.manifest.checkpoint_id
        return AttemptBasis(claim.attempt, storage, restored_id, url, loaded.root, restores, self.store_options)

    def _restored(self) -> RestoredFrom | None:
        """Where the next attempt begins: the job's own latest checkpoint, else what the user named."""
        point = self.ledger.restore_point
        own = self.catalogue.find(point) if point is not None else None
        return own if own is not None else self._recovery

    def _assigned(self, manifest: Manifest) -> tuple[SubtaskRestore, ...]:
        allow = self.plan.settings.allow_non_restored_state
        assigned = assign(manifest, restore_targets(self.plan), allow_non_restored_state=allow)
        return tuple(restore for restores in assigned.values() for restore in restores)

    def started(self, send: Callable[[Message], None]) -> None:
        """Every function is open; `send` speaks to all slots of the attempt."""
        self._send = send
        self.ended = False
        restored = self.ledger.restore_point
        if restored is None and self._recovery is not None:
            manifest, path = self._recovery.loaded.manifest, self._recovery.loaded.path
            is_savepoint = manifest.kind is ManifestKind.SAVEPOINT
            kind = CheckpointKind.SAVEPOINT if is_savepoint else CheckpointKind.CHECKPOINT
            place = url_of(self._recovery.store, path)
            restored = CompletedCheckpoint(manifest.checkpoint_id, kind, place, manifest.timestamp_ms)
        if restored is not None:
            self.tracker.restored(restored, self._external_path(restored), self.clock.wall_ms())
        self._do(self.ledger.attempt_started(_now_ms(), restored))

    def failed(self, message: str) -> None:
        """The attempt is over."""
        self._send = lambda message: None
        self._do(self.ledger.attempt_failed(message))

    def go_back(self, damage: CorruptCheckpointError) -> None:
        """The checkpoint of the last attempt turned out to be damaged: begin the next one from an older one (I16).

        Raises CorruptCheckpointError when there is none, or when the job may not go back by itself.
        """
        damaged = self._restored()
        if damaged is None:
            raise damage
        # Results are handed out with checkpoints.
        going_back = GoingBack.of(self.plan, running=bool(self.catalogue.manifests))
        older = choose_restore(damaged.store, damaged.loaded.path, damage, going_back)
        self.catalogue.stopped = None
        if self.catalogue.claim is None or older.manifest.timeline != self.catalogue.claim.timeline:
            self.ledger = replace(self.ledger, restore_point=None, completed=())
            self.catalogue.manifests = {}
            self._recovery = RestoredFrom(damaged.store, older)
            return
        # The job's own, although it may have been given up before: its files are to stay.
        id_, at = older.manifest.checkpoint_id, older.manifest.timestamp_ms
        own = CompletedCheckpoint(id_, CheckpointKind.CHECKPOINT, older.path, at)
        before = tuple(each for each in self.ledger.completed if each.id < id_)
        self.ledger = replace(self.ledger, restore_point=own, completed=(*before, own))
        earlier = {each: known for each, known in self.catalogue.manifests.items() if each < id_}
        self.catalogue.manifests = earlier | {id_: older.manifest}

    def job_ended(self, status: JobStatus) -> None:
        """The job is over, and so are its slots: keep or remove what the policy says, and what nobody has told of."""
        try:
            self._do(self.ledger.job_ended(status))
            if self.catalogue.claim is not None:
                self._sweep(self.catalogue.claim.attempt + 1)
        finally:
            self.requests.close(f"Job '{self.plan.job_name}' has ended ({status.name}).")

    # -- between epochs -----------------------------------------------------------------------------------------------

    def take_requests(self) -> None:
        """What users asked for meanwhile."""
        for request in self.requests.take():
            self._do(self.ledger.request(request))

    def hold_back(self, behind: bool) -> None:
        """Whether the reader of the job's results is far behind: then only what somebody asks for is triggered."""
        if self.ledger.reader_behind != behind:
            self.ledger = replace(self.ledger, reader_behind=behind)

    def expire(self, spared: Collection[int] = ()) -> None:
        """Abort the checkpoints whose time is over (I22), except `spared` ones."""
        self._do(self.ledger.expire(_now_ms(), spared))

    def expires_in_ms(self, spared: Collection[int] = ()) -> float | None:
        """How long until the next checkpoint under way expires, `spared` ones aside; None: none does."""
        expires_ms = self.ledger.next_expiry_ms(spared)
        return None if expires_ms is None else max(0.0, expires_ms - _now_ms())

    def waits_for_completion(self) -> bool:
        """Whether a checkpoint is due and only those under way are in its way."""
        return self.ledger.waits_for_completion(_now_ms())

    def next_order(self, unread: Mapping[int, Sequence[int]]) -> CheckpointOrder | None:
        """The barrier of the next epoch, if one is due. `unread`: the partitions left of each DataFrame source."""
        self.expire()
        self.ledger, decisions = self.ledger.trigger(_now_ms(), self.clock.wall_ms())
        for decision in decisions:
            if isinstance(decision, Trigger):
                self.tracker.triggered(decision, _now_ms())
                return self._order(decision, any(unread.values()))
        return None

    def _order(self, trigger: Trigger, frames_left: bool) -> CheckpointOrder | None:
        drain = trigger.request is not None and trigger.request.drain
        storage: Storage | None = None
        if trigger.kind.is_savepoint:
            try:
                if drain and frames_left:
                    raise CheckpointError(
                        "A job whose DataFrame source is not read to its end cannot be drained: stop it without drain."
                    )
                storage = self._savepoint_storage(trigger)
            except CheckpointError as error:
                reason = CheckpointFailureReason.IO_EXCEPTION
                self._do(self.ledger.abort(trigger.id, reason, str(error), _now_ms()))
                return None
        on_top = self.enabled and self.plan.settings.checkpoint_incremental and not trigger.kind.is_savepoint
        base_id = trigger.base_id if on_top else None
        self._bases[trigger.id] = base_id
        _LOG.info(
            "Triggering checkpoint %d (type=%s) @ %d for job %s.",
            trigger.id,
            flink_type(trigger.kind),
            trigger.timestamp_ms,
            self.job_id,
        )
        reach(CrashPoint.BEFORE_CUT)
        return CheckpointOrder(
            trigger.id, trigger.timestamp_ms, base_id, trigger.kind.is_savepoint, storage=storage, drain=drain
        )

    def _savepoint_storage(self, trigger: Trigger) -> Storage:
        asked = trigger.request.location if trigger.request is not None else None
        directory = asked or self.plan.settings.savepoint_directory
        if not directory:
            raise CheckpointError(
                "There is no directory for the savepoint: name one, or set execution.checkpointing.savepoint-dir."
            )
        store = open_configured(directory, self.store_options)
        check_usable(store)
        place = SavepointPlace(store, new_savepoint_folder(self.job_id))
        self.catalogue.savepoints[trigger.id] = place
        return Storage(store.url, place.folder, self._max_memory_bytes)

    def cut_stands(self, order: CheckpointOrder, unread: Mapping[int, Sequence[int]]) -> None:
        """The epoch that carried the barrier counted. `unread`: the partitions left of each DataFrame source (I10)."""
        self._unread[order.id] = {node: tuple(partitions) for node, partitions in unread.items()}
        reach(CrashPoint.AFTER_CUT)
        self.on_cut(order.id)
        self._do(self.ledger.cut_stands(order.id))

    def on_message(self, word: CheckpointMessage) -> None:
        """What a slot said about a checkpoint. A word that comes after the timeout comes too late (I22)."""
        self.expire()
        subtask = word.chain, word.subtask
        match word:
            case SnapshotTaken():
                base_id = self._bases.get(word.checkpoint)
                whole = SubtaskWord.on_top(self.catalogue.manifests.get(base_id) if base_id is not None else None, word)
                self._acknowledged.setdefault(word.checkpoint, {})[subtask] = whole
                self.tracker.acknowledged(whole, _now_ms())
                self._do(self.ledger.acknowledge(word.checkpoint, subtask))
            case SnapshotDeclined():
                self._decline(word, subtask)
            case Committed():
                self._do(self.ledger.commit_acknowledged(word.checkpoint, subtask))

    def _decline(self, word: SnapshotDeclined, subtask: tuple[int, int]) -> None:
        """The user's own traceback comes first, in the log or in what the job fails with."""
        reasons = CheckpointFailureReason
        reason = reasons.CHECKPOINT_ASYNC_EXCEPTION if word.asynchronous else reasons.CHECKPOINT_DECLINED
        step = self.ledger.decline(word.checkpoint, subtask, word.message, _now_ms(), reason)
        traceback, decisions = with_own_paths(word.traceback.rstrip()), step[1]
        if traceback and decisions and not any(isinstance(decision, FailJob) for decision in decisions):
            _LOG.warning("%s", traceback)
        self._do(step, traceback)

    def input_ended(self) -> None:
        """Every task has finished: the final checkpoint is due, or, without checkpoints, the end."""
        self._do(self.ledger.input_ended(_now_ms()))

    def wait_ms(self) -> float | None:
        """How long the shell may sleep if nothing happens."""
        now = _now_ms()
        wake = self.ledger.next_wake_ms(now)
        return None if wake is None else max(0.0, wake - now)

    # -- decisions ----------------------------------------------------------------------------------------------------

    def _do(self, step: Step, traceback: str = "") -> None:
        """Carry out every decision; that the job fails comes last: whoever waits for an answer gets it before.

        `traceback`: the user's own, of what led to all this.
        """
        self.ledger, decisions = step
        failure: FailJob | None = None
        for decision in decisions:
            if isinstance(decision, FailJob):
                failure = failure or decision
            else:
                self._carry_out(decision)
        if failure is not None:
            raise CheckpointError(f"{traceback}\n\n{failure.message}" if traceback else failure.message)

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case Publish(checkpoint=checkpoint):
                self._publish(checkpoint)
            case Completed(checkpoint=done):
                self._completed(done)
            case NotifyComplete():
                reach(CrashPoint.BEFORE_NOTIFY)
                self._send(CheckpointCompleted(decision.id, decision.acknowledge))
                reach(CrashPoint.AFTER_NOTIFY)
            case Aborted():
                self._abort(decision)
            case Discard():
                self._discard()
            case DiscardLate():
                self._forget(decision.id)
            case Answer():
                self.requests.answer(decision)
            case ResumeInput():
                _LOG.warning("Job '%s' was not stopped and goes on.", self.plan.job_name)
            case EndJob():
                self.ended = True

    def _completed(self, done: CompletedCheckpoint) -> None:
        took = self.tracker.completed(done, self._external_path(done))
        size, duration_ms = took.state_size, took.end_to_end_duration_ms
        _LOG.info("Completed checkpoint %d for job %s (%d bytes in %d ms).", done.id, self.job_id, size, duration_ms)
        if done.kind.is_savepoint:
            _LOG.info("Savepoint %d is at %s.", done.id, done.location)
        if done.kind.is_in_line:
            self.on_completed(done.id)

    def _external_path(self, point: CompletedCheckpoint) -> str | None:
        """What `execution.state-recovery.path` takes; None: it is in this driver's memory."""
        if is_url(point.location):
            return point.location
        return None if self.in_memory else url_of(self.store, point.location)

    def _abort(self, aborted: Aborted) -> None:
        subsumed = aborted.reason is CheckpointFailureReason.CHECKPOINT_SUBSUMED
        _LOG.log(
            logging.INFO if subsumed else logging.WARNING,
            "%s %d was aborted: %s %s",
            _called(aborted.kind).capitalize(),
            aborted.id,
            aborted.reason.text,
            aborted.message,
        )
        self.tracker.aborted(aborted, _now_ms())
        self._bases.pop(aborted.id, None)
        self._unread.pop(aborted.id, None)
        self._send(CheckpointAborted(aborted.id))
        self._forget(aborted.id)
        self._discard()  # what it stood on

    def _publish(self, checkpoint: PendingCheckpoint) -> None:
        manifest = self._manifest(checkpoint)
        reach(CrashPoint.BEFORE_PUBLISH)
        try:
            location = self.catalogue.publish(checkpoint, manifest)
        except OwnershipLostError:
            raise
        except CheckpointError as error:
            self._do(self.ledger.publish_failed(checkpoint.id, str(error), _now_ms()))
            return
        reach(CrashPoint.AFTER_PUBLISH)
        self._acknowledged.pop(checkpoint.id, None)
        self._do(self.ledger.published(checkpoint.id, location, _now_ms()))

    def _manifest(self, checkpoint: PendingCheckpoint) -> Manifest:
        self._bases.pop(checkpoint.id, None)
        words = list(self._acknowledged[checkpoint.id].values())
        acknowledged = Acknowledged(words, self._unread.pop(checkpoint.id, {}))
        duration_ms = round(_now_ms() - checkpoint.triggered_ms)
        return acknowledged.manifest(self.plan, self.catalogue.owner, checkpoint, duration_ms)

    def unread_partitions(self, node: int) -> list[int] | None:
        """The partitions of a DataFrame source that the restored checkpoint does not contain; None: it has none."""
        source = self._restored()
        if source is None:
            return None
        if source is self._recovery:
            refuse_rescaled_frames(self.plan, source.loaded.manifest)
        uid = self.plan.nodes[node].uid
        for operator in source.loaded.manifest.operators:
            blob = operator.subtasks[0].source
            if operator.uid == uid and blob is not None:
                splits = SourceState.decode(read_blob(source.store, source.loaded.root, blob)).splits
                return [int(tagged_loads(split.position)) for split in splits]
        return None

    # -- what goes ----------------------------------------------------------------------------------------------------

    def _discard(self) -> None:
        """Delete the checkpoints that the ledger has given up, now or while one under way still stood on them."""
        bases = {base for base in self._bases.values() if base is not None}
        self.tracker.discarded(self.catalogue.keep_only({each.id for each in self.ledger.completed} | bases))

    def _forget(self, checkpoint_id: int) -> None:
        words = self._acknowledged.pop(checkpoint_id, {}).values()
        self.catalogue.forget(checkpoint_id, {each for word in words for each in word.files_of(checkpoint_id)})

    def _sweep(self, before_attempt: int) -> None:
        self.catalogue.forget_savepoints()
        self._discard()
        self.catalogue.sweep(before_attempt)


def _called(kind: CheckpointKind) -> str:
    return "savepoint" if kind.is_savepoint else "checkpoint"


def _now_ms() -> float:
    return monotonic() * 1000
