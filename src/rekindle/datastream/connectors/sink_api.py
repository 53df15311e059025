"""The interface of two-phase sinks: writers stage records, committers make them visible after a checkpoint completes.

At a checkpoint's barrier the engine flushes the writer and asks it for committables, which go into the checkpoint. They
are committed when the checkpoint is complete, and again after a restore: `Committer.commit` must be idempotent (I18).
The engine finds the methods by name, so a sink need not extend these classes.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.typeinfo import TypeInformation, infer_type_info
from rekindle.metrics import MetricGroup
from rekindle.serde import value_codec_for

__all__ = [
    "CommitRequest",
    "CommittableFile",
    "Committer",
    "CommitterInitContext",
    "CommittingSinkWriter",
    "InitContext",
    "Sink",
    "SinkSerializer",
    "SinkWriter",
    "StatefulSinkWriter",
    "SupportsCommitter",
    "SupportsWriterState",
    "TypedSerializer",
    "WriterInitContext",
]

InputT = TypeVar("InputT")
CommittableT = TypeVar("CommittableT")
StateT = TypeVar("StateT")

# -- contexts of writers and committers -------------------------------------------------------------------------------


@dataclass(frozen=True)
class InitContext:
    """The job and subtask of a writer or committer. Timeline, attempt and subtask make a staging name unique (I14).

    >>> WriterInitContext(subtask=1, parallelism=2, timeline="00000001-0a1b2c3d", attempt=3).staging_prefix()
    '00000001-0a1b2c3d-3-1'
    """

    subtask: int = 0
    parallelism: int = 1
    job_name: str = ""
    job_id: str = ""
    task_name: str = ""
    #: The sink's uid, which stays the same when the job is started again.
    uid: str = ""
    #: The id of the timeline. Every restore by hand begins a new timeline, whose id was never used before.
    timeline: str = ""
    #: The attempt's number, counted over all drivers of the job: a larger number is a newer attempt.
    attempt: int = 0
    #: When the driver claimed this attempt, in milliseconds since 1970. It is the same on all subtasks, and above that
    #: of every earlier attempt of the job and of the run whose checkpoint was restored, even if a clock went back.
    claimed_ms: int = 0
    #: The number of restarts in this run of the program, as in `RuntimeContext.get_attempt_number()`.
    restarts: int = 0
    restored_checkpoint_id: int | None = None
    #: The milliseconds between two checkpoints, or None if the job takes none by itself.
    checkpoint_interval_ms: int | None = None
    #: The number of checkpoints that may be incomplete at a time: those under way, and those that may fail in a row.
    incomplete_checkpoints: int = 1
    #: A directory for this process only. It is removed when the process ends, even if it is killed.
    directory: str = ""
    metric_group: MetricGroup | None = field(default=None, compare=False)

    def get_index_of_this_subtask(self) -> int:
        """Return the index of this subtask, from 0."""
        return self.subtask

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the sink's parallelism."""
        return self.parallelism

    def get_attempt_number(self) -> int:
        """Return the number of restarts in this run of the program; 0 for the first attempt."""
        return self.restarts

    def get_restored_checkpoint_id(self) -> int | None:
        """Return the id of the restored checkpoint, or None without a restore."""
        return self.restored_checkpoint_id

    def get_metrics_group(self) -> MetricGroup | None:
        """Return the group in which to register metrics, or None outside a job."""
        return self.metric_group

    def staging_prefix(self) -> str:
        """Return a prefix for staging names that is unique to this subtask of this attempt."""
        return f"{self.timeline}-{self.attempt}-{self.subtask}"


@dataclass(frozen=True)
class WriterInitContext(InitContext):
    """The context of a new writer."""


@dataclass(frozen=True)
class CommitterInitContext(InitContext):
    """The context of a new committer."""


# -- writers ----------------------------------------------------------------------------------------------------------


class SinkWriter(ABC, Generic[InputT]):
    """Writes the records of one subtask. All methods are called on the task's own thread."""

    class Context(ABC):
        """The context of the record being written."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's timestamp in milliseconds, or None if it has none."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark of this operator, in milliseconds."""

    @abstractmethod
    def write(self, element: InputT, context: SinkWriter.Context) -> None:
        """Write one record. It may stay in a buffer until `flush`."""

    @abstractmethod
    def flush(self, end_of_input: bool) -> None:
        """Write the buffered records. Called at every barrier, and once with True after the last record."""

    def write_watermark(self, watermark: int) -> None:
        """Handle a new watermark, in milliseconds."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Handle a completed checkpoint, after its commits. Best effort, as for functions."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Handle an aborted checkpoint: the next one covers what it would have covered."""

    def close(self) -> None:
        """Release resources, also after a failure. Output without a committable by then is never committed."""


class StatefulSinkWriter(SinkWriter[InputT], Generic[InputT, StateT]):
    """A writer with state, which checkpoints contain."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[StateT]:
        """Return the state as elements, each of which any subtask can take over.

        Called at the barrier, after `flush` and `prepare_commit`.
        """


class CommittingSinkWriter(SinkWriter[InputT], Generic[InputT, CommittableT]):
    """A writer whose output becomes visible by a commit."""

    @abstractmethod
    def prepare_commit(self) -> list[CommittableT]:
        """Return the committables for the output since the last call: one, several or none. Called after `flush`.

        The staged output must survive this process, and must be invisible until it is committed.
        """


# -- committers -------------------------------------------------------------------------------------------------------


class CommitRequest(ABC, Generic[CommittableT]):
    """A request to commit one committable. It counts as committed unless a method reports otherwise."""

    @abstractmethod
    def get_committable(self) -> CommittableT:
        """Return the writer's committable."""

    @abstractmethod
    def get_number_of_retries(self) -> int:
        """Return the number of earlier tries. A restart counts as one, because the try before it may have succeeded."""

    @abstractmethod
    def signal_failed_with_known_reason(self, error: BaseException) -> None:
        """Give up a committable that can never be committed. It is logged and dropped."""

    @abstractmethod
    def signal_failed_with_unknown_reason(self, error: BaseException) -> None:
        """Fail the job, so that recovery commits again. Raising an exception does the same."""

    @abstractmethod
    def retry_later(self) -> None:
        """Try again with the next checkpoint. Until then the committable stays in the checkpoints."""

    @abstractmethod
    def update_and_retry_later(self, committable: CommittableT) -> None:
        """Like `retry_later`, but replace the committable, for example after a part of it was committed."""

    @abstractmethod
    def signal_already_committed(self) -> None:
        """Report that the committable had been committed before, for example before a restart."""


class Committer(ABC, Generic[CommittableT]):
    """Makes the staged output of writers visible. Called on the task's own thread."""

    @abstractmethod
    def commit(self, requests: list[CommitRequest[CommittableT]]) -> None:
        """Commit all requests, oldest first. Must be idempotent: after a failure the same ones come again (I18)."""

    def sweep(self) -> None:
        """Remove staged output that earlier attempts of the same timeline will never commit.

        Called once per attempt, on the first subtask, after all subtasks have committed the committables of the
        restored checkpoint. Staged output of older attempts then belongs to no checkpoint.
        """

    def close(self) -> None:
        """Release resources."""


# -- sinks ------------------------------------------------------------------------------------------------------------


class SinkSerializer(Protocol):
    """Turns a sink's committables or writer state into bytes, which checkpoints contain."""

    def serialize(self, obj: Any) -> bytes:
        """Return the object as bytes."""
        ...

    def deserialize(self, data: bytes) -> Any:
        """Return the object from bytes that this version of the program, or an older one, wrote."""
        ...


class TypedSerializer:
    """A `SinkSerializer` for a declared type: a dataclass, a NamedTuple, a Struct, or any other type hint.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Staged:
    ...     path: str
    ...     rows: int
    >>> serializer = TypedSerializer(Staged)
    >>> serializer.deserialize(serializer.serialize(Staged("part-0", 3)))
    Staged(path='part-0', rows=3)
    """

    def __init__(self, type_hint: Any) -> None:
        """Create a serializer for a type hint, as `output_type=` takes it."""
        self._codec = value_codec_for(infer_type_info(type_hint))

    def serialize(self, obj: Any) -> bytes:
        """Return the object as bytes."""
        return self._codec.encode(obj)

    def deserialize(self, data: bytes) -> Any:
        """Return the object from bytes."""
        return self._codec.decode(data)


class Sink(RefusesJavaNames, ABC, Generic[InputT]):
    """Describes a destination of records. It is shipped to the slots, where each subtask creates a writer from it.

    >>> class Collecting(Sink):
    ...     def create_writer(self, context):
    ...         return CollectingWriter()
    >>> class CollectingWriter(SinkWriter):
    ...     written = []
    ...     def write(self, element, context):
    ...         self.written.append(element)
    ...     def flush(self, end_of_input):
    ...         pass
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sink = env.from_collection([1, 2]).sink_to(Collecting()).name("collect")
    """

    @abstractmethod
    def create_writer(self, context: WriterInitContext) -> SinkWriter[InputT]:
        """Return a writer. Called when there is no state to restore."""

    def for_stream_type(self, type_info: TypeInformation | None) -> Sink[InputT]:
        """Return the sink for a stream with this declared type, or with none: `sink_to` adds that one."""
        return self

    def exclusive_name(self, job_name: str) -> str | None:
        """Return what no other sink of the job may have too, as words for people; None: nothing.

        Two sinks of a job with the same are refused when the job is built.
        """
        return None


class SupportsWriterState(ABC, Generic[InputT, StateT]):
    """A sink whose writers have state: `create_writer` returns a `StatefulSinkWriter`.

    State is plain data (numbers, strings, bytes, tuples, lists, dicts, sets, times, registered dataclasses). For other
    data the sink needs a method `get_writer_state_serializer()`, which returns a `SinkSerializer`.
    """

    @abstractmethod
    def restore_writer(
        self, context: WriterInitContext, recovered_state: list[StateT]
    ) -> StatefulSinkWriter[InputT, StateT]:
        """Return a writer that continues from this subtask's share of the states, which is not empty."""


class SupportsCommitter(ABC, Generic[CommittableT]):
    """A sink whose output is committed: `create_writer` returns a `CommittingSinkWriter`.

    Committables are plain data as in `SupportsWriterState`, or `CommittableFile`s. For other data the sink needs a
    method `get_committable_serializer()`, which returns a `SinkSerializer`.
    """

    @abstractmethod
    def create_committer(self, context: CommitterInitContext) -> Committer[CommittableT]:
        """Return a committer. It may have to commit the output of writers of other subtasks or of a dead process.

        After a change of parallelism all committables of an old subtask come to one new subtask, in their order.
        """


@dataclass(frozen=True)
class CommittableFile:
    """A committable that is a local file, whose content goes into the checkpoint.

    So it can be committed even if the writer's machine is gone. After a restore it is a local file at another path.
    After `prepare_commit` the writer must not write to the file; Rekindle removes it after its commit. A committer may
    read, copy or link the file, but must not move it.

    >>> CommittableFile("/scratch/part-0", metadata={"rows": 3}).name
    'part-0'
    """

    path: str
    #: A name that stays the same when the path changes. By default, the base name of the path.
    name: str = ""
    #: Plain data for the committer.
    metadata: Any = None

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", posixpath.basename(self.path))
