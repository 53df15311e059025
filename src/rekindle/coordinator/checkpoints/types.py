"""Types of the checkpoint ledger: kinds, failure reasons, states, requests, messages and decisions. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from rekindle.common.job_status import JobStatus
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.protocol import CheckpointAcknowledged, CheckpointDeclined, Committed, SinksCommitted

#: A task that acknowledges checkpoints: (chain id, subtask index).
Subtask = tuple[int, int]
#: The messages of a slot about a checkpoint.
CheckpointMessage = CheckpointAcknowledged | CheckpointDeclined | SinksCommitted | Committed
#: The job's end states after which its checkpoints stay whatever the user configured: the job is not done, and the next
#: run must not commit its output a second time (I21).
_NOT_DONE = frozenset({JobStatus.FAILED, JobStatus.SUSPENDED})
#: The job's end states after which its checkpoints stay, by the user's setting.
RETAINED_AT_END: dict[ExternalizedCheckpointRetention, frozenset[JobStatus]] = {
    ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: _NOT_DONE | {JobStatus.CANCELED},
    ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION: _NOT_DONE,
    ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS: _NOT_DONE,
}


class CheckpointFailureReason(Enum):
    """Why a checkpoint, or a request for one, failed: Flink's names and texts.

    >>> CheckpointFailureReason.CHECKPOINT_EXPIRED.text
    'Checkpoint expired before completing.'
    """

    text: str
    counts: bool  # against `tolerable_failures`

    def __new__(cls, text: str, counts: bool) -> CheckpointFailureReason:
        reason = object.__new__(cls)
        reason._value_ = reason.text = text
        reason.counts = counts
        return reason

    def sentence(self, message: str = "") -> str:
        """The reason's text, followed by a message if there is one.

        >>> CheckpointFailureReason.CHECKPOINT_DECLINED.sentence("The disk is full.")
        'Checkpoint was declined. The disk is full.'
        """
        return f"{self.text} {message}".rstrip()

    TOO_MANY_CHECKPOINT_REQUESTS = ("The maximum number of queued checkpoint requests exceeded", False)
    NOT_ALL_REQUIRED_TASKS_RUNNING = ("Not all required tasks are currently running.", False)
    IO_EXCEPTION = ("An Exception occurred while triggering the checkpoint. IO-problem detected.", True)
    CHECKPOINT_ASYNC_EXCEPTION = ("Asynchronous task checkpoint failed.", True)
    CHECKPOINT_EXPIRED = ("Checkpoint expired before completing.", True)
    CHECKPOINT_SUBSUMED = ("Checkpoint has been subsumed.", False)
    CHECKPOINT_DECLINED = ("Checkpoint was declined.", True)
    CHECKPOINT_COORDINATOR_SHUTDOWN = ("CheckpointCoordinator shutdown.", False)
    CHECKPOINT_COORDINATOR_SUSPEND = ("Checkpoint Coordinator is suspending.", False)
    JOB_FAILOVER_REGION = ("FailoverRegion is restarting.", False)
    TASK_FAILURE = ("Task has failed.", False)
    FINALIZE_CHECKPOINT_FAILURE = ("Failure to finalize checkpoint.", True)
    TRIGGER_CHECKPOINT_FAILURE = ("Trigger checkpoint failure.", False)


class CheckpointKind(Enum):
    """The purpose of a checkpoint."""

    CHECKPOINT = "CHECKPOINT"  # periodic, or requested by the user
    FINAL = "FINAL"  # the last one of a bounded job (I9)
    SAVEPOINT = "SAVEPOINT"
    STOP = "SYNC_SAVEPOINT"  # stop with savepoint (I17)

    @property
    def is_savepoint(self) -> bool:
        """Whether the user owns it: self-contained, never subsumed, never deleted by the job."""
        return self in (CheckpointKind.SAVEPOINT, CheckpointKind.STOP)

    @property
    def is_last(self) -> bool:
        """Whether the job ends with it: no more input is read, and every commit is awaited."""
        return self in (CheckpointKind.FINAL, CheckpointKind.STOP)

    @property
    def is_in_line(self) -> bool:
        """Whether it subsumes checkpoints with lower ids, notifies the tasks, and may be restored by a restart."""
        return self is not CheckpointKind.SAVEPOINT


class CheckpointState(Enum):
    """The state of a checkpoint between its trigger and its end."""

    TRIGGERED = "TRIGGERED"
    ACKNOWLEDGING = "ACKNOWLEDGING"
    PUBLISHING = "PUBLISHING"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


#: The states that may follow each state; the diagram in `docs/architecture.md` is generated from this table.
TRANSITIONS: dict[CheckpointState, frozenset[CheckpointState]] = {
    CheckpointState.TRIGGERED: frozenset({CheckpointState.ACKNOWLEDGING, CheckpointState.ABORTED}),
    CheckpointState.ACKNOWLEDGING: frozenset({CheckpointState.PUBLISHING, CheckpointState.ABORTED}),
    CheckpointState.PUBLISHING: frozenset({CheckpointState.COMPLETED, CheckpointState.ABORTED}),
    CheckpointState.COMPLETED: frozenset(),
    CheckpointState.ABORTED: frozenset(),
}


@dataclass(frozen=True)
class CheckpointRequest:
    """A request for a checkpoint or savepoint; `token` identifies the caller that gets the `Answer`."""

    token: str
    kind: CheckpointKind
    location: str | None = None  # savepoints: the directory to write into
    format_type: str | None = None  # savepoints: CANONICAL or NATIVE
    drain: bool = False  # STOP: end event time and finish the operators first
    full: bool = False  # CHECKPOINT: write all state, not only what has changed

    def refused(self, reason: CheckpointFailureReason, message: str = "") -> Answer:
        """The answer that there is no checkpoint, and why."""
        return Answer(self.token, None, reason, reason.sentence(message))


@dataclass(frozen=True)
class PendingCheckpoint:
    """A checkpoint under way."""

    id: int
    kind: CheckpointKind
    state: CheckpointState
    triggered_ms: float
    timestamp_ms: int
    subtasks: frozenset[Subtask]
    awaiting: frozenset[Subtask]
    request: CheckpointRequest | None = None

    def moved(self, state: CheckpointState) -> PendingCheckpoint:
        """The same checkpoint in another state."""
        assert state in TRANSITIONS[self.state], f"checkpoint {self.id}: {self.state} -> {state}"
        return replace(self, state=state)

    @property
    def can_expire(self) -> bool:
        """Whether its epoch, or the acknowledgement of a subtask, is still awaited."""
        return self.state is CheckpointState.TRIGGERED or bool(self.awaiting)


@dataclass(frozen=True)
class CompletedCheckpoint:
    """A checkpoint whose `_metadata` is published."""

    id: int
    kind: CheckpointKind
    location: str
    timestamp_ms: int

    def is_same(self, other: CompletedCheckpoint | None) -> bool:
        """Whether both are the same files: the same id may exist in two timelines."""
        return other is not None and (self.id, self.location) == (other.id, other.location)


@dataclass(frozen=True)
class Ending:
    """The job's last checkpoint is complete; the commits of the subtasks in `awaiting` are outstanding."""

    checkpoint: CompletedCheckpoint
    awaiting: frozenset[Subtask]
    request: CheckpointRequest | None


@dataclass(frozen=True)
class TriggerCheckpoint:
    """Send this barrier with the next epoch. `base_id`: the last completed checkpoint, the base of deltas (I12)."""

    id: int
    kind: CheckpointKind
    timestamp_ms: int
    base_id: int | None
    request: CheckpointRequest | None


@dataclass(frozen=True)
class Publish:
    """Every subtask has acknowledged: write `_metadata`, then call `published` or `publish_failed`."""

    checkpoint: PendingCheckpoint


@dataclass(frozen=True)
class Completed:
    """The checkpoint is published: record it and release the results that it covers."""

    checkpoint: CompletedCheckpoint


@dataclass(frozen=True)
class NotifyComplete:
    """Notify every task, which then commits. `acknowledge`: the job ends with it, and each task reports its commit."""

    id: int
    acknowledge: bool


@dataclass(frozen=True)
class Aborted:
    """The checkpoint has failed: delete the files written for it and, with `notify`, tell every task."""

    id: int
    kind: CheckpointKind
    reason: CheckpointFailureReason
    message: str
    notify: bool


@dataclass(frozen=True)
class Discard:
    """Delete these completed checkpoints, each once no checkpoint under way is based on it."""

    checkpoints: tuple[CompletedCheckpoint, ...]


@dataclass(frozen=True)
class DiscardLate:
    """Delete the files of a subtask that acknowledged a checkpoint after its abort."""

    id: int
    subtask: Subtask


@dataclass(frozen=True)
class Answer:
    """The outcome of a request: the checkpoint, or the reason why there is none."""

    token: str
    checkpoint: CompletedCheckpoint | None = None
    reason: CheckpointFailureReason | None = None
    message: str = ""


@dataclass(frozen=True)
class FailJob:
    """Fail the attempt with this message; the restart strategy decides about the job."""

    message: str


@dataclass(frozen=True)
class ResumeInput:
    """A stop with savepoint has failed: the job goes on (I17)."""


@dataclass(frozen=True)
class EndJob:
    """Every commit is done: close the functions; the job is FINISHED."""


Decision = (
    TriggerCheckpoint
    | Publish
    | Completed
    | NotifyComplete
    | Aborted
    | Discard
    | DiscardLate
    | Answer
    | FailJob
    | ResumeInput
    | EndJob
)
