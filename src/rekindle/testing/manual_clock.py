"""A clock for tests: time stands still until the test advances it."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Condition, Event

#: How long a waiting thread pauses, in real time, before it reads the clock again.
_PAUSE_S = 0.002


class ManualClock:
    """A `rekindle.clock.WaitingClock` that only `advance` moves.

    >>> clock = ManualClock(wall_ms=1000)
    >>> clock.advance(250)
    >>> clock.wall_ms(), clock.monotonic()
    (1250, 0.25)

    A thread that waits by this clock goes on as soon as the test has advanced it far enough.
    """

    def __init__(self, wall_ms: int = 0) -> None:
        self._wall_ms = wall_ms
        self._elapsed_ms = 0
        self._waiting: list[float] = []

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

    def waiting_until(self) -> list[float]:
        """Return the times (as `monotonic`) until which threads wait now, ascending; not those without a limit."""
        return sorted(each for each in self._waiting if each < math.inf)

    def wait(self, event: Event, timeout_s: float | None) -> bool:
        """Wait until the event is set or `timeout_s` have passed on this clock. Return whether the event is set."""
        return self._wait(event.is_set, event.wait, timeout_s)

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until the predicate is true or `timeout_s` have passed on this clock. Return the predicate's value."""
        return self._wait(predicate, condition.wait, timeout_s)

    def _wait(self, done: Callable[[], bool], pause: Callable[[float], object], timeout_s: float | None) -> bool:
        until = math.inf if timeout_s is None else self.monotonic() + timeout_s
        self._waiting.append(until)
        try:
            while not done() and self.monotonic() < until:
                pause(_PAUSE_S)
            return done()
        finally:
            self._waiting.remove(until)
