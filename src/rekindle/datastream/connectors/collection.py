"""`CollectionSource`: a source of elements that are part of the program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)

T = TypeVar("T")


class CollectionSource(Source[T], Generic[T]):
    """Emits the elements in their order. The position is the index of the next element.

    >>> source = CollectionSource("abc")
    >>> reader = source.create_reader(SourceReaderContext(0, 1), [SourceSplit("0", 1)])
    >>> reader.poll(10), reader.poll(10)
    (['b', 'c'], None)
    """

    def __init__(self, elements: Iterable[T]) -> None:
        self.elements = list(elements)

    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return one split, so that the elements keep their order."""
        return [SourceSplit("0", 0)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader that starts at the split's index."""
        return _CollectionReader(self.elements, splits)


class _CollectionReader(SourceReader[T], Generic[T]):
    def __init__(self, elements: list[T], splits: list[SourceSplit]) -> None:
        self._elements = elements
        self._split = splits[0] if splits else None

    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        if self._split is None:
            return None
        begin = self._split.position
        records = self._elements[begin : begin + max_records]
        if not records:
            return None
        self._split = SourceSplit(self._split.split_id, begin + len(records))
        return records

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [] if self._split is None else [self._split]
