"""The port for time: everything that reads a clock asks one of these, so that tests and simulations can turn it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the engine knows about time."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as people and event times count them; it may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; it never goes back. For timeouts and durations."""
        ...


class SystemClock:
    """The machine's own clock.

    >>> SystemClock().wall_ms() > 1_600_000_000_000
    True
    """

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some fixed point; it never goes back."""
        return time.monotonic()
