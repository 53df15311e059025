"""Sinks that commit in two phases: writers take records, committers make them visible when a checkpoint is complete.

At a checkpoint's barrier a writer is flushed and asked for its committables, which go into the checkpoint. When the
checkpoint is complete they are committed, and once more after a restore: `Committer.commit` must be idempotent (I18).
Methods count by name: a sink need not extend these classes.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rekindle.common.typeinfo import infer_type_info
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

# -- where a writer or committer finds itself -------------------------------------------------------------------------


@dataclass(frozen=True)
class InitContext:
    """Which subtask of which job this is. Staging names need all of timeline, attempt and subtask to be unique (I14).

    >>> WriterInitContext(subtask=1, parallelism=2, timeline="00000001-0a1b2c3d", attempt=3).staging_prefix()
    '00000001-0a1b2c3d-3-1'
    """

    subtask: int = 0
    parallelism: int = 1
    job_name: str = ""
    job_id: str = ""
    task_name: str = ""
    #: Begins anew with every restore by hand; never the same again.
    timeline: str = ""
    #: Counts over all drivers of the job: the larger one is the newer one.
    attempt: int = 0
    #: How often this run of the program was restarted, as `RuntimeContext` tells it.
    attempt_number: int = 0
    restored_checkpoint_id: int | None = None
    #: A directory of this process alone; it is removed when the process ends, however it ends.
    directory: str = ""
    metric_group: MetricGroup | None = field(default=None, compare=False)

    def get_index_of_this_subtask(self) -> int:
        """From 0."""
        return self.subtask

    def get_number_of_parallel_subtasks(self) -> int:
        """The sink's parallelism."""
        return self.parallelism

    def get_attempt_number(self) -> int:
        """0 for the first attempt of this run of the program."""
        return self.attempt_number

    def get_restored_checkpoint_id(self) -> int | None:
        """The checkpoint that was restored; None on a first run."""
        return self.restored_checkpoint_id

    def get_metrics_group(self) -> MetricGroup | None:
        """Where to register metrics; None outside a job."""
        return self.metric_group

    def staging_prefix(self) -> str:
        """Unique to this subtask of this attempt: for names of what is staged."""
        return f"{self.timeline}-{self.attempt}-{self.subtask}"


@dataclass(frozen=True)
class WriterInitContext(InitContext):
    """What a writer learns when it is made."""


@dataclass(frozen=True)
class CommitterInitContext(InitContext):
    """What a committer learns when it is made."""


# -- writers ----------------------------------------------------------------------------------------------------------


class SinkWriter(ABC, Generic[InputT]):
    """Writes the records of one subtask. All methods are called on the task's own thread."""

    class Context(ABC):
        """What a writer may ask about the record it is given."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp in milliseconds; None if it has none."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark of this operator."""

    @abstractmethod
    def write(self, element: InputT, context: SinkWriter.Context) -> None:
        """Write one record; it may stay in a buffer until `flush`."""

    @abstractmethod
    def flush(self, end_of_input: bool) -> None:
        """Write what is buffered: at every barrier, and, with True, once after the last record."""

    def write_watermark(self, watermark: int) -> None:
        """Event time has advanced to `watermark`, in milliseconds."""

    def close(self) -> None:
        """Give back what was opened, also after a failure; what was not handed over by then is never committed."""


class StatefulSinkWriter(SinkWriter[InputT], Generic[InputT, StateT]):
    """A writer with state of its own."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[StateT]:
        """At the barrier, after `flush` and `prepare_commit`: the state, as elements that any subtask can take."""


class CommittingSinkWriter(SinkWriter[InputT], Generic[InputT, CommittableT]):
    """A writer whose output becomes visible by a commit."""

    @abstractmethod
    def prepare_commit(self) -> list[CommittableT]:
        """After `flush`: one committable for everything written since the last time, or several, or none.

        What they stand for must survive this process, and be invisible until it is committed.
        """


# -- committers -------------------------------------------------------------------------------------------------------


class CommitRequest(ABC, Generic[CommittableT]):
    """One committable to be committed. A request about which nothing is said counts as committed."""

    @abstractmethod
    def get_committable(self) -> CommittableT:
        """What the writer handed over."""

    @abstractmethod
    def get_number_of_retries(self) -> int:
        """How often it was tried before; a restart counts as one: it may have been committed before that."""

    @abstractmethod
    def signal_failed_with_known_reason(self, error: BaseException) -> None:
        """It can never be committed, and one can live with that: it is logged and dropped."""

    @abstractmethod
    def signal_failed_with_unknown_reason(self, error: BaseException) -> None:
        """It is not known what happened: the job fails, and recovery commits again. An exception does the same."""

    @abstractmethod
    def retry_later(self) -> None:
        """Not now: it stays in the checkpoints, and is tried again with the next one."""

    @abstractmethod
    def update_and_retry_later(self, committable: CommittableT) -> None:
        """As `retry_later`, with another committable in its place, as when a part of it was committed."""

    @abstractmethod
    def signal_already_committed(self) -> None:
        """It was committed before, as after a restart."""


class Committer(ABC, Generic[CommittableT]):
    """Makes visible what writers have staged. Called on the task's own thread."""

    @abstractmethod
    def commit(self, requests: list[CommitRequest[CommittableT]]) -> None:
        """Commit all of them, oldest first. Idempotent: after a failure the same committables come again (I18)."""

    def sweep(self) -> None:
        """Remove what attempts of the same timeline before this one have staged and will never commit.

        Called on the first subtask, once in an attempt, when all committables of the restored checkpoint were
        committed on all subtasks: what is left of older attempts then belongs to no checkpoint.
        """

    def close(self) -> None:
        """Give back what was opened."""


# -- sinks ------------------------------------------------------------------------------------------------------------


class SinkSerializer(Protocol):
    """How a sink turns its committables or its writer's state into bytes; the bytes live in checkpoints."""

    def serialize(self, obj: Any) -> bytes:
        """As bytes."""
        ...

    def deserialize(self, data: bytes) -> Any:
        """From bytes that this version of the program, or an older one, wrote."""
        ...


class TypedSerializer:
    """A `SinkSerializer` for a declared type: a dataclass, a NamedTuple, a Struct, or anything else with a type hint.

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
        """`type_hint`: what `output_type=` takes."""
        self._codec = value_codec_for(infer_type_info(type_hint))

    def serialize(self, obj: Any) -> bytes:
        """As bytes."""
        return self._codec.encode(obj)

    def deserialize(self, data: bytes) -> Any:
        """From bytes."""
        return self._codec.decode(data)


class Sink(ABC, Generic[InputT]):
    """Describes where records go. It is shipped to the slots, which make a writer of it in each subtask.

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
        """A writer, when there is no state to restore."""


class SupportsWriterState(ABC, Generic[InputT, StateT]):
    """A sink whose writers have state: `create_writer` gives a `StatefulSinkWriter`.

    State is plain data (numbers, strings, bytes, tuples, lists, dicts, sets, times, registered dataclasses), or what a
    method `get_writer_state_serializer()` returns turns it into bytes: see `SinkSerializer`.
    """

    @abstractmethod
    def restore_writer(
        self, context: WriterInitContext, recovered_state: list[StateT]
    ) -> StatefulSinkWriter[InputT, StateT]:
        """A writer that goes on from this subtask's share of the states, which is not empty."""


class SupportsCommitter(ABC, Generic[CommittableT]):
    """A sink whose output is committed: `create_writer` gives a `CommittingSinkWriter`.

    Committables are plain data as in `SupportsWriterState`, or what a method `get_committable_serializer()` returns
    turns them into bytes, or `CommittableFile`s.
    """

    @abstractmethod
    def create_committer(self, context: CommitterInitContext) -> Committer[CommittableT]:
        """A committer; it may have to commit what writers of other subtasks, or of a dead process, have staged."""


@dataclass(frozen=True)
class CommittableFile:
    """A committable that is a local file. Its content is put into the checkpoint, so that it can be committed although
    the machine of its writer is gone; after a restore it is a local file again, at another path.

    `prepare_commit` hands the file over: nobody writes to it any more, and Rekindle removes it when its commit is over.
    A committer reads, copies or links it; it does not move it away.

    >>> CommittableFile("/scratch/part-0", metadata={"rows": 3}).name
    'part-0'
    """

    path: str
    #: Stays the same when the path changes; the file's own name, if none is given.
    name: str = ""
    #: Plain data; stays the same.
    metadata: Any = None

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", posixpath.basename(self.path))
