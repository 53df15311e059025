"""The input of the window benchmarks: plain Python without dependencies, imported by every engine.

Record ``i`` is ``(key, 1, timestamp)``: 20 records a millisecond of event time, in order. For tumbling windows keys are
pseudo-random; for sessions a tenth of the keys is busy for a second and then silent for nine. With 10,000 keys a key
has 20 records in a window of ten seconds, and 20 in a session.
"""

from __future__ import annotations

from benchmarks.keyed_count.workload import BLOCK_RECORDS, key_number

KINDS = ("tumbling", "session")
RECORDS_PER_MS = 20
START_MS = 1_700_000_000_000
WINDOW_MS = 10_000
GAP_MS = 2_000
RECORDS_PER_SECOND_OF_EVENT_TIME = RECORDS_PER_MS * 1_000
BUSY_SHARE = 10
"""In the sessions' input, one key in this many is busy at a time."""


def key_of(index: int, keys: int, kind: str) -> str:
    """Return the key of a record.

    >>> key_of(0, 10_000, "tumbling"), key_of(20_001, 10_000, "session")
    ('k0', 'k481')
    """
    if kind == "tumbling":
        return f"k{key_number(index, keys)}"
    busy = index // RECORDS_PER_SECOND_OF_EVENT_TIME % BUSY_SHARE
    return f"k{key_number(index, keys // BUSY_SHARE) * BUSY_SHARE + busy}"


def timestamp_of(index: int) -> int:
    """Return the event time of a record, in milliseconds."""
    return START_MS + index // RECORDS_PER_MS


def block_of_keys(keys: int, kind: str) -> list[str]:
    """Return the keys of a block; the input's keys repeat after it. Equal keys are one string."""
    known: dict[str, str] = {}
    return [known.setdefault(key, key) for key in (key_of(index, keys, kind) for index in range(BLOCK_RECORDS))]


def records(keys: int, kind: str, count: int) -> list[tuple[str, int, int]]:
    """Return the first records as one list, for engines that take no generator."""
    block = block_of_keys(keys, kind)
    return [(block[index % BLOCK_RECORDS], 1, timestamp_of(index)) for index in range(count)]
