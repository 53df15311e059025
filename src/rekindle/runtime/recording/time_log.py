"""The times that a task read from its clock while it worked on one event, so that a replay reads the same (I1).

Between two ticks (the task looks how long a slice of records took) the task may read the wall clock any number of
times. A replay that reads more often between two ticks than the task did gets the last time again.
"""

from __future__ import annotations

from array import array

from rekindle.checkpoint.recordings import TimeRead


class TimeLog:
    """Ticks, and the wall clock times read after each; equal times are counted.

    >>> log = TimeLog()
    >>> for time in (5, 5, 6):
    ...     log.wall(time)
    >>> log.tick(0.25)
    >>> log.wall(6)
    >>> reading = TimeReader(log.read())
    >>> [reading.wall(), reading.wall(), reading.wall(), reading.wall(), reading.tick(), reading.wall()]
    [5, 5, 6, 6, 0.25, 6]
    """

    __slots__ = ("_counts", "_firsts", "_ticks", "_walls")

    def __init__(self) -> None:
        self._ticks = array("d")
        self._firsts = array("q")  # by tick: how many runs of equal times came before it
        self._walls = array("q")
        self._counts = array("q")

    def tick(self, seconds: float) -> None:
        """Note a tick: the monotonic time that the task read."""
        self._ticks.append(seconds)
        self._firsts.append(len(self._walls))

    def wall(self, time_ms: int) -> None:
        """Note a time of the wall clock."""
        begin = self._firsts[-1] if self._firsts else 0
        if len(self._walls) > begin and self._walls[-1] == time_ms:
            self._counts[-1] += 1
        else:
            self._walls.append(time_ms)
            self._counts.append(1)

    @property
    def bytes(self) -> int:
        """The size of the log."""
        return 16 * (len(self._ticks) + len(self._walls))

    def read(self) -> TimeRead:
        """The log as data."""
        columns = self._ticks, self._firsts, self._walls, self._counts
        return TimeRead(*(column.tobytes() for column in columns))


class TimeReader:
    """Reads a log again."""

    def __init__(self, read: TimeRead) -> None:
        self._ticks, self._firsts = _column("d", read.ticks), _column("q", read.firsts)
        self._walls, self._counts = _column("q", read.walls), _column("q", read.counts)
        self._tick = -1
        self._run = 0
        self._left = int(self._counts[0]) if self._counts else 0

    @property
    def first_wall(self) -> int | None:
        """The first time of the wall clock in the log."""
        return int(self._walls[0]) if self._walls else None

    def tick(self) -> float | None:
        """The next tick; None when there is none: the task had failed by then."""
        if self._tick + 1 >= len(self._ticks):
            return None
        self._tick += 1
        self._run = int(self._firsts[self._tick])
        self._left = int(self._counts[self._run]) if self._run < len(self._counts) else 0
        return float(self._ticks[self._tick])

    def wall(self) -> int | None:
        """The next time of the wall clock before the next tick, or the last one again; None if there is none at all."""
        if self._left == 0 and self._run + 1 < self._end:
            self._run += 1
            self._left = int(self._counts[self._run])
        self._left = max(0, self._left - 1)
        return int(self._walls[min(self._run, len(self._walls) - 1)]) if self._walls else None

    @property
    def _end(self) -> int:
        following = self._tick + 1
        return int(self._firsts[following]) if following < len(self._firsts) else len(self._walls)


def _column(kind: str, data: bytes) -> array[int] | array[float]:
    column: array[int] = array(kind)
    column.frombytes(data)
    return column
