"""The source of a cached stream: chunks that an earlier job collected and the driver keeps."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.runtime.exchange.chunk import Chunk, decode_chunk, read_header
from rekindle.serde import codec_for


class CachedChunksSource(Source[Any]):
    """Reads cached chunks: each is a split, its position is the number of records read from it."""

    def __init__(self, chunks: Sequence[bytes], type_info: TypeInformation | None) -> None:
        self._chunks = chunks
        self._type_info = type_info

    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        return self._type_info

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(index), 0) for index in range(len(self._chunks))]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[Any]:
        return _ChunksReader(self._chunks, self._type_info, splits)


class _ChunksReader(SourceReader[Any]):
    def __init__(self, chunks: Sequence[bytes], type_info: TypeInformation | None, splits: list[SourceSplit]) -> None:
        self._chunks = chunks
        self._codec = codec_for(type_info)
        self._splits = deque(sorted(splits, key=lambda split: int(split.split_id)))
        self._current: Chunk | None = None

    def poll(self, max_records: int) -> list[Any] | Batch[Any] | None:
        if not self._splits:
            return None
        split = self._splits[0]
        if self._current is None:
            encoded = self._chunks[int(split.split_id)]
            self._current = decode_chunk(encoded, read_header(encoded), self._codec)
        chunk, begin = self._current, split.position
        end = min(begin + max_records, len(chunk.records))
        if end < len(chunk.records):
            self._splits[0] = SourceSplit(split.split_id, end)
        else:
            self._splits.popleft()
            self._current = None
        records = chunk.records[begin:end]
        return records if chunk.timestamps is None else Batch(records, chunk.timestamps[begin:end])

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return list(self._splits)
