"""The inbox of one task: it yields chunks in the order (edge, source, sequence), in whatever order they came (I1).

Chunks that the task has no time for stay here and come first in the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rekindle.errors import ProtocolError
from rekindle.protocol import EdgeCount
from rekindle.runtime.exchange.chunk import ChunkHeader
from rekindle.runtime.exchange.spill import SpillBuffer, SpillRange
from rekindle.runtime.watermarks import Channel, WatermarkValve


class Waiting(NamedTuple):
    """A chunk that waits for its task. `valve` follows the channel over which it came."""

    channel: Channel
    header: ChunkHeader
    kept: bytes | SpillRange
    valve: WatermarkValve


class Inbox:
    """Holds chunks until the task's stage of the epoch."""

    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._arrived: list[tuple[ChunkHeader, bytes | SpillRange]] = []
        self._waiting: list[Waiting] = []
        self._buffer = SpillBuffer(limit_bytes, directory)

    def put(self, header: ChunkHeader, chunk: bytes) -> None:
        """Add a received chunk."""
        self._arrived.append((header, self._buffer.append(chunk)))

    def take(self, valve: WatermarkValve) -> Iterator[Waiting]:
        """Yield every chunk once, in order; refuse a gap or a repetition in a channel's sequence (I3).

        `valve` follows the channels of the newly arrived chunks. The caller ends the epoch with `keep`.
        """
        yield from self._waiting
        yield from self._in_order(valve)

    def _in_order(self, valve: WatermarkValve) -> Iterator[Waiting]:
        self._arrived.sort(key=lambda entry: entry[0][:4])
        expected: dict[Channel, int] = {}
        for header, kept in self._arrived:
            channel = header.edge, header.source
            if header.sequence != expected.get(channel, 0):
                raise ProtocolError(
                    f"Channel {channel}: chunk {header.sequence} came where {expected.get(channel, 0)} was due; "
                    "Spark delivered a chunk twice or lost one."
                )
            expected[channel] = header.sequence + 1
            yield Waiting(channel, header, kept, valve)

    def keep(self, chunks: Iterable[Waiting]) -> None:
        """Keep these chunks for the next epoch, in this order, and drop all others."""
        self._arrived.clear()
        self._waiting = list(chunks)
        if not self._waiting:
            self._buffer.clear()

    def read(self, waiting: Waiting) -> bytes:
        """Return the bytes of a chunk."""
        return self._buffer.read(waiting.kept)

    @property
    def waiting(self) -> list[Waiting]:
        """The chunks that wait for the next epoch."""
        return self._waiting

    def records_waiting(self) -> int:
        """Return how many records wait for the next epoch."""
        return sum(each.header.records for each in self._waiting)

    def counts(self) -> list[EdgeCount]:
        """Return the records received per channel in this epoch so far."""
        totals: dict[tuple[int, int, int], int] = {}
        for header, _ in self._arrived:
            channel = header.edge, header.source, header.target
            totals[channel] = totals.get(channel, 0) + header.records
        return [EdgeCount(*channel, records) for channel, records in totals.items()]
