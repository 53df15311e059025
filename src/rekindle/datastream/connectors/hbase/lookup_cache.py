"""A cache of looked-up rows: the least recently used one goes when it is full, and each goes when it is too old."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from rekindle.clock import Clock, SystemClock

#: The answer of `get` for a row that is not in the cache; a row that HBase does not have is there as an empty dict.
MISSING: Final = object()


class LookupCache:
    """Keeps at most `max_rows` rows, each for `ttl_s` seconds, or without an end if that is None.

    >>> cache = LookupCache(max_rows=2, ttl_s=None)
    >>> for row in (b"1", b"2", b"3"):
    ...     cache.put(row, {b"f:a": row})
    >>> cache.get(b"3"), cache.get(b"1") is MISSING
    ({b'f:a': b'3'}, True)
    """

    def __init__(self, max_rows: int, ttl_s: float | None, clock: Clock | None = None) -> None:
        self._max_rows = max_rows
        self._ttl_s = ttl_s
        self._clock = clock or SystemClock()
        self._rows: OrderedDict[bytes, tuple[float, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, row: bytes) -> Any:
        """Return a row that is not too old, or MISSING."""
        found = self._rows.get(row)
        if found is None:
            return MISSING
        stored_at, cells = found
        if self._ttl_s is not None and self._clock.monotonic() >= stored_at + self._ttl_s:
            del self._rows[row]
            return MISSING
        self._rows.move_to_end(row)
        return cells

    def put(self, row: bytes, cells: Any) -> None:
        """Store a row as of now."""
        if self._max_rows == 0:
            return
        self._rows[row] = (self._clock.monotonic(), cells)
        self._rows.move_to_end(row)
        if len(self._rows) > self._max_rows:
            self._rows.popitem(last=False)
