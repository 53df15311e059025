"""A clock for tests: time stands still until the test advances it."""

from __future__ import annotations


class ManualClock:
    """A `rekindle.clock.Clock` that only `advance` moves.

    >>> clock = ManualClock(wall_ms=1000)
    >>> clock.advance(250)
    >>> clock.wall_ms(), clock.monotonic()
    (1250, 0.25)
    """

    def __init__(self, wall_ms: int = 0) -> None:
        self._wall_ms = wall_ms
        self._elapsed_ms = 0

    def advance(self, milliseconds: int) -> None:
        """Advance the time."""
        self._wall_ms += milliseconds
        self._elapsed_ms += milliseconds

    def wall_ms(self) -> int:
        """Return the milliseconds since 1970."""
        return self._wall_ms

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._elapsed_ms / 1000
