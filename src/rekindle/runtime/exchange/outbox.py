"""Rows that a task sends in one epoch, each for a slot or for the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rekindle.runtime.exchange.spill import Place, SpillBuffer


class RowOutbox(Protocol):
    """Where writers put the rows of their chunks."""

    def put(self, destination: int, row: bytes) -> None:
        """Send a row."""


class Outbox:
    """Rows that a task sends in one epoch, each for a slot or for the driver."""

    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._rows: list[tuple[int, bytes | Place]] = []
        self._buffer = SpillBuffer(limit_bytes, directory)

    def put(self, destination: int, row: bytes) -> None:
        """Send a row to a slot (or `protocol.TO_DRIVER`)."""
        self._rows.append((destination, self._buffer.append(row)))

    def drain(self) -> Iterator[tuple[int, bytes]]:
        """Every row once, in order; the outbox is empty afterwards."""
        for destination, kept in self._rows:
            yield destination, self._buffer.read(kept)
        self._rows.clear()
        self._buffer.clear()
