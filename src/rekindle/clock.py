"""The port for time: coordinator, checkpoint, runtime, Spark and wire read time only through a `Clock` (ruff: TID251).

Tests and simulations set the time so: `rekindle.testing.ManualClock`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition, Event
from typing import Protocol


class Clock(Protocol):
    """The time as the engine reads it."""

    def wall_ms(self) -> int:
        """Wall clock time in milliseconds since 1970, as in event times; it may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary fixed point, never going back: for timeouts and durations."""
        ...


class WaitingClock(Clock, Protocol):
    """A clock by whose time threads also wait."""

    def wait(self, event: Event, timeout_s: float | None) -> bool:
        """Wait until the event is set, at most `timeout_s`. Returns whether it is set."""
        ...

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait on a locked condition until the predicate is true, at most `timeout_s`. Returns its value."""
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

    def wait(self, event: Event, timeout_s: float | None) -> bool:
        """Wait until the event is set, at most `timeout_s`. Returns whether it is set."""
        return event.wait(timeout_s)

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait on a locked condition until the predicate is true, at most `timeout_s`. Returns its value."""
        return condition.wait_for(predicate, timeout_s)
