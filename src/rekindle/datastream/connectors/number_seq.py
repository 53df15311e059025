"""`NumberSequenceSource`: a source of consecutive numbers, under PyFlink's import path."""

from __future__ import annotations

from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.ranges import RangeReader, range_splits
from rekindle.errors import GraphError


class NumberSequenceSource(Source[int]):
    """Emits the numbers from `start` to `end`, both included. Each subtask reads a contiguous part.

    >>> source = NumberSequenceSource(1, 10)
    >>> reader = source.create_reader(SourceReaderContext(0, 2), source.create_splits(2)[:1])
    >>> reader.poll(3), reader.poll(100), reader.poll(100)
    ([1, 2, 3], [4, 5], None)
    """

    def __init__(self, start: int, end: int) -> None:
        if not isinstance(start, int) or not isinstance(end, int) or start > end:
            raise GraphError(
                f"NumberSequenceSource needs whole numbers from start to end, not from {start!r} to {end!r}."
            )
        self._start = start
        self._end = end

    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return a contiguous range of numbers for each subtask."""
        return range_splits(self._start, self._end + 1, parallelism)

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[int]:
        """Return a reader of these ranges."""
        return _NumberReader(splits)


class _NumberReader(RangeReader[int]):
    def read(self, numbers: range) -> list[int]:
        return list(numbers)
