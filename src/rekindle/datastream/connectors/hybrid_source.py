"""`HybridSource`: reads one source after the other. All subtasks have read one before any begins the next.

The driver creates the splits of all sources at the start. A split's id says which source it is of; readers tell the
driver how far they are and learn how far the slowest is (`SourceReader.stage_reached`).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.errors import GraphError, IncompatibleStateError

__all__ = ["HybridSource", "HybridSourceBuilder"]

T = TypeVar("T")


class HybridSourceBuilder:
    """Builds a `HybridSource`."""

    def __init__(self, first_source: Source[Any]) -> None:
        self._sources: list[Source[Any]] = []
        self.add_source(first_source)

    def add_source(self, source: Source[Any]) -> HybridSourceBuilder:
        """Add the source that is read after the others."""
        if not isinstance(source, Source):
            raise GraphError(f"HybridSource takes a Source, such as a FileSource, not {source!r}.")
        if self._sources and self._sources[-1].boundedness() is not Boundedness.BOUNDED:
            raise GraphError("Only the last source of a HybridSource may be unbounded: the one before it never ends.")
        self._sources.append(source)
        return self

    def build(self) -> HybridSource[Any]:
        """Return the source."""
        return HybridSource(self._sources)


class HybridSource(Source[T], Generic[T]):
    """Reads several sources one after the other, for example files with the past and then a Kafka topic.

    The splits of all sources are made when the job starts: a Kafka source that begins at `latest()` begins where the
    topic ended then, so that nothing is missing between the sources.

    >>> from rekindle.datastream.connectors.number_seq import NumberSequenceSource
    >>> source = HybridSource.builder(NumberSequenceSource(1, 2)).add_source(NumberSequenceSource(7, 8)).build()
    >>> reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    >>> reader.poll(10), reader.poll(10), reader.poll(10)
    ([1, 2], [7, 8], None)
    """

    def __init__(self, sources: Sequence[Source[Any]]) -> None:
        """Do not call directly: use `builder`."""
        self._sources = list(sources)
        self.returns_fresh_records = all(source.returns_fresh_records for source in sources)
        self.discovery_interval_ms = self._sources[-1].discovery_interval_ms
        self.discovers_at_restore = self._sources[-1].discovers_at_restore

    @staticmethod
    def builder(first_source: Source[Any]) -> HybridSourceBuilder:
        """Return a builder of a source that reads `first_source` first."""
        return HybridSourceBuilder(first_source)

    def boundedness(self) -> Boundedness:
        """Return that of the last source."""
        return self._sources[-1].boundedness()

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records if all sources have the same."""
        types = [source.get_produced_type() for source in self._sources]
        return types[0] if all(each == types[0] for each in types) else None

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return the splits of all sources."""
        return [
            SourceSplit(f"{stage}/{ordinal}/{split.split_id}", (stage, split.split_id, split.position))
            for stage, source in enumerate(self._sources)
            for ordinal, split in enumerate(source.create_splits(parallelism))
        ]

    def discover_splits(self) -> list[SourceSplit]:
        """Return the splits that the last source has now."""
        stage = len(self._sources) - 1
        found = self._sources[-1].discover_splits()
        return [_tagged(stage, split) for split in found]

    def split_owner(self, split_id: str, parallelism: int) -> int:
        """Return the owner by the source's own rule, else by the split's number, else by a hash of its id."""
        stage, ordinal, own_id = split_id.split("/", 2)
        source = self._sources[int(stage)]
        if source.has_split_owner:
            return source.split_owner(own_id, parallelism)
        return (int(ordinal) if ordinal else zlib.crc32(own_id.encode())) % parallelism

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader of the sources, one after the other."""
        return HybridReader(self._sources, context, splits)

    def close(self) -> None:
        """Close all sources."""
        for source in self._sources:
            source.close()


class HybridReader(SourceReader[T], Generic[T]):
    """Reads one subtask's splits of all sources."""

    def __init__(
        self, sources: Sequence[Source[Any]], context: SourceReaderContext, splits: Sequence[SourceSplit]
    ) -> None:
        self._sources = sources
        self._context = context
        self._ids: dict[tuple[int, str], str] = {}  # the ids that the driver gave
        self._splits: list[list[SourceSplit]] = [[] for _ in sources]
        for split in splits:
            stage, own = self._own(split)
            self._splits[stage].append(own)
        self._stage = 0
        self._allowed = len(sources) if context.parallelism == 1 else 0
        self._reader: SourceReader[Any] | None = None

    def stage_reached(self) -> int:
        """Return the number of the source that this reader reads or waits for."""
        return self._stage

    def all_reached(self, stage: int) -> None:
        """Go on to this source: all readers have read those before it."""
        self._allowed = max(self._allowed, stage)

    def is_available(self) -> bool:
        """Return whether the source of this time has records, or the next one may begin."""
        if self._reader is not None:
            return self._reader.is_available()
        return self._stage <= self._allowed

    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Return records of the source of this time."""
        while self._stage < len(self._sources):
            if self._reader is None:
                if self._stage > self._allowed:
                    return []
                self._reader = self._sources[self._stage].create_reader(self._context, self._splits[self._stage])
            polled = self._reader.poll(max_records)
            if polled is not None:
                return polled
            self._reader.close()
            self._reader = None
            self._splits[self._stage] = []
            self._stage += 1
        return None

    def add_splits(self, splits: list[SourceSplit]) -> None:
        """Add splits of the last source, now or when its turn comes."""
        for split in splits:
            if tuple(split.position[:2]) in self._ids:  # the driver named it by its place at the start
                continue
            stage, own = self._own(split)
            if stage == self._stage and self._reader is not None:
                self._reader.add_splits([own])
            elif stage >= self._stage:
                self._splits[stage].append(own)

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Return the splits of the source of this time with their positions, and those of the sources after it."""
        if self._reader is not None:
            self._splits[self._stage] = list(self._reader.snapshot_state(checkpoint_id))
        return [
            _tagged(stage, split, self._ids.get((stage, split.split_id)))
            for stage, splits in enumerate(self._splits)
            for split in splits
        ]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Tell the source of this time."""
        if self._reader is not None:
            self._reader.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Tell the source of this time."""
        if self._reader is not None:
            self._reader.notify_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        """Close the source of this time."""
        if self._reader is not None:
            self._reader.close()

    def _own(self, split: SourceSplit) -> tuple[int, SourceSplit]:
        try:
            stage, own_id, position = split.position
            self._splits[stage]
        except (TypeError, ValueError, IndexError):
            raise IncompatibleStateError(
                f"The position of split '{split.split_id}' was not written by a HybridSource of these sources: give "
                "the source the uid() that it had, or another one to begin anew."
            ) from None
        self._ids[stage, own_id] = split.split_id
        return stage, SourceSplit(own_id, position)


def _tagged(stage: int, split: SourceSplit, known_id: str | None = None) -> SourceSplit:
    return SourceSplit(known_id or f"{stage}//{split.split_id}", (stage, split.split_id, split.position))
