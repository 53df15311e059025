"""A clock that stands still until it is moved."""

from __future__ import annotations


class ManualClock:
    """Implements `rekindle.clock.Clock`.

    >>> clock = ManualClock(wall_ms=1000)
    >>> clock.advance(250)
    >>> clock.wall_ms(), clock.monotonic()
    (1250, 0.25)
    """

    def __init__(self, wall_ms: int = 0) -> None:
        self._wall_ms = wall_ms
        self._elapsed_ms = 0

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        self._wall_ms += milliseconds
        self._elapsed_ms += milliseconds

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._wall_ms

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed_ms / 1000
