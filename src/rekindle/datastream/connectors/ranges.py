"""Splits and reader of ranges of whole numbers, which number sequences and data generators share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from rekindle.datastream.connectors.base import Batch, SourceReader, SourceSplit

T = TypeVar("T")


def range_splits(start: int, end: int, parallelism: int) -> list[SourceSplit]:
    """Cut the numbers from `start` to `end` - 1 into contiguous ranges of nearly equal size.

    >>> [split.position for split in range_splits(0, 5, 2)]
    [(0, 3, 1), (3, 5, 1)]
    """
    count = max(0, end - start)
    size, longer = divmod(count, parallelism)
    splits, begin = [], start
    for index in range(parallelism):
        stop = begin + size + (index < longer)
        if stop > begin:
            splits.append(SourceSplit(str(index), (begin, stop, 1)))
        begin = stop
    return splits


def strided_splits(end: int, parallelism: int) -> list[SourceSplit]:
    """Deal out the numbers from 0 to `end` - 1 in turn, so that all subtasks are about equally far at any time.

    >>> [split.position for split in strided_splits(5, 2)]
    [(0, 5, 2), (1, 5, 2)]
    """
    return [SourceSplit(str(first), (first, end, parallelism)) for first in range(min(end, parallelism))]


class RangeReader(SourceReader[T], Generic[T]):
    """Reads its ranges one after the other. A position is (next number, end, step)."""

    def __init__(self, splits: list[SourceSplit]) -> None:
        self._splits = list(splits)

    @abstractmethod
    def read(self, numbers: range) -> list[T]:
        """Return the records of these numbers."""

    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Return the records of the next numbers of the first unfinished range."""
        while self._splits:
            split = self._splits[0]
            begin, end, step = split.position
            if begin < end:
                stop = begin + max_records * step
                records = self.read(range(begin, min(end, stop), step))
                self._splits[0] = SourceSplit(split.split_id, (stop, end, step))
                return records
            self._splits.pop(0)
        return None

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Return the ranges still to be read."""
        return list(self._splits)
