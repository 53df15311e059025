"""Typed errors. Each message is one sentence for a person, with what to do."""

from __future__ import annotations

from dataclasses import dataclass


class RekindleError(Exception):
    """Base of every error that Rekindle raises on purpose."""


class ConfigurationError(RekindleError):
    """A configuration key or value that cannot be used."""


class GraphError(RekindleError):
    """The program describes a job that cannot exist (wrong types, impossible edges, duplicate uids)."""


class JavaOnlyError(RekindleError, AttributeError):
    """A part of PyFlink that is Java below: there is no Java Flink here, so it is refused by its name."""

    def __init__(self, name: str, instead: str | None = None) -> None:
        advice = "" if instead is None else f": {instead}"
        super().__init__(f"{name} is a Java object of PyFlink, and Rekindle has no Java Flink{advice}.")


class TypeMismatchError(RekindleError):
    """A value does not fit the type that was declared for it."""


class SerializationError(RekindleError):
    """A value cannot be encoded; the message names the path to it."""


class InvalidKeyError(RekindleError):
    """A key whose equality is not the equality of its encoding (I11)."""


class StateAccessError(RekindleError):
    """Keyed state was used where there is no current key."""


class StateBackendError(RekindleError):
    """The state backend cannot read or write its local files; the job goes back to its last checkpoint."""


class MissingTimestampError(RekindleError):
    """An element without a timestamp where event time is needed."""


class ClusterError(RekindleError):
    """Spark, or the machine below it, cannot do what the job needs."""


class JavaMissingError(ClusterError):
    """No Java 17 or newer was found."""


class ClusterGoneError(ClusterError):
    """Spark has ended and cannot be started again, so a restart of the job would fail the same way."""


class SlotLostError(ClusterError):
    """A slot process died or stopped answering."""


class ProtocolError(ClusterError):
    """A message was refused: wrong secret, older attempt, or an epoch that was seen before."""


class CommitError(RekindleError):
    """A sink could not commit what a completed checkpoint covers; a restart commits it again (I18)."""


class ConnectorError(RekindleError):
    """The system that a source reads or a sink writes is missing, damaged, full or refuses; the message names it."""


@dataclass(frozen=True)
class FailureOrigin:
    """Where a job failed: the subtask, the operator, the record if it is known, and the user's own traceback."""

    task: str
    operator: str
    subtask: int
    traceback: str
    #: The exception's type and message, the last lines of its traceback.
    summary: str
    record: str | None = None
    #: The URL of the recorded input, for `rekindle replay`.
    recording: str | None = None


class JobExecutionError(RekindleError):
    """The job failed. The message starts with the user's own traceback when user code was the cause."""

    def __init__(self, message: str, *, origin: FailureOrigin | None = None) -> None:
        super().__init__(message)
        #: Where it failed, if a task did.
        self.origin = origin


class OutputClosedError(JobExecutionError):
    """The reader of the program's output has gone, so its jobs end. No restart would bring it back."""


class JobCancelledError(RekindleError):
    """The job was cancelled before it finished."""


class CheckpointError(RekindleError):
    """A checkpoint or savepoint cannot be written, found or used."""


class StoreError(CheckpointError):
    """The store of checkpoints refused or failed; `retryable` says whether the same call may succeed later."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class MissingFileError(StoreError):
    """A file that is not in the store."""


class CheckpointNotFoundError(CheckpointError):
    """There is no checkpoint where one was asked for."""


class CorruptCheckpointError(CheckpointError):
    """A checkpoint that is damaged, foreign or of another format (I16)."""

    def __init__(
        self, message: str, *, alternative: str | None = None, path: str | None = None, damage: str | None = None
    ) -> None:
        super().__init__(message)
        #: Where the newest older good checkpoint is, if there is one.
        self.alternative = alternative
        #: The damaged checkpoint's folder in its store; None: no alternative was looked for yet.
        self.path = path
        #: The damage, without advice.
        self.damage = message if damage is None else damage


class IncompatibleStateError(CheckpointError):
    """The program, as it is now, cannot use the state that was saved."""


class ReplayError(RekindleError):
    """A failure cannot be replayed; the message says why, and what to do."""


class RecordingNotFoundError(ReplayError):
    """There is no recorded input where some was looked for."""


class OwnershipLostError(CheckpointError):
    """Another driver has taken over the job's checkpoints: this one may neither publish nor delete (I14)."""
