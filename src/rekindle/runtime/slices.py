"""Slices of batches: how many records a task processes before it checks for cancellation and the time (I22)."""

from __future__ import annotations

from rekindle.clock import Clock

#: How often a task checks for a cancellation, and for the end of its source's time.
LOOK_AROUND_S = 0.02
#: How often it checks with unaligned checkpoints, also for the end of the epoch's time: a function that suddenly
#: becomes slow must not exceed that time by more than a few records.
LOOK_AROUND_UNALIGNED_S = 0.00025
_MAX_RECORDS = 1 << 16
_GROWTH = 4


class Slices:
    """The size of the next slice of a batch: one record at first, then as the duration of the slices before allows.

    >>> from rekindle.clock import SystemClock
    >>> slices = Slices(SystemClock(), LOOK_AROUND_S)
    >>> slices.took(1, seconds=0.001)
    >>> slices.size
    4
    >>> slices.took(4, seconds=0.08)
    >>> slices.size
    1
    """

    __slots__ = ("_slice_s", "now", "size")

    def __init__(self, clock: Clock, slice_s: float) -> None:
        self._slice_s = slice_s
        self.now = clock.monotonic
        self.size = 1

    def took(self, records: int, seconds: float) -> None:
        """Adapt the size to a slice of `records` records that took this long."""
        if seconds > self._slice_s:
            self.size = max(1, int(records * self._slice_s / seconds))
        elif records >= self.size:
            self.size = min(_MAX_RECORDS, self.size * _GROWTH)
