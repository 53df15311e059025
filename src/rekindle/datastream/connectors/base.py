"""Sources that are polled: a `Source` makes splits and readers, a reader hands out batches and knows its positions."""

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
    """A part of a source that one reader reads, and how far it was read.

    The position is plain data (numbers, strings, tuples, lists, dicts): it becomes part of checkpoints.

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
    """Where a reader finds itself."""

    index_of_subtask: int
    parallelism: int
    task_name: str = ""


class SourceReader(ABC, Generic[T]):
    """Reads the splits of one subtask. All methods are called on the task's own thread."""

    @abstractmethod
    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Up to `max_records` records without waiting: empty if there are none now, None if there never will be."""

    def is_available(self) -> bool:
        """Whether `poll` may have something; cheap, and it never waits."""
        return True

    @abstractmethod
    def snapshot_state(self) -> list[SourceSplit]:
        """The splits still to be read, each positioned after the last record that `poll` handed out."""

    def close(self) -> None:
        """Give back what was opened."""


class Source(ABC, Generic[T]):
    """Describes where records come from. It is shipped to the slots, which make readers of it.

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
        """The splits at the job's first start, for so many subtasks. Split ids are unique."""

    @abstractmethod
    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """A reader for these splits, which may be none; after a restore they carry the positions of the checkpoint."""

    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Whether the source ends by itself."""

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records where `from_source` is given none; None leaves it undeclared."""
        return None


def assign_splits(splits: Sequence[SourceSplit], parallelism: int) -> list[list[SourceSplit]]:
    """The splits of each subtask: dealt out in turn, in their order.

    >>> [[split.split_id for split in own] for own in assign_splits([SourceSplit(name) for name in "abc"], 2)]
    [['a', 'c'], ['b']]
    """
    return [list(splits[subtask::parallelism]) for subtask in range(parallelism)]
