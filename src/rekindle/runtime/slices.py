"""How many records a task takes at once, so that it looks around often enough however slow its functions are (I22)."""

from __future__ import annotations

from rekindle.clock import Clock

#: A task looks around about so often: for a cancellation, and for the end of its source's time.
LOOK_AROUND_S = 0.02
#: With unaligned checkpoints also for the end of the epoch's time, which a function that becomes slow from one record
#: to the next must not miss by more than a few records.
LOOK_AROUND_UNALIGNED_S = 0.00025
_MOST = 1 << 16
_GROWTH = 4


class Slices:
    """The size of the next slice of a batch: one record at first, then by what the records before it have cost.

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
        """So many records went through the chain in this time."""
        if seconds > self._slice_s:
            self.size = max(1, int(records * self._slice_s / seconds))
        elif records >= self.size:
            self.size = min(_MOST, self.size * _GROWTH)
