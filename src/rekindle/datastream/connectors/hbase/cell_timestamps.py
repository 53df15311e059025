"""The timestamps of the cells that a sink writes, and why they fence: see docs/decisions/0018.

In `FENCED` mode an attempt's base has the milliseconds of its claim in the high bits, and the number of the flush below
them. So every flush is above all earlier ones, also above those of earlier attempts and runs, whatever arrives last.
"""

from __future__ import annotations

from enum import Enum

#: Room for the numbers of flushes below the milliseconds: 2 ** 19 flushes per millisecond of an attempt's life.
FLUSH_BITS = 20
#: HBase's largest timestamp means "now" to the server.
_LARGEST = 2**63 - 2


class TimestampMode(Enum):
    """Which timestamp the cells get.

    >>> TimestampMode.FENCED.name
    'FENCED'
    """

    #: Rises with each flush, attempt and run: a replay overwrites, and a late call of a dead attempt has no effect.
    FENCED = "fenced"
    #: The record's timestamp: a replay overwrites itself; the cell with the latest time counts.
    EVENT_TIME = "event time"
    #: The region server's clock: what arrives last counts, also a late call of a dead attempt.
    SERVER_TIME = "server time"


def base_of(claimed_ms: int) -> int:
    """Return the base of an attempt that was claimed at this time.

    >>> base_of(1_700_000_000_001) - base_of(1_700_000_000_000) == 2 ** FLUSH_BITS
    True
    """
    assert 0 < claimed_ms << FLUSH_BITS < _LARGEST
    return claimed_ms << FLUSH_BITS


def flush_timestamps(base: int, number: int) -> tuple[int, int]:
    """Return the timestamps of the deletes and of the puts of a flush; numbers count the attempt's flushes from 0.

    >>> flush_timestamps(100, 0), flush_timestamps(100, 1)
    ((100, 101), (102, 103))
    """
    return base + 2 * number, base + 2 * number + 1
