"""Types of the checkpoint ledger: kinds, failure reasons, states, policy, requests and decisions. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from rekindle import config
from rekindle.common.job_status import JobStatus
from rekindle.config_parsers import in_millis
from rekindle.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from rekindle.graph.settings import JobSettings

#: (chain, subtask): who acknowledges.
Subtask = tuple[int, int]


class CheckpointFailureReason(Enum):
    """Why a checkpoint, or a request for one, came to nothing: Flink's names and texts.

    >>> CheckpointFailureReason.CHECKPOINT_EXPIRED.text
    'Checkpoint expired before completing.'
    """

    text: str
    counts: bool  # against the tolerable failures

    def __new__(cls, text: str, counts: bool) -> CheckpointFailureReason:
        reason = object.__new__(cls)
        reason._value_ = reason.text = text
        reason.counts = counts
        return reason

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
    """What a checkpoint is for."""

    CHECKPOINT = "CHECKPOINT"  # periodic, or asked for by hand
    FINAL = "FINAL"  # the last one of a bounded job (I9)
    SAVEPOINT = "SAVEPOINT"
    STOP = "SYNC_SAVEPOINT"  # stop with savepoint (I17)

    @property
    def is_savepoint(self) -> bool:
        """Whether it belongs to the user: self-contained, never subsumed, never deleted by the job."""
        return self in (CheckpointKind.SAVEPOINT, CheckpointKind.STOP)

    @property
    def is_last(self) -> bool:
        """Whether the job ends with it: input is held, and every commit is awaited."""
        return self in (CheckpointKind.FINAL, CheckpointKind.STOP)

    @property
    def is_in_line(self) -> bool:
        """Whether it subsumes the lower ones, is told to listeners, and may be where a restart begins."""
        return self is not CheckpointKind.SAVEPOINT


class CheckpointState(Enum):
    """Where a checkpoint is in its life."""

    TRIGGERED = "TRIGGERED"
    ACKNOWLEDGING = "ACKNOWLEDGING"
    PUBLISHING = "PUBLISHING"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


#: The life of a checkpoint; the diagram in `docs/architecture.md` is drawn from it.
TRANSITIONS: dict[CheckpointState, frozenset[CheckpointState]] = {
    CheckpointState.TRIGGERED: frozenset({CheckpointState.ACKNOWLEDGING, CheckpointState.ABORTED}),
    CheckpointState.ACKNOWLEDGING: frozenset({CheckpointState.PUBLISHING, CheckpointState.ABORTED}),
    CheckpointState.PUBLISHING: frozenset({CheckpointState.COMPLETED, CheckpointState.ABORTED}),
    CheckpointState.COMPLETED: frozenset(),
    CheckpointState.ABORTED: frozenset(),
}

#: The ends of a job after which its checkpoints stay whatever the user asked for: it is not done, and whoever starts it
#: again must not commit its output once more (I21).
_NOT_DONE = frozenset({JobStatus.FAILED, JobStatus.SUSPENDED})
#: The ends of a job after which its checkpoints stay, by what the user asked for.
RETAINED_AT_END: dict[ExternalizedCheckpointRetention, frozenset[JobStatus]] = {
    ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: _NOT_DONE | {JobStatus.CANCELED},
    ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION: _NOT_DONE,
    ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS: _NOT_DONE,
}


@dataclass(frozen=True)
class CheckpointPolicy:
    """The settings of checkpoints; an interval of -1: none but those asked for by hand."""

    interval_ms: int = -1
    timeout_ms: int = in_millis(config.CHECKPOINT_TIMEOUT.default)
    min_pause_ms: int = in_millis(config.CHECKPOINT_MIN_PAUSE.default)
    max_concurrent: int = config.CHECKPOINT_MAX_CONCURRENT.default
    tolerable_failures: int = config.CHECKPOINT_TOLERABLE_FAILURES.default
    num_retained: int = config.CHECKPOINT_NUM_RETAINED.default
    retention: ExternalizedCheckpointRetention = ExternalizedCheckpointRetention[config.CHECKPOINT_RETENTION.default]
    #: Who starts the program again and again with `latest` must find that it had ended: the last checkpoint stays.
    keep_final: bool = False
    final_retry_ms: int = 1000  # so that a store that fails at once is not asked in a loop

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are made without being asked for."""
        return self.interval_ms > 0

    @staticmethod
    def from_settings(settings: JobSettings) -> CheckpointPolicy:
        """The policy in a plan's settings."""
        return CheckpointPolicy(
            interval_ms=settings.checkpoint_interval_ms,
            timeout_ms=settings.checkpoint_timeout_ms,
            min_pause_ms=settings.checkpoint_min_pause_ms,
            max_concurrent=settings.checkpoint_max_concurrent,
            tolerable_failures=settings.checkpoint_tolerable_failures,
            num_retained=settings.checkpoint_num_retained,
            keep_final=settings.resumes_latest,
            retention=settings.checkpoint_retention,
        )


@dataclass(frozen=True)
class CheckpointRequest:
    """A checkpoint that somebody asked for; `token` says to whom the `Answer` goes."""

    token: str
    kind: CheckpointKind
    location: str | None = None  # savepoints: the directory to write into
    format_type: str | None = None  # savepoints: CANONICAL or NATIVE
    drain: bool = False  # STOP: end event time and finish the operators first


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
        """The same in another state."""
        assert state in TRANSITIONS[self.state], f"checkpoint {self.id}: {self.state} -> {state}"
        return replace(self, state=state)

    @property
    def can_expire(self) -> bool:
        """Whether a subtask, or its epoch, is still waited for."""
        return self.state is CheckpointState.TRIGGERED or bool(self.awaiting)


@dataclass(frozen=True)
class CompletedCheckpoint:
    """A checkpoint that exists."""

    id: int
    kind: CheckpointKind
    location: str
    timestamp_ms: int

    def is_same(self, other: CompletedCheckpoint | None) -> bool:
        """Whether both are the same files: ids alone repeat over timelines."""
        return other is not None and (self.id, self.location) == (other.id, other.location)


@dataclass(frozen=True)
class Trigger:
    """Send this barrier with the next epoch. `base_id`: the last completed checkpoint, on which deltas stand (I12)."""

    id: int
    kind: CheckpointKind
    timestamp_ms: int
    base_id: int | None
    subtasks: frozenset[Subtask]
    request: CheckpointRequest | None


@dataclass(frozen=True)
class Publish:
    """Every subtask has acknowledged: write `_metadata`, then say `published` or `publish_failed`."""

    checkpoint: PendingCheckpoint


@dataclass(frozen=True)
class Completed:
    """The checkpoint exists."""

    checkpoint: CompletedCheckpoint


@dataclass(frozen=True)
class NotifyComplete:
    """Tell these subtasks; they commit and, when the job ends with it, say so (`commit_acknowledged`)."""

    id: int
    subtasks: frozenset[Subtask]
    acknowledge: bool


@dataclass(frozen=True)
class Aborted:
    """The checkpoint is as if never triggered: tell these subtasks, delete what they wrote."""

    id: int
    kind: CheckpointKind
    reason: CheckpointFailureReason
    message: str
    subtasks: frozenset[Subtask]
    base_id: int | None


@dataclass(frozen=True)
class Discard:
    """Delete these completed checkpoints; nothing needs them any more."""

    checkpoints: tuple[CompletedCheckpoint, ...]


@dataclass(frozen=True)
class DiscardLate:
    """Delete what this subtask wrote for a checkpoint that was aborted before it acknowledged."""

    id: int
    subtask: Subtask


@dataclass(frozen=True)
class Answer:
    """What a request came to: the checkpoint, or the reason why there is none."""

    token: str
    checkpoint: CompletedCheckpoint | None = None
    reason: CheckpointFailureReason | None = None
    message: str = ""


@dataclass(frozen=True)
class FailJob:
    """The attempt fails; the restart strategy has the next word."""

    id: int
    reason: CheckpointFailureReason
    message: str


@dataclass(frozen=True)
class ResumeInput:
    """A stop with savepoint came to nothing: the job goes on (I17)."""

    id: int


@dataclass(frozen=True)
class EndJob:
    """Everything is committed: close the functions; the job is FINISHED."""

    id: int | None


Decision = (
    Trigger
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
