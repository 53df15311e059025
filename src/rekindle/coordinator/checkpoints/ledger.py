"""Decides which checkpoint to trigger, publish, abort and delete. Pure; `driver.py` carries out the decisions.

`schedule.py` says when the next one may be triggered, and which kind is due.

A checkpoint is TRIGGERED when its barrier is sent with an epoch, ACKNOWLEDGING once that epoch counted (the cut stands,
I3), PUBLISHING once every subtask has acknowledged, and COMPLETED once its `_metadata` exists. Until then it can be
ABORTED; while it is PUBLISHING only the store's answer ends it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.schedule import Schedule
from rekindle.coordinator.checkpoints.types import (
    RETAINED_AT_END,
    Aborted,
    Answer,
    CheckpointFailureReason,
    CheckpointKind,
    CheckpointRequest,
    CheckpointState,
    Completed,
    CompletedCheckpoint,
    Decision,
    Discard,
    DiscardLate,
    Ending,
    EndJob,
    FailJob,
    NotifyComplete,
    PendingCheckpoint,
    Publish,
    ResumeInput,
    Subtask,
    TriggerCheckpoint,
)
from rekindle.graph.settings import CheckpointPolicy

_MAX_REQUESTS = 1000
#: The number of aborted ids to remember: the files of a late acknowledgement are deleted, those of a completed
#: checkpoint are not.
_REMEMBERED_ABORTS = 64


@dataclass(frozen=True)
class CheckpointLedger:
    """The state of a job's checkpoints, over all its attempts.

    A method that returns a `Step` gives the next ledger and the decisions, in the order in which to carry them out.
    Times are monotonic milliseconds; `wall_ms` is the time that people and user functions see.

    >>> ledger = CheckpointLedger(CheckpointPolicy(interval_ms=1000), frozenset({(0, 0)}))
    >>> ledger, _ = ledger.attempt_started(now_ms=0)
    >>> ledger.trigger(now_ms=999, wall_ms=5)[1]
    ()
    >>> ledger, (trigger,) = ledger.trigger(now_ms=1000, wall_ms=6)
    >>> ledger, _ = ledger.cut_stands(trigger.id)
    >>> ledger, (publish,) = ledger.acknowledge(trigger.id, (0, 0))
    >>> ledger, (completed, notify) = ledger.published(publish.checkpoint.id, "chk-1", now_ms=1010)
    >>> notify
    NotifyComplete(id=1, acknowledge=False)
    """

    policy: CheckpointPolicy
    subtasks: frozenset[Subtask]
    last_id: int = 0
    base_id: int | None = None
    running: bool = False
    schedule: Schedule = field(default_factory=Schedule)
    failures: int = 0  # in a row
    pending: tuple[PendingCheckpoint, ...] = ()
    requests: tuple[CheckpointRequest, ...] = ()
    completed: tuple[CompletedCheckpoint, ...] = ()  # the job's own, oldest first; at most `num_retained`
    restore_point: CompletedCheckpoint | None = None  # the checkpoint that a restart restores
    aborted_ids: tuple[int, ...] = ()
    input_over: bool = False  # the input has ended while a stop is under way, without periodic checkpoints
    ending: Ending | None = None
    ended: JobStatus | None = None

    # -- attempts -----------------------------------------------------------------------------------------------------

    def attempt_started(self, now_ms: float, restored: CompletedCheckpoint | None = None) -> Step:
        """Every function is open with the state of `restored`. Must not be called while a checkpoint is `publishing`.

        Deltas are based on `restored` only if this run made it: files of another timeline are not its own (I14).
        """
        assert not self.publishing, "the outcome of a publication decides from where to restart"
        assert all(restored and each.id <= restored.id for each in self.completed), "call `went_back` first"
        own = any(each.is_same(restored) for each in self.completed)
        ledger = replace(
            self,
            last_id=max(self.last_id, restored.id if restored else 0),
            base_id=restored.id if restored and own else None,
            running=True,
            schedule=self.schedule.begun(self.policy, now_ms),
            restore_point=restored,
            input_over=False,
            ending=None,
        )
        ending = self.ending if self.ending is not None and self.ending.checkpoint.is_same(restored) else None
        if restored is not None and (restored.kind is CheckpointKind.FINAL or ending is not None):
            # Only the commits are left to do (I9, I17).
            return ledger._end_with(restored, ending.request if ending else None)
        return ledger, ()

    def attempt_failed(self, message: str = "") -> Step:
        """The attempt has failed, its tasks are gone. A checkpoint that is `publishing` stays pending."""
        ledger = replace(self, running=False, schedule=self.schedule.with_final(None), input_over=False)
        return ledger._abort_rest(CheckpointFailureReason.JOB_FAILOVER_REGION, message)

    def numbered_above(self, checkpoint_id: int) -> CheckpointLedger:
        """The ledger whose next checkpoint gets a higher id than this one."""
        return replace(self, last_id=max(self.last_id, checkpoint_id))

    def went_back(self, older: CompletedCheckpoint | None) -> CheckpointLedger:
        """The ledger after damage (I16): the next attempt restores `older`, a checkpoint of this run, and newer ones
        are forgotten. None: the next attempt restores a checkpoint of another run.
        """
        if older is None:
            return replace(self, restore_point=None, completed=())
        before = tuple(each for each in self.completed if each.id < older.id)
        return replace(self, restore_point=older, completed=(*before, older))

    def job_ended(self, status: JobStatus) -> Step:
        """Abort pending checkpoints and delete completed ones, unless the policy keeps them: the job has ended."""
        ledger = replace(self, running=False, schedule=self.schedule.with_final(None), ended=status)
        ledger, decisions = ledger._abort_rest(CheckpointFailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN, "")
        if ledger.ending is not None and ledger.ending.awaiting and ledger.ending.request is not None:
            decisions = (*decisions, _half_stopped(ledger.ending.request, ledger.ending.checkpoint))
        ledger, more = replace(ledger, ending=None)._discard_old()
        return ledger, (*decisions, *more)

    def input_ended(self, now_ms: float) -> Step:
        """Every source is exhausted and every task finished: the final checkpoint is due (I9)."""
        if self.policy.enabled:
            return replace(self, schedule=self.schedule.with_final(now_ms)), ()
        if self.holds_input:
            # A stop is under way: its savepoint has to complete first.
            return replace(self, input_over=True), ()
        return self, (EndJob(),)

    # -- triggers -----------------------------------------------------------------------------------------------------

    def request(self, request: CheckpointRequest) -> Step:
        """Queue a request for a checkpoint or savepoint; `trigger` takes it regardless of interval and pause."""
        reasons = CheckpointFailureReason
        if not self.running:
            return self, (request.refused(reasons.NOT_ALL_REQUIRED_TASKS_RUNNING),)
        if self.holds_input or any(each.kind is CheckpointKind.STOP for each in self.requests):
            return self, (request.refused(reasons.CHECKPOINT_COORDINATOR_SUSPEND, "The job is about to end."),)
        if len(self.requests) >= _MAX_REQUESTS:
            return self, (request.refused(reasons.TOO_MANY_CHECKPOINT_REQUESTS),)
        return replace(self, requests=(*self.requests, request)), ()

    def trigger(self, now_ms: float, wall_ms: int) -> Step:
        """Trigger the checkpoint that the next epoch carries, if one is due: at most one `Trigger`."""
        if not self._takes_triggers:
            return self, ()
        due = self.schedule.due_now(self.policy, self.requests, len(self.pending), now_ms)
        if due is None:
            return self, ()
        kind, request = due
        checkpoint = PendingCheckpoint(
            id=self.last_id + 1,
            kind=kind,
            state=CheckpointState.TRIGGERED,
            triggered_ms=now_ms,
            timestamp_ms=wall_ms,
            subtasks=self.subtasks,
            awaiting=self.subtasks,
            request=request,
        )
        ledger = replace(
            self,
            last_id=checkpoint.id,
            pending=(*self.pending, checkpoint),
            requests=_without(self.requests, request),
        )
        if kind is CheckpointKind.CHECKPOINT and request is None:
            ledger = replace(ledger, schedule=self.schedule.after_periodic(self.policy, now_ms))
        return ledger, (TriggerCheckpoint(checkpoint.id, kind, wall_ms, self.base_id, request),)

    def next_wake_ms(self, now_ms: float) -> float | None:
        """When to call `expire` and `trigger` again if no event comes before; None: only after an event."""
        turn_ms = None
        if self._takes_triggers:
            turn_ms = self.schedule.next_turn_ms(self.policy, self.requests, len(self.pending), now_ms)
        moments = [moment for moment in (self.next_expiry_ms(), turn_ms) if moment is not None]
        return max(now_ms, min(moments)) if moments else None

    def next_expiry_ms(self, spared: Collection[int] = ()) -> float | None:
        """When the next pending checkpoint reaches its timeout, except `spared` ones."""
        moments = [each.triggered_ms + self.policy.timeout_ms for each in self._expiring(spared)]
        return min(moments, default=None)

    def waits_for_completion(self, now_ms: float) -> bool:
        """Whether a periodic checkpoint is due and waits only for pending ones whose cut stands to complete."""
        cut = all(each.state is not CheckpointState.TRIGGERED for each in self.pending)
        return self._takes_triggers and cut and self.schedule.is_held_back(self.policy, len(self.pending), now_ms)

    def with_reader_behind(self, behind: bool) -> CheckpointLedger:
        """The ledger for a reader of the results that is far behind, or not: then only requests are triggered."""
        if self.schedule.reader_behind == behind:
            return self
        return replace(self, schedule=replace(self.schedule, reader_behind=behind))

    @property
    def holds_input(self) -> bool:
        """Whether no more input is read: the job's last checkpoint is pending or being committed (I9, I17)."""
        return self.ending is not None or any(each.kind.is_last for each in self.pending)

    @property
    def publishing(self) -> tuple[PendingCheckpoint, ...]:
        """The pending checkpoints that only the store's answer ends."""
        return tuple(each for each in self.pending if each.state is CheckpointState.PUBLISHING)

    @property
    def _takes_triggers(self) -> bool:
        """Whether another checkpoint may follow: the attempt runs, and its last checkpoint is not under way."""
        return self.running and not self.holds_input

    # -- acknowledgements and timeouts --------------------------------------------------------------------------------

    def cut_stands(self, checkpoint_id: int) -> Step:
        """The epoch with the barrier counted (I3); only from then on can the checkpoint be published."""
        checkpoint = self._find(checkpoint_id)
        if checkpoint is None:
            return self, ()
        return self._put(checkpoint.moved(CheckpointState.ACKNOWLEDGING))._publish_ready()

    def acknowledge(self, checkpoint_id: int, subtask: Subtask) -> Step:
        """A subtask's snapshot is in the store. A repeated acknowledgement changes nothing; a late one is deleted."""
        checkpoint = self._find(checkpoint_id)
        if checkpoint is None:
            return self, (DiscardLate(checkpoint_id, subtask),) if checkpoint_id in self.aborted_ids else ()
        assert subtask in checkpoint.subtasks, f"checkpoint {checkpoint_id} has no subtask {subtask}"
        return self._put(replace(checkpoint, awaiting=checkpoint.awaiting - {subtask}))._publish_ready()

    def decline(
        self,
        checkpoint_id: int,
        subtask: Subtask,
        message: str,
        now_ms: float,
        reason: CheckpointFailureReason = CheckpointFailureReason.CHECKPOINT_DECLINED,
    ) -> Step:
        """Abort the checkpoint: a subtask could not make its snapshot."""
        checkpoint = self._find(checkpoint_id)
        if checkpoint is None or subtask not in checkpoint.awaiting:
            return self, ()
        return self._abort(checkpoint, reason, message, now_ms)

    def abort(self, checkpoint_id: int, reason: CheckpointFailureReason, message: str, now_ms: float) -> Step:
        """Abort a checkpoint whose barrier was not sent, for example without a savepoint directory."""
        checkpoint = self._find(checkpoint_id)
        if checkpoint is None or checkpoint.state is CheckpointState.PUBLISHING:
            return self, ()
        return self._abort(checkpoint, reason, message, now_ms, barrier_sent=False)

    def expire(self, now_ms: float, spared: Collection[int] = ()) -> Step:
        """Abort the checkpoints that reached their timeout, counted from the trigger (I22), except `spared` ones."""
        late = [each for each in self._expiring(spared) if now_ms - each.triggered_ms >= self.policy.timeout_ms]
        return self._abort_each(late, CheckpointFailureReason.CHECKPOINT_EXPIRED, "", now_ms)

    def commit_acknowledged(self, checkpoint_id: int, subtask: Subtask) -> Step:
        """A subtask has committed the job's last checkpoint. Commits of other checkpoints are not awaited."""
        ending = self.ending
        if ending is None or ending.checkpoint.id != checkpoint_id or not ending.awaiting:
            return self, ()
        ending = replace(ending, awaiting=ending.awaiting - {subtask})
        return replace(self, ending=ending), _end_of(ending)

    # -- publication --------------------------------------------------------------------------------------------------

    def published(self, checkpoint_id: int, location: str, now_ms: float) -> Step:
        """Complete the checkpoint, whose `_metadata` exists; it subsumes those before it and is never undone."""
        pending = self._get(checkpoint_id)
        pending.moved(CheckpointState.COMPLETED)
        done = CompletedCheckpoint(checkpoint_id, pending.kind, location, pending.timestamp_ms)
        ledger = replace(self._drop(pending), schedule=self.schedule.after_completion(now_ms))
        ledger, notices = ledger._completed(done, pending.request)
        ledger, subsumed = ledger._subsume(done, now_ms)
        ledger, discarded = ledger._discard_old()
        ledger, ready = ledger._publish_ready()
        return ledger, (Completed(done), *notices, *subsumed, *discarded, *ready)

    def publish_failed(self, checkpoint_id: int, message: str, now_ms: float) -> Step:
        """Abort the checkpoint: its `_metadata` certainly does not exist. If in doubt, ask the store first."""
        pending = self._get(checkpoint_id)
        assert pending.state is CheckpointState.PUBLISHING, f"checkpoint {checkpoint_id} is not being published"
        reason = CheckpointFailureReason.FINALIZE_CHECKPOINT_FAILURE
        ledger, decisions = self._abort(pending, reason, message, now_ms)
        ledger, more = ledger._publish_ready()
        return ledger, (*decisions, *more)

    def _publish_ready(self) -> Step:
        """Publish acknowledged checkpoints, one at a time in line: no lower id completes after a higher one."""
        ledger, decisions = self, list[Decision]()
        for each in self.pending:
            taken = each.kind.is_in_line and any(other.kind.is_in_line for other in ledger.publishing)
            if each.state is CheckpointState.ACKNOWLEDGING and not each.awaiting and not taken:
                ledger = ledger._put(each.moved(CheckpointState.PUBLISHING))
                decisions.append(Publish(ledger._get(each.id)))
        return ledger, tuple(decisions)

    def _completed(self, done: CompletedCheckpoint, request: CheckpointRequest | None) -> Step:
        """Make a completed checkpoint the restore point and base; notify the tasks and answer its request."""
        answers = () if request is None else (Answer(request.token, done),)
        if not done.kind.is_in_line:
            return self, answers
        ledger = replace(self, failures=0, restore_point=done)
        if not done.kind.is_savepoint:
            ledger = replace(ledger, base_id=done.id, completed=(*ledger.completed, done))
        if done.kind.is_last:
            return ledger._end_with(done, request)
        notices = (NotifyComplete(done.id, acknowledge=False),) if self.running else ()
        return ledger, (*notices, *answers)

    def _end_with(self, last: CompletedCheckpoint, request: CheckpointRequest | None) -> Step:
        ending = Ending(last, self.subtasks, request)
        ledger = replace(self, ending=ending)
        if not self.running:
            return ledger, ()
        return ledger, (NotifyComplete(last.id, acknowledge=True), *_end_of(ending))

    def _subsume(self, done: CompletedCheckpoint, now_ms: float) -> Step:
        lower = [each for each in self.pending if each.id < done.id and not each.kind.is_savepoint]
        reason = CheckpointFailureReason.CHECKPOINT_SUBSUMED
        return self._abort_each(
            lower if done.kind.is_in_line else [], reason, f"Checkpoint {done.id} came first.", now_ms
        )

    def _discard_old(self) -> Step:
        """Keep the newest `num_retained` completed checkpoints; after the job's end all, the last, or none."""
        over = self.ended is not None and self.ended not in RETAINED_AT_END[self.policy.retention]
        final = self.policy.keep_final and self.ended is JobStatus.FINISHED
        kept = () if over and not final else self.completed[-1 if over else -self.policy.num_retained :]
        gone = self.completed[: len(self.completed) - len(kept)]
        return replace(self, completed=kept), ((Discard(gone),) if gone else ())

    # -- aborts -------------------------------------------------------------------------------------------------------

    def _abort(
        self,
        checkpoint: PendingCheckpoint,
        reason: CheckpointFailureReason,
        message: str,
        now_ms: float,
        barrier_sent: bool = True,
    ) -> Step:
        checkpoint.moved(CheckpointState.ABORTED)
        ledger = replace(self._drop(checkpoint), aborted_ids=(*self.aborted_ids, checkpoint.id)[-_REMEMBERED_ABORTS:])
        aborted = Aborted(checkpoint.id, checkpoint.kind, reason, message, notify=self.running)
        request = checkpoint.request
        answers = () if request is None else (request.refused(reason, message),)
        if not self.running:
            return ledger, (aborted, *answers)
        if checkpoint.kind is CheckpointKind.STOP:
            return ledger, (aborted, *answers, *ledger._not_stopped(checkpoint, reason, message, barrier_sent))
        ledger, consequences = ledger._after_failure(checkpoint, reason, message, now_ms)
        return ledger, (aborted, *answers, *consequences)

    def _after_failure(
        self, checkpoint: PendingCheckpoint, reason: CheckpointFailureReason, message: str, now_ms: float
    ) -> Step:
        """Count a checkpoint's failure; enough in a row fail the job. A savepoint's failure only reaches its caller."""
        ledger = self
        if checkpoint.kind is CheckpointKind.FINAL:
            ledger = replace(ledger, schedule=self.schedule.with_final(now_ms + self.policy.final_retry_ms))
        if checkpoint.kind.is_savepoint or not reason.counts:
            return ledger, ()
        if self.failures < self.policy.tolerable_failures:
            return replace(ledger, failures=self.failures + 1), ()
        text = f"Checkpoint {checkpoint.id} failed: {reason.sentence(message)}"
        text = f"Exceeded checkpoint tolerable failure threshold ({self.policy.tolerable_failures}). {text}"
        return replace(ledger, failures=0), (FailJob(text),)

    def _not_stopped(
        self, stop: PendingCheckpoint, reason: CheckpointFailureReason, message: str, barrier_sent: bool
    ) -> tuple[Decision, ...]:
        """Let the job go on, unless its operators are drained by now (I17) or its input has ended meanwhile."""
        if barrier_sent and stop.request is not None and stop.request.drain:
            return (FailJob(f"Savepoint {stop.id} failed: {reason.sentence(message)}"),)
        return (ResumeInput(), *((EndJob(),) if self.input_over else ()))

    def _abort_each(
        self, doomed: Iterable[PendingCheckpoint], reason: CheckpointFailureReason, message: str, now_ms: float
    ) -> Step:
        ledger, decisions = self, list[Decision]()
        for each in doomed:
            ledger, more = ledger._abort(each, reason, message, now_ms)
            decisions += more
        return ledger, tuple(decisions)

    def _abort_rest(self, reason: CheckpointFailureReason, message: str) -> Step:
        """Abort every pending checkpoint except publishing ones, and refuse the queued requests: the tasks are gone."""
        assert not self.running, "a running attempt aborts with its time"
        doomed = [each for each in self.pending if each.state is not CheckpointState.PUBLISHING]
        ledger, decisions = self._abort_each(doomed, reason, message, 0.0)
        refused = [each.refused(reason, message) for each in self.requests]
        return replace(ledger, requests=()), (*decisions, *refused)

    # -- pending checkpoints ------------------------------------------------------------------------------------------

    def _expiring(self, spared: Collection[int]) -> list[PendingCheckpoint]:
        return [each for each in self.pending if each.can_expire and each.id not in spared]

    def _find(self, checkpoint_id: int) -> PendingCheckpoint | None:
        return next((each for each in self.pending if each.id == checkpoint_id), None)

    def _get(self, checkpoint_id: int) -> PendingCheckpoint:
        checkpoint = self._find(checkpoint_id)
        assert checkpoint is not None, f"checkpoint {checkpoint_id} is not pending"
        return checkpoint

    def _put(self, checkpoint: PendingCheckpoint) -> CheckpointLedger:
        return replace(self, pending=tuple(checkpoint if each.id == checkpoint.id else each for each in self.pending))

    def _drop(self, checkpoint: PendingCheckpoint) -> CheckpointLedger:
        return replace(self, pending=tuple(each for each in self.pending if each.id != checkpoint.id))


#: The next ledger, and the decisions to carry out.
Step = tuple[CheckpointLedger, tuple[Decision, ...]]


def _without(
    requests: tuple[CheckpointRequest, ...], request: CheckpointRequest | None
) -> tuple[CheckpointRequest, ...]:
    if request is None:
        return requests
    at = requests.index(request)
    return requests[:at] + requests[at + 1 :]


def _end_of(ending: Ending) -> tuple[Decision, ...]:
    if ending.awaiting:
        return ()
    answers = () if ending.request is None else (Answer(ending.request.token, ending.checkpoint),)
    return (*answers, EndJob())


def _half_stopped(request: CheckpointRequest, savepoint: CompletedCheckpoint) -> Answer:
    return Answer(
        request.token,
        savepoint,
        CheckpointFailureReason.TASK_FAILURE,
        f"A savepoint has been created at {savepoint.location}, but the job ended while it was stopping: the "
        "savepoint is consistent, and a job started from it commits what was not committed yet.",
    )
