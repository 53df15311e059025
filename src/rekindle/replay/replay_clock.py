"""The clock of a replay: it says the times that the task read when it failed (I1)."""

from __future__ import annotations

from rekindle.checkpoint.recordings import TimeRead
from rekindle.runtime.recording.time_log import TimeReader


class ReplayClock:
    """A clock that reads recorded times, event by event."""

    def __init__(self, start_ms: int) -> None:
        self._reader = TimeReader(TimeRead())
        self._wall_ms = start_ms
        self._seconds = 0.0

    def enter(self, time: TimeRead) -> None:
        """Begin with the times of another event."""
        self._reader = TimeReader(time)

    def wall_ms(self) -> int:
        """The time that the task read here; where it read none, the last one."""
        time_ms = self._reader.wall()
        if time_ms is not None:
            self._wall_ms = time_ms
        return self._wall_ms

    def monotonic(self) -> float:
        """The last tick."""
        return self._seconds

    def tick(self) -> float:
        """The next tick; after the last one, time stands still."""
        seconds = self._reader.tick()
        if seconds is not None:
            self._seconds = seconds
        return self._seconds
