"""The interface of polled sources: a `Source` creates splits and readers, a reader returns batches and positions.

The driver asks the source for its splits, once per run of a job without state, and hands them out to the subtasks.
From then on the readers' positions are the truth: they are in every checkpoint, and a restore hands them out again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.typeinfo import TypeInformation
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream.connectors.sink_api import Sink
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.state import OperatorStateStore
from rekindle.datastream.vocabulary import Boundedness
from rekindle.metrics import MetricGroup

__all__ = [
    "AddedSource",
    "Batch",
    "Boundedness",
    "DeliveryGuarantee",
    "Sink",
    "Source",
    "SourceReader",
    "SourceReaderContext",
    "SourceSplit",
    "StreamTransformer",
    "SupportsPreprocessing",
    "assign_splits",
]

T = TypeVar("T")


class DeliveryGuarantee(Enum):
    """The promise of a sink about records when the job fails and goes on from its checkpoint.

    >>> DeliveryGuarantee.EXACTLY_ONCE.name
    'EXACTLY_ONCE'
    """

    #: Each record is visible once.
    EXACTLY_ONCE = 0
    #: No record is lost; records since the last checkpoint may be written again.
    AT_LEAST_ONCE = 1
    #: Records may be lost and written again.
    NONE = 2


@dataclass(frozen=True)
class SourceSplit:
    """A part of a source that one reader reads, and the reading position in it.

    The position must be plain data (numbers, strings, tuples, lists, dicts), because checkpoints contain it.

    >>> SourceSplit("orders-0", 17).position
    17
    """

    split_id: str
    position: Any = None


@dataclass(frozen=True)
class Batch(Generic[T]):
    """Records, with their event times in milliseconds if they have any.

    `splits` says which records are of which split, as runs of (split id, number of records) in the records' order.
    A source that `has_watermarks_per_split` always says it: the subtask's watermark is the lowest of its splits'.

    >>> len(Batch(["a", "b"], [10, 20]))
    2
    >>> Batch(["a", "b", "c"], splits=[("0", 2), ("1", 1)]).splits
    [('0', 2), ('1', 1)]
    """

    records: list[T]
    timestamps: list[int] | None = None
    splits: list[tuple[str, int]] | None = None
    #: Splits that end with this batch: they do not hold back the watermark any more.
    finished_splits: Collection[str] = ()
    #: Values for side outputs, by their tag.
    side_outputs: Mapping[OutputTag, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.timestamps is not None and len(self.records) != len(self.timestamps):
            raise ValueError(f"A Batch of {len(self.records)} records has {len(self.timestamps)} timestamps.")
        if self.splits is not None and (counted := sum(count for _, count in self.splits)) != len(self.records):
            raise ValueError(f"A Batch of {len(self.records)} records has {counted} records in its splits.")

    def __len__(self) -> int:
        return len(self.records)


def _wake_nothing() -> None:
    """Wake nothing: the reader is outside a job."""


@dataclass(frozen=True)
class SourceReaderContext:
    """The subtask of a reader, its job, and the services that the job gives it."""

    index_of_subtask: int
    parallelism: int
    task_name: str = ""
    job_name: str = ""
    #: The id of the timeline. Every restore by hand begins a new timeline, whose id was never used before.
    timeline: str = ""
    #: The attempt's number, counted over all drivers of the job: a larger number is a newer attempt.
    attempt: int = 0
    #: Whether the job takes checkpoints by itself.
    checkpointing_enabled: bool = False
    #: The id of the restored checkpoint, if it holds state of this source; else None.
    restored_checkpoint_id: int | None = None
    metric_group: MetricGroup | None = field(default=None, compare=False)
    #: Whether anything reads the timestamps of a `Batch`; else a reader may save the time to find them.
    needs_timestamps: bool = True
    #: Operator state, for readers that keep more than positions of splits; None outside a job.
    operator_state_store: OperatorStateStore | None = field(default=None, compare=False)
    #: Tells the engine, from any thread, that `poll` has records: then it does not wait for its next look.
    wake_up: Callable[[], None] = field(default=_wake_nothing, compare=False)

    def is_restored(self) -> bool:
        """Return whether a restored checkpoint holds state of this source."""
        return self.restored_checkpoint_id is not None


class SourceReader(ABC, Generic[T]):
    """Reads the splits of one subtask. All methods are called on the task's own thread."""

    @abstractmethod
    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Return up to `max_records` records without waiting: an empty list if there are none now, None at the end."""

    def is_available(self) -> bool:
        """Return whether `poll` may have records. The call must be cheap and must not wait."""
        return True

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Return the splits, each positioned after the last record that `poll` returned.

        Splits that are read to their end may be left out, unless the source discovers splits: then they stay, so that
        nothing reads them again.
        """

    def add_splits(self, splits: list[SourceSplit]) -> None:
        """Read these splits too: the source has discovered them while the job runs. All of them are new."""
        raise NotImplementedError(f"{type(self).__name__} has no add_splits(), but its source discovers splits.")

    def pause_splits(self, paused: Collection[str]) -> None:
        """Return no records of these splits, but of all others, from the next `poll` on (watermark alignment).

        A reader without this method is not polled while one of its splits has to pause.
        """
        raise NotImplementedError

    def waiting_splits(self) -> Collection[str] | None:
        """Return the splits that have, or may have, records that `poll` has not returned yet. The call must not wait.

        A split outside them may become idle (`WatermarkStrategy.with_idleness`). None, the default: it is not known by
        split. Then splits count as without records after a `poll` that returned none, or if `is_available` says no.
        """
        return None

    def stage_reached(self) -> int | None:
        """Return the stage that this reader has reached, if all readers of the source go from stage to stage together.

        None, the default: the source has no stages. See `HybridSource`.
        """
        return None

    def all_reached(self, stage: int) -> None:
        """Take the stage that all readers of the source have reached."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Handle a completed checkpoint: its positions will not be read again. Best effort, as for functions."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Handle an aborted checkpoint: it is as if it had never been triggered."""

    def close(self) -> None:
        """Release resources."""


class Source(RefusesJavaNames, ABC, Generic[T]):
    """Describes a source of records. It is shipped to the slots, which create readers from it.

    >>> class Countdown(Source):
    ...     def boundedness(self):
    ...         return Boundedness.BOUNDED
    ...     def create_splits(self, parallelism):
    ...         return [SourceSplit("0", 3)]
    ...     def create_reader(self, context, splits):
    ...         return CountdownReader(splits)
    >>> class CountdownReader(SourceReader):
    ...     def __init__(self, splits):
    ...         self.left = [split.position for split in splits]
    ...     def poll(self, max_records):
    ...         if not any(self.left):
    ...             return None
    ...         self.left[0] -= 1
    ...         return [self.left[0]]
    ...     def snapshot_state(self, checkpoint_id):
    ...         return [SourceSplit("0", left) for left in self.left]
    >>> reader = Countdown().create_reader(SourceReaderContext(0, 1), Countdown().create_splits(1))
    >>> reader.poll(10), reader.snapshot_state(1)
    ([2], [SourceSplit(split_id='0', position=2)])
    """

    #: Whether readers return records that nothing else refers to, as a decoder's: they are not copied when emitted.
    returns_fresh_records = False
    #: Whether batches say which records are of which split (`Batch.splits`): each split then has its own watermark.
    has_watermarks_per_split = False
    #: How often the driver calls `discover_splits`, in milliseconds; None: never while the job runs.
    discovery_interval_ms: int | None = None
    #: Whether the driver calls `discover_splits` when a job goes on from a checkpoint, also without an interval.
    discovers_at_restore = False

    @abstractmethod
    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return the splits for a start without state, for `parallelism` subtasks. Split ids must be unique.

        Called on the driver, once per run: the attempts before the first checkpoint all begin with these splits. Where
        a split begins and ends is decided here, for all subtasks alike.
        """

    def discover_splits(self) -> list[SourceSplit]:
        """Return the splits that there are now; those that readers know already are ignored.

        Called on the driver, on a thread of its own, when an attempt begins and then every `discovery_interval_ms`.
        Without an interval it is called once per restore if the source `discovers_at_restore`, before any reader
        begins. A source that discovers splits must have a `split_owner`.
        """
        return []

    def split_owner(self, split_id: str, parallelism: int) -> int:
        """Return the subtask that reads a split: a pure function, so that it holds in every process and attempt.

        Without this method splits are dealt out in turn, and stay where they are while the parallelism is the same.
        """
        raise NotImplementedError

    @abstractmethod
    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader of these splits, possibly none. After a restore they have the checkpoint's positions."""

    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Return whether the source ends by itself."""

    def get_produced_type(self) -> TypeInformation | None:
        """Return the records' type if `from_source` is given none, or None to leave it undeclared."""
        return None

    @property
    def has_split_owner(self) -> bool:
        """Whether the source has a rule of its own for who reads a split."""
        return type(self).split_owner is not Source.split_owner

    def close(self) -> None:
        """Release what `create_splits` and `discover_splits` opened on the driver; called when an attempt ends."""


class AddedSource(Source[T], Generic[T]):
    """A source that programs give to `add_source`, as Flink's older connectors are. It brings its own strategy."""

    watermark_strategy: WatermarkStrategy | None = None


class StreamTransformer(ABC):
    """Changes a stream before a sink gets it."""

    @abstractmethod
    def apply(self, ds: Any) -> Any:
        """Return the stream that the sink gets."""


class SupportsPreprocessing(ABC):
    """A sink that changes its stream first: `sink_to` applies its transformer."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """Return the transformer, or None."""


def assign_splits(
    splits: Sequence[SourceSplit], parallelism: int, source: Source[Any] | None = None
) -> list[list[SourceSplit]]:
    """Return the splits of each subtask, by the source's `split_owner` if it has one, else dealt out in turn.

    >>> [[split.split_id for split in own] for own in assign_splits([SourceSplit(name) for name in "abc"], 2)]
    [['a', 'c'], ['b']]
    """
    if source is None or not source.has_split_owner:
        return [list(splits[subtask::parallelism]) for subtask in range(parallelism)]
    owned: list[list[SourceSplit]] = [[] for _ in range(parallelism)]
    for split in splits:
        owned[source.split_owner(split.split_id, parallelism)].append(split)
    return owned
