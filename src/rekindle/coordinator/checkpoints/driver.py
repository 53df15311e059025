"""Carries out the decisions of the checkpoint ledger: claims, manifests, the store, and messages to the slots.

One object per job, over all its attempts; only the job master's thread calls it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from rekindle.checkpoint.latest_checkpoint import highest_checkpoint_id
from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import Manifest
from rekindle.checkpoint.ownership import Claim, refuse_taken_over
from rekindle.checkpoint.rescale import SubtaskShare, assign, refuse_rescaled_frames
from rekindle.checkpoint.store.port import Store
from rekindle.checkpoint.timeline_notes import Beginning
from rekindle.clock import WaitingClock
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.catalogue import CheckpointCatalogue, completed_checkpoint
from rekindle.coordinator.checkpoints.claim_watch import ClaimWatch
from rekindle.coordinator.checkpoints.commit_order import CommitOrder
from rekindle.coordinator.checkpoints.fallback import GoingBack, choose_restore
from rekindle.coordinator.checkpoints.ledger import CheckpointLedger, Step
from rekindle.coordinator.checkpoints.requests import CheckpointRequests
from rekindle.coordinator.checkpoints.statistics import CheckpointTracker, flink_type
from rekindle.coordinator.checkpoints.types import (
    Aborted,
    Answer,
    CheckpointFailureReason,
    CheckpointMessage,
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
    Subtask,
    TriggerCheckpoint,
)
from rekindle.coordinator.checkpoints.under_way import (
    AcknowledgedSubtask,
    CheckpointUnderWay,
    SavepointPlace,
    new_savepoint_place,
    partitions_left,
)
from rekindle.coordinator.job_events import CheckpointRequested, CutCovered, CutMade
from rekindle.coordinator.observer import JobEvents
from rekindle.crash_points import CrashPoint, reach
from rekindle.errors import CheckpointError, CorruptCheckpointError, OwnershipLostError
from rekindle.graph.committing_sinks import awaited_commits
from rekindle.graph.nodes import JobPlan
from rekindle.graph.python_files import with_own_paths
from rekindle.graph.restore_targets import restore_targets
from rekindle.protocol import (
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointCommitted,
    CheckpointCompleted,
    CheckpointDeclined,
    CheckpointOrder,
    Committed,
    Message,
    SinksCommitted,
    Storage,
)

_LOG = logging.getLogger("rekindle.checkpoint")


@dataclass(frozen=True)
class AttemptBasis:
    """The number and time of an attempt, where it writes checkpoints, and what its tasks restore."""

    attempt: int
    storage: Storage
    restored_id: int | None = None
    restore_url: str | None = None
    restore_root: str = ""
    restores: tuple[SubtaskShare, ...] = ()
    store_options: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    claimed_ms: int = 0


@dataclass
class CheckpointDriver:
    """Makes, completes, aborts and deletes a job's checkpoints as its ledger decides."""

    plan: JobPlan
    job_id: str
    store: Store
    clock: WaitingClock
    in_memory: bool
    #: Finds the checkpoint that the user wants to start from. Called after the first claim: it then finds what an older
    #: driver published before it saw the claim; later publications of that driver are not committed (I14).
    recover: Callable[[], LoadedCheckpoint | None] = lambda: None
    #: Options of object stores, by kind; with secrets.
    store_options: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    ledger: CheckpointLedger = field(init=False)
    tracker: CheckpointTracker = field(init=False)
    catalogue: CheckpointCatalogue = field(init=False)
    requests: CheckpointRequests = field(init=False)
    #: The events of the job.
    events: JobEvents = field(default_factory=JobEvents)
    #: Whether the job has done its last commit, or has nothing to commit, and its functions can be closed.
    ended: bool = False
    _recovery: LoadedCheckpoint | None = None
    _under_way: dict[int, CheckpointUnderWay] = field(default_factory=dict)
    _commit_order: CommitOrder = field(default_factory=CommitOrder)
    _claim_watch: ClaimWatch | None = None
    _send: Callable[[Message], None] = lambda message: None

    def __post_init__(self) -> None:
        policy = self.plan.settings.checkpoints
        self.ledger = CheckpointLedger(policy, frozenset(self.plan.subtasks))
        self.tracker = CheckpointTracker(self.plan, self.events.emit)
        self.requests = CheckpointRequests(lambda: self.events.emit(CheckpointRequested()))
        self.catalogue = CheckpointCatalogue(self.store, self.in_memory)

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are made periodically."""
        return self.ledger.policy.enabled

    @property
    def interval_ms(self) -> int:
        """The interval of periodic checkpoints; -1 without them."""
        return self.ledger.policy.interval_ms

    @property
    def holds_input(self) -> bool:
        """Whether no more input is read, because the job's last checkpoint is under way (I9, I17)."""
        return self.ledger.holds_input

    # -- attempts -----------------------------------------------------------------------------------------------------

    def begin_attempt(self) -> AttemptBasis:
        """Claim the next attempt, delete leftovers of the last one, and assign the state that its tasks restore."""
        first = self.catalogue.claim is None
        claim = self.catalogue.next_claim(self.plan.job_name, self.job_id, self.clock.wall_ms())
        if first:
            # Before the claim is kept: if the store fails here, the restarted attempt has to look again.
            self._look_for_recovery()
        claim = self._above_restored(claim)
        self.catalogue.begin(claim, self._beginning())
        if first:
            self.catalogue.sweep_earlier_runs()
        self._commit_order = CommitOrder(awaited_commits(self.plan))
        self._sweep(claim.attempt)
        return self._basis(claim)

    def _look_for_recovery(self) -> None:
        self._recovery = self.recover()
        if self._recovery is not None:
            # Also above the ids that a dead driver triggered and never completed.
            self.ledger = self.ledger.numbered_above(highest_checkpoint_id(self.store, self.plan.job_name))

    def _beginning(self) -> Beginning:
        """The beginning of the run, the same for all its attempts unless one goes back to an older checkpoint."""
        if self._recovery is None:
            # With `keep_final` the user starts with `latest` each time: then no checkpoint was found.
            return Beginning(on_purpose=not self.ledger.policy.keep_final)
        return self._recovery.beginning(self.store, self.plan.job_name)

    def _above_restored(self, claim: Claim) -> Claim:
        """Move the claim's time above that of the run whose checkpoint is restored, also if this clock is behind.

        Attempts of this run that restore the same checkpoint stay in order, because their numbers rise.
        """
        source = self._restored()
        if source is None or source.manifest.timeline == claim.timeline:
            return claim  # claims of one run are in order already
        restored_ms = source.manifest.claimed_ms or source.manifest.timestamp_ms
        return msgspec.structs.replace(claim, claimed_ms=max(claim.claimed_ms, restored_ms + claim.attempt))

    def _basis(self, claim: Claim) -> AttemptBasis:
        attempt, claimed_ms = claim.attempt, claim.claimed_ms
        max_memory_bytes = self.plan.settings.checkpoints.max_memory_bytes
        storage = Storage(None if self.in_memory else self.store.url, self.catalogue.root, max_memory_bytes)
        source = self._restored()
        if source is None:
            return AttemptBasis(attempt, storage, store_options=self.store_options, claimed_ms=claimed_ms)
        url = None if self.in_memory and source.store is self.store else source.store.url
        restores = self._assigned(source.manifest)
        restored_id = source.manifest.checkpoint_id
        return AttemptBasis(attempt, storage, restored_id, url, source.root, restores, self.store_options, claimed_ms)

    def _restored(self) -> LoadedCheckpoint | None:
        """The checkpoint that the next attempt restores: the run's own latest one, else the one the user named."""
        point = self.ledger.restore_point
        own = self.catalogue.find(point) if point is not None else None
        return own if own is not None else self._recovery

    def _assigned(self, manifest: Manifest) -> tuple[SubtaskShare, ...]:
        allow = self.plan.settings.allow_non_restored_state
        assigned = assign(manifest, restore_targets(self.plan), allow_non_restored_state=allow)
        return tuple(restore for restores in assigned.values() for restore in restores)

    def unread_partitions(self, node: int) -> list[int] | None:
        """The partitions of a DataFrame source that the restored checkpoint does not contain; None: it has none."""
        source = self._restored()
        if source is None:
            return None
        if source is self._recovery:
            refuse_rescaled_frames(self.plan, source.manifest)
        return partitions_left(source, self.plan.nodes[node].uid)

    def started(self, send: Callable[[Message], None]) -> None:
        """Start to make checkpoints: every function is open. `send` sends to all slots of the attempt."""
        self._send = send
        self.ended = False
        restored = self.ledger.restore_point
        if restored is None and self._recovery is not None:
            restored = completed_checkpoint(self._recovery)
        if restored is not None:
            self.tracker.restored(restored, self.catalogue.external_path(restored), self.clock.wall_ms())
        self._apply(self.ledger.attempt_started(self._now_ms(), restored))

    def watch_claim(self, every_s: float, on_lost: Callable[[OwnershipLostError], None]) -> ClaimWatch:
        """Look at the claim of the attempt that has begun, once per interval, until the watch is closed."""
        claim = self.catalogue.owner
        self._claim_watch = ClaimWatch(lambda: refuse_taken_over(self.store, claim), every_s, on_lost, self.clock)
        if not self.in_memory:  # else no other driver can claim the job
            self._claim_watch.start()
        return self._claim_watch

    def failed(self, message: str) -> None:
        """Abort the pending checkpoints: the attempt has failed."""
        self._send = lambda message: None
        self._apply(self.ledger.attempt_failed(message))
        if self.plan.settings.replay.records_input and self.catalogue.claim is not None and not self.in_memory:
            self._keep_recordings()

    def _keep_recordings(self) -> None:
        try:
            self.catalogue.keep_recordings(self.plan.settings.replay.failures)
        except CheckpointError as error:  # also if another driver owns the job: the next claim finds that out (I14)
            _LOG.warning("The recorded input of failed tasks cannot be looked after: %s", error)

    def _release_recordings(self, status: JobStatus) -> None:
        """Delete recordings with the checkpoints under them if no checkpoint is kept: `latest` must not find one."""
        if self.catalogue.recordings and not self.catalogue.keeps_any():
            try:
                self.catalogue.delete_recordings(but_those_without_checkpoint=status is JobStatus.FAILED)
            except CheckpointError as error:
                _LOG.warning("The recorded input of failed tasks could not be deleted: %s", error)
            self._delete_discarded()

    def go_back(self, damage: CorruptCheckpointError) -> None:
        """Let the next attempt restore an older checkpoint, because the last one's is damaged (I16).

        Raises CorruptCheckpointError when there is no older one, or when the job may not go back by itself.
        """
        damaged = self._restored()
        if damaged is None:
            raise damage
        going_back = GoingBack.of(self.plan, results_given_out=bool(self.catalogue.manifests))
        older = choose_restore(damaged.store, damaged.path, damage, going_back)
        own = self.catalogue.went_back(older)
        self.ledger = self.ledger.went_back(own)
        if own is None:
            self._recovery = older

    def job_ended(self, status: JobStatus) -> None:
        """Delete the checkpoints that the policy does not keep, and unreferenced files: job and slots have ended."""
        try:
            self._apply(self.ledger.job_ended(status))
            self._release_recordings(status)
            if self.catalogue.claim is not None:
                self._sweep(self.catalogue.claim.attempt + 1)
        finally:
            self.requests.close(f"Job '{self.plan.job_name}' has ended ({status.name}).")

    # -- between epochs -----------------------------------------------------------------------------------------------

    def take_requests(self) -> None:
        """Pass the users' new requests to the ledger."""
        for request in self.requests.take():
            self._apply(self.ledger.request(request))

    def hold_back(self, behind: bool) -> None:
        """Trigger only requested checkpoints while the reader of the job's results is far behind."""
        self.ledger = self.ledger.with_reader_behind(behind)

    def expire(self, spared: Collection[int] = ()) -> None:
        """Abort the checkpoints that reached their timeout (I22), except `spared` ones."""
        self._apply(self.ledger.expire(self._now_ms(), spared))

    def expires_in_ms(self, spared: Collection[int] = ()) -> float | None:
        """The time until the next pending checkpoint expires, except `spared` ones; None: none does."""
        expires_ms = self.ledger.next_expiry_ms(spared)
        return None if expires_ms is None else max(0.0, expires_ms - self._now_ms())

    def waits_for_completion(self) -> bool:
        """Whether a checkpoint is due and waits only for pending ones to complete."""
        return self.ledger.waits_for_completion(self._now_ms())

    def next_order(self, unread: Mapping[int, Sequence[int]]) -> CheckpointOrder | None:
        """The barrier of the next epoch, if one is due. `unread`: the partitions left of each DataFrame source."""
        self.expire()
        now_ms = self._now_ms()  # read once: statistics count from the same moment as the timeout
        self.ledger, decisions = self.ledger.trigger(now_ms, self.clock.wall_ms())
        for decision in decisions:
            if isinstance(decision, TriggerCheckpoint):
                self.tracker.triggered(decision, now_ms)
                return self._order(decision, any(unread.values()))
        return None

    def _order(self, trigger: TriggerCheckpoint, frames_left: bool) -> CheckpointOrder | None:
        drain = trigger.request is not None and trigger.request.drain
        savepoint: SavepointPlace | None = None
        if trigger.kind.is_savepoint:
            try:
                if drain and frames_left:
                    raise CheckpointError(
                        "A job whose DataFrame source is not read to its end cannot be drained: stop it without drain."
                    )
                savepoint = self._savepoint_place(trigger)
            except CheckpointError as error:
                reason = CheckpointFailureReason.IO_EXCEPTION
                self._apply(self.ledger.abort(trigger.id, reason, str(error), self._now_ms()))
                return None
        full = trigger.kind.is_savepoint or (trigger.request is not None and trigger.request.full)
        incremental = self.enabled and self.plan.settings.checkpoints.incremental and not full
        base_id = trigger.base_id if incremental else None
        self._under_way[trigger.id] = CheckpointUnderWay(base_id, savepoint)
        kind, at_ms = flink_type(trigger.kind), trigger.timestamp_ms
        _LOG.info("Triggering checkpoint %d (type=%s) @ %d for job %s.", trigger.id, kind, at_ms, self.job_id)
        reach(CrashPoint.BEFORE_CUT)
        storage = None
        if savepoint is not None:
            max_memory_bytes = self.plan.settings.checkpoints.max_memory_bytes
            storage = Storage(savepoint.store.url, savepoint.folder, max_memory_bytes)
        return CheckpointOrder(trigger.id, at_ms, base_id, trigger.kind.is_savepoint, storage=storage, drain=drain)

    def _savepoint_place(self, trigger: TriggerCheckpoint) -> SavepointPlace:
        requested = trigger.request.location if trigger.request is not None else None
        directory = requested or self.plan.settings.checkpoints.savepoint_directory
        return new_savepoint_place(self.job_id, directory, self.store_options)

    def cut_stands(self, order: CheckpointOrder, unread: Mapping[int, Sequence[int]]) -> None:
        """The epoch that carried the barrier counted. `unread`: the partitions left of each DataFrame source (I10)."""
        if order.id in self._under_way:
            self._under_way[order.id].unread = {node: tuple(partitions) for node, partitions in unread.items()}
        reach(CrashPoint.AFTER_CUT)
        self.events.emit(CutMade(order.id))
        self._apply(self.ledger.cut_stands(order.id))

    def on_message(self, message: CheckpointMessage) -> None:
        """Handle a slot's message about a checkpoint. A message that comes after the timeout is too late (I22)."""
        self.expire()
        subtask = message.chain, message.subtask
        match message:
            case CheckpointAcknowledged():
                under_way = self._under_way.setdefault(message.checkpoint, CheckpointUnderWay())
                base = None if under_way.base_id is None else self.catalogue.manifests.get(under_way.base_id)
                acknowledged = AcknowledgedSubtask.based_on(base, message)
                under_way.acknowledged[subtask] = acknowledged
                self.tracker.acknowledged(acknowledged, self._now_ms())
                self._apply(self.ledger.acknowledge(message.checkpoint, subtask))
            case CheckpointDeclined():
                self._decline(message, subtask)
            case SinksCommitted():
                self._notify_sources(self._commit_order.committed(subtask, message.checkpoint))
            case Committed():
                self._apply(self.ledger.commit_acknowledged(message.checkpoint, subtask))

    def _notify_sources(self, notice: NotifyComplete | None) -> None:
        if notice is not None:
            self._send(CheckpointCommitted(notice.id, notice.acknowledge))

    def _decline(self, declined: CheckpointDeclined, subtask: Subtask) -> None:
        """Abort a checkpoint and show the user's own traceback: in the error if the job fails, else in the log."""
        reasons = CheckpointFailureReason
        reason = reasons.CHECKPOINT_ASYNC_EXCEPTION if declined.asynchronous else reasons.CHECKPOINT_DECLINED
        step = self.ledger.decline(declined.checkpoint, subtask, declined.message, self._now_ms(), reason)
        traceback, decisions = with_own_paths(declined.traceback.rstrip()), step[1]
        if traceback and decisions and not any(isinstance(decision, FailJob) for decision in decisions):
            _LOG.warning("%s", traceback)
        self._apply(step, traceback)

    def input_ended(self) -> None:
        """Make the final checkpoint due, or without checkpoints end the job: every task has finished."""
        self._apply(self.ledger.input_ended(self._now_ms()))

    def wait_ms(self) -> float | None:
        """How long to wait if no event comes before; None: until an event."""
        now = self._now_ms()
        wake = self.ledger.next_wake_ms(now)
        return None if wake is None else max(0.0, wake - now)

    # -- decisions ----------------------------------------------------------------------------------------------------

    def _apply(self, step: Step, traceback: str = "") -> None:
        """Keep the next ledger and carry out its decisions, the job's failure last: every request is answered before.

        `traceback`: that of the user's code, if it led to the decisions.
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
                self._commit_order.completed(decision)
                self._send(CheckpointCompleted(decision.id, decision.acknowledge, self._commit_order.sources_wait))
                reach(CrashPoint.AFTER_NOTIFY)
            case Aborted():
                self._abort(decision)
            case Discard(checkpoints=checkpoints):
                self.catalogue.discard(each.id for each in checkpoints)
                self._delete_discarded()
            case DiscardLate():
                self._delete_aborted(decision.id)
            case Answer():
                self.requests.answer(decision)
            case ResumeInput():
                _LOG.warning("Job '%s' was not stopped and goes on.", self.plan.job_name)
            case EndJob():
                self.ended = True

    def _publish(self, checkpoint: PendingCheckpoint) -> None:
        under_way = self._under_way[checkpoint.id]
        duration_ms = round(self._now_ms() - checkpoint.triggered_ms)
        manifest = under_way.manifest(self.plan, self.catalogue.owner, checkpoint, duration_ms)
        reach(CrashPoint.BEFORE_PUBLISH)
        try:
            location = self.catalogue.publish(checkpoint, manifest, under_way.savepoint)
        except OwnershipLostError:
            raise
        except CheckpointError as error:
            self._apply(self.ledger.publish_failed(checkpoint.id, str(error), self._now_ms()))
            return
        if self._claim_watch is not None:
            self._claim_watch.looked()
        reach(CrashPoint.AFTER_PUBLISH)
        del self._under_way[checkpoint.id]
        self._apply(self.ledger.published(checkpoint.id, location, self._now_ms()))

    def _completed(self, done: CompletedCheckpoint) -> None:
        took = self.tracker.completed(done, self.catalogue.external_path(done))
        size, duration_ms = took.state_size, took.end_to_end_duration_ms
        _LOG.info("Completed checkpoint %d for job %s (%d bytes in %d ms).", done.id, self.job_id, size, duration_ms)
        if done.kind.is_savepoint:
            _LOG.info("Savepoint %d is at %s.", done.id, done.location)
        if done.kind.is_in_line:
            self.events.emit(CutCovered(done.id))

    def _abort(self, aborted: Aborted) -> None:
        subsumed = aborted.reason is CheckpointFailureReason.CHECKPOINT_SUBSUMED
        _LOG.log(
            logging.INFO if subsumed else logging.WARNING,
            "%s %d was aborted: %s %s",
            "Savepoint" if aborted.kind.is_savepoint else "Checkpoint",
            aborted.id,
            aborted.reason.text,
            aborted.message,
        )
        self.tracker.aborted(aborted, self._now_ms())
        if aborted.notify:
            self._send(CheckpointAborted(aborted.id))
        self._delete_aborted(aborted.id)
        self._delete_discarded()  # its base may be among them

    def _delete_aborted(self, checkpoint_id: int) -> None:
        """Delete the files of an aborted checkpoint. Of a savepoint the place is kept: slots may still write there."""
        aborted = self._under_way.pop(checkpoint_id, CheckpointUnderWay())
        self.catalogue.delete_aborted(checkpoint_id, aborted.files(checkpoint_id), aborted.savepoint)
        if aborted.savepoint is not None:
            self._under_way[checkpoint_id] = CheckpointUnderWay(savepoint=aborted.savepoint)

    def _delete_discarded(self) -> None:
        """Delete the checkpoints that the ledger has discarded, except the bases of pending ones."""
        bases = {each.base_id for each in self._under_way.values() if each.base_id is not None}
        self.tracker.discarded(self.catalogue.delete_discarded(bases))

    def _sweep(self, before_attempt: int) -> None:
        for checkpoint_id, left in self._under_way.items():
            if left.savepoint is not None:
                self.catalogue.delete_aborted(checkpoint_id, (), left.savepoint)
        self._under_way.clear()
        self._delete_discarded()
        self.catalogue.sweep(before_attempt)

    def _now_ms(self) -> float:
        return self.clock.monotonic() * 1000
