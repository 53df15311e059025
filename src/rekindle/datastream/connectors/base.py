"""The interface of polled sources: a `Source` creates splits and readers, a reader returns batches and positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.vocabulary import Boundedness

__all__ = [
    "Batch",
    "Boundedness",
    "Source",
    "SourceReader",
    "SourceReaderContext",
    "SourceSplit",
    "assign_splits",
]

T = TypeVar("T")


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
    """Records with their event times in milliseconds.

    >>> len(Batch(["a", "b"], [10, 20]))
    2
    """

    records: list[T]
    timestamps: list[int]

    def __post_init__(self) -> None:
        if len(self.records) != len(self.timestamps):
            raise ValueError(f"A Batch of {len(self.records)} records has {len(self.timestamps)} timestamps.")

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True)
class SourceReaderContext:
    """The subtask of a reader."""

    index_of_subtask: int
    parallelism: int
    task_name: str = ""


class SourceReader(ABC, Generic[T]):
    """Reads the splits of one subtask. All methods are called on the task's own thread."""

    @abstractmethod
    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Return up to `max_records` records without waiting: an empty list if there are none now, None at the end."""

    def is_available(self) -> bool:
        """Return whether `poll` may have records. The call must be cheap and must not wait."""
        return True

    @abstractmethod
    def snapshot_state(self) -> list[SourceSplit]:
        """Return the splits still to be read, each positioned after the last record that `poll` returned."""

    def close(self) -> None:
        """Release resources."""


class Source(ABC, Generic[T]):
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
    ...     def snapshot_state(self):
    ...         return [SourceSplit("0", left) for left in self.left]
    >>> reader = Countdown().create_reader(SourceReaderContext(0, 1), Countdown().create_splits(1))
    >>> reader.poll(10), reader.snapshot_state()
    ([2], [SourceSplit(split_id='0', position=2)])
    """

    @abstractmethod
    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return the splits for the job's first start, for `parallelism` subtasks. Split ids must be unique."""

    @abstractmethod
    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader of these splits, possibly none. After a restore they have the checkpoint's positions."""

    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Return whether the source ends by itself."""

    def get_produced_type(self) -> TypeInformation | None:
        """Return the records' type if `from_source` is given none, or None to leave it undeclared."""
        return None


def assign_splits(splits: Sequence[SourceSplit], parallelism: int) -> list[list[SourceSplit]]:
    """Return the splits of each subtask. They are dealt out to the subtasks in turn.

    >>> [[split.split_id for split in own] for own in assign_splits([SourceSplit(name) for name in "abc"], 2)]
    [['a', 'c'], ['b']]
    """
    return [list(splits[subtask::parallelism]) for subtask in range(parallelism)]
