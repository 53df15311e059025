"""The number of timers of one domain in memory, from an operator's share of the slot's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: A timer's objects: two tuples, its key, its places in dicts and in the heap.
_TIMER_BYTES: Final = 512
_LEAST_TIMERS: Final = 1 << 10


@dataclass(frozen=True)
class TimerLimits:
    """Limits of one domain.

    >>> TimerLimits.of(4 << 20)
    TimerLimits(near=2048, page=512, waiting=512, logged=512)
    """

    #: Timers that fire next.
    near: int
    #: Timers that are read from the database in one go.
    page: int
    #: Changes that wait to be written to the database; as many are remembered.
    waiting: int
    #: Changes that wait for the next delta; above it they go to a file.
    logged: int

    @classmethod
    def of(cls, operator_bytes: int) -> TimerLimits:
        """The limits for one of an operator's two domains."""
        timers = max(_LEAST_TIMERS, operator_bytes // _TIMER_BYTES // 2)
        return cls(near=timers // 2, page=timers // 8, waiting=timers // 8, logged=timers // 8)

    @property
    def most_held(self) -> int:
        """So many timers are in memory, near ones and changes together."""
        return self.near + self.page + 2 * (self.waiting + 1) + self.logged
