"""The outbox of one task: chunks that it sends in one epoch, each to a slot or to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rekindle.runtime.exchange.spill import SpillBuffer, SpillRange


class ChunkOutbox(Protocol):
    """The interface of an outbox, as writers see it."""

    def put(self, destination: int, chunk: bytes) -> None:
        """Send a chunk."""


class Outbox:
    """Holds the chunks that a task sends in one epoch."""

    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._chunks: list[tuple[int, bytes | SpillRange]] = []
        self._buffer = SpillBuffer(limit_bytes, directory)

    def put(self, destination: int, chunk: bytes) -> None:
        """Send a chunk to a slot, or to the driver (`protocol.TO_DRIVER`)."""
        self._chunks.append((destination, self._buffer.append(chunk)))

    def drain(self) -> Iterator[tuple[int, bytes]]:
        """Yield every chunk once, in order, and empty the outbox."""
        for destination, kept in self._chunks:
            yield destination, self._buffer.read(kept)
        self._chunks.clear()
        self._buffer.clear()
