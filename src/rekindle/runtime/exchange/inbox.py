"""What has arrived for one task: chunks in the order (edge, source, sequence), in whatever order they came (I1)."""

from __future__ import annotations

from collections.abc import Iterator

from rekindle.errors import ProtocolError
from rekindle.protocol import EdgeCount
from rekindle.runtime.exchange.chunk import ChunkHeader
from rekindle.runtime.exchange.spill import Place, SpillBuffer


class Inbox:
    """Chunks wait here until the task's stage of the epoch."""

    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._chunks: list[tuple[ChunkHeader, bytes | Place]] = []
        self._buffer = SpillBuffer(limit_bytes, directory)

    def put(self, header: ChunkHeader, row: bytes) -> None:
        """A chunk came in."""
        self._chunks.append((header, self._buffer.append(row)))

    def drain(self) -> Iterator[tuple[ChunkHeader, bytes]]:
        """Every chunk once, in order; a gap or a repetition in a channel's sequence is refused (I3)."""
        self._chunks.sort(key=lambda entry: entry[0][:4])
        expected: dict[tuple[int, int], int] = {}
        for header, kept in self._chunks:
            channel = header.edge, header.source
            if header.sequence != expected.get(channel, 0):
                raise ProtocolError(
                    f"Channel {channel}: chunk {header.sequence} came where {expected.get(channel, 0)} was due; "
                    "Spark delivered a chunk twice or lost one."
                )
            expected[channel] = header.sequence + 1
            yield header, self._buffer.read(kept)
        self._chunks.clear()
        self._buffer.clear()

    def counts(self) -> list[EdgeCount]:
        """Records received per channel in this epoch so far."""
        totals: dict[tuple[int, int, int], int] = {}
        for header, _ in self._chunks:
            channel = header.edge, header.source, header.target
            totals[channel] = totals.get(channel, 0) + header.records
        return [EdgeCount(*channel, records) for channel, records in totals.items()]
