"""What the ledger of checkpoints decides; the shell (`checkpointing`) carries it out, in order."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.coordinator.checkpoint_types import (
    CheckpointFailureReason,
    CheckpointKind,
    CheckpointRequest,
    CompletedCheckpoint,
    PendingCheckpoint,
    Subtask,
)


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
