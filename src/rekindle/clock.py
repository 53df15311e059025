"""The port for time: the engine reads time only through a `Clock`, so that tests and simulations can set it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The time as the engine reads it."""

    def wall_ms(self) -> int:
        """Wall clock time in milliseconds since 1970, as in event times; it may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary fixed point, never going back: for timeouts and durations."""
        ...


class SystemClock:
    """The machine's own clock.

    >>> SystemClock().wall_ms() > 1_600_000_000_000
    True
    """

    def wall_ms(self) -> int:
        """Wall clock time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since an arbitrary fixed point, never going back."""
        return time.monotonic()
