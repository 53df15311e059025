"""Decoded rows of keys seen lately, in two generations: a row that is not asked for during one of them leaves.

The young generation is the backend's `front`, so that a key that is there costs one `dict.get`. When it is full, it
becomes the old one, and the rows of the old one leave, some at a time while the young one grows. A row that somebody
has got from here stays the row of its key until at least half of the cache was loaded anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from rekindle.runtime.state.change_tracking import Row

#: A row's objects beside its encoded bytes: the list, the key, the values' headers, its place in a dict.
_ROW_BYTES: Final = 420
_BYTES_PER_ENCODED: Final = 2
_LEAST_ROWS: Final = 1 << 10
#: The mean size of a row follows about so many rows.
_SIZED_ROWS: Final = 1 << 12
#: So many rows leave at once: enough for a batch of writes, few enough for their encoded forms to be small.
_LEAVING_ROWS: Final = 1 << 10


class RowSource(Protocol):
    """Reads and writes rows for the cache."""

    def read_rows(self, keys: Sequence[Any]) -> list[Row]:
        """Read the rows of keys."""

    def write_back(self, rows: Iterable[Row], leave: bool) -> None:
        """Write changed rows; `leave`: they leave the cache."""


class RowCache:
    """The rows in memory of one operator, bounded by their estimated bytes."""

    def __init__(self, source: RowSource, most_bytes: int) -> None:
        self.front: dict[Any, Row] = {}
        self._old: dict[Any, Row] = {}
        self._leaving: dict[Any, Row] = {}
        self._source = source
        self._most_bytes = most_bytes
        #: So many rows are in each generation even if they are large.
        self.least_rows = _LEAST_ROWS
        self._encoded_bytes = 0.0  # per row, a moving average
        self._half = self._rows_per_generation()

    def _rows_per_generation(self) -> int:
        row_bytes = _ROW_BYTES + _BYTES_PER_ENCODED * self._encoded_bytes
        return max(self.least_rows, int(self._most_bytes / row_bytes / 2))

    def load(self, key: Any) -> Row:
        """The row of a key that is not in `front`; puts it there."""
        row = self._old.pop(key, None) or self._leaving.pop(key, None)
        if row is None:
            row = dict.get(self.front, key)  # the caller may have bound the `get` of an older `front`
            if row is not None:
                return row
            (row,) = self._source.read_rows([key])
        self.front[key] = row
        self._bound()
        return row

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the rows of keys that are not in memory, in one call."""
        front, old, leaving = self.front, self._old, self._leaving
        missing = [key for key in keys if key not in front]
        if len(missing) < 2:
            return
        for key in missing:
            row = old.pop(key, None) or leaving.pop(key, None)
            if row is not None:
                front[key] = row
        unread = [key for key in missing if key not in front][: self._half]
        if unread:
            front.update(zip(unread, self._source.read_rows(unread), strict=True))
        self._bound()

    def _bound(self) -> None:
        """Let as many rows leave as have come, and turn to the next generation when this one is full."""
        while self._leaving and len(self) > 2 * self._half:
            self._leave(_LEAVING_ROWS)
        if len(self.front) >= self._half:
            self._leave(len(self._leaving))
            self._leaving, self._old = self._old, dict(self.front)
            self.front.clear()  # in place: a loop has bound its `get`

    def _leave(self, most: int) -> None:
        keys = list(islice(self._leaving, most))
        rows = list(map(self._leaving.__getitem__, keys))
        self._source.write_back(rows, leave=True)
        for key in keys:
            del self._leaving[key]

    def note_sizes(self, encoded: Sequence[bytes | None], rows: int) -> None:
        """Note the encoded size of some rows: it decides how many rows fit."""
        mean = sum(len(each) for each in encoded if each is not None) / rows
        self._encoded_bytes += (mean - self._encoded_bytes) * min(1.0, rows / _SIZED_ROWS)
        self._half = self._rows_per_generation()

    def lend(self, share: float) -> int:
        """Give a share of the memory away; return its bytes."""
        lent = int(self._most_bytes * share)
        self._most_bytes -= lent
        self._half = self._rows_per_generation()
        return lent

    def rows(self) -> Iterator[Row]:
        """The rows in memory."""
        yield from self.front.values()
        yield from self._old.values()
        yield from self._leaving.values()

    def __len__(self) -> int:
        return len(self.front) + len(self._old) + len(self._leaving)
