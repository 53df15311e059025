"""The outbox of one task: rows that it sends in one epoch, each to a slot or to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rekindle.runtime.exchange.spill import SpillBuffer, SpillRange


class RowOutbox(Protocol):
    """The interface of an outbox, as writers see it."""

    def put(self, destination: int, row: bytes) -> None:
        """Send a row."""


class Outbox:
    """Holds the rows that a task sends in one epoch."""

    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._rows: list[tuple[int, bytes | SpillRange]] = []
        self._buffer = SpillBuffer(limit_bytes, directory)

    def put(self, destination: int, row: bytes) -> None:
        """Send a row to a slot, or to the driver (`protocol.TO_DRIVER`)."""
        self._rows.append((destination, self._buffer.append(row)))

    def drain(self) -> Iterator[tuple[int, bytes]]:
        """Yield every row once, in order, and empty the outbox."""
        for destination, kept in self._rows:
            yield destination, self._buffer.read(kept)
        self._rows.clear()
        self._buffer.clear()
