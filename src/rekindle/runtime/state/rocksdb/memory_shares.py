"""How a slot's memory for keyed state is divided: decoded rows, timers, RocksDB's blocks and write buffers, deltas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_LEAST_BYTES: Final = 8 << 20
_WRITE_BUFFERS: Final = 3


@dataclass(frozen=True)
class MemoryShares:
    """The shares of one slot.

    >>> shares = MemoryShares.of(64 << 20)
    >>> shares.row_bytes >> 20, shares.block_cache_bytes >> 20, shares.write_buffer_bytes >> 20, shares.log_bytes >> 20
    (24, 8, 4, 4)
    """

    #: Decoded rows, of all operators together.
    row_bytes: int
    #: Timers that fire next and changes of timers, of all operators together.
    timer_bytes: int
    #: Filters, indexes and blocks. Blocks that are cached save little: keys in use are no neighbours there.
    block_cache_bytes: int
    write_buffer_bytes: int
    write_buffers: int
    #: Changes that wait in memory for the next delta; above it they go to a file.
    log_bytes: int

    @classmethod
    def of(cls, budget_bytes: int) -> MemoryShares:
        """Divide a budget; less than a few megabytes cannot be divided.

        Three sixteenths are nobody's: for copies of what a batch, an upload or a compaction has in hand, and for the
        holes in Python's pools.
        """
        budget = max(budget_bytes, _LEAST_BYTES)
        return cls(
            row_bytes=3 * budget // 8,
            timer_bytes=budget // 16,
            block_cache_bytes=budget // 8,
            write_buffer_bytes=budget // 16,
            write_buffers=_WRITE_BUFFERS,
            log_bytes=budget // 16,
        )
