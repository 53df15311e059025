"""Decoded rows of keys seen lately: a row that was asked for once leaves before one that was asked for again.

Young rows are in the backend's `front`, so that a key that is there costs one `dict.get`. When they fill half of the
cache, they become old: those that were old before, and so were asked for again, apart from the others. Old rows leave
in the order in which they became old. The current key's row stays, whatever a clean-up reads meanwhile. Another row
that somebody has got from here stays the row of its key until at least a third of the cache was asked for after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from rekindle.runtime.state.change_tracking import Row

#: A row's objects beside its encoded bytes: the list, the key, the values' headers, its place in a dict. Measured as
#: memory of the process: rows come and go, so that the allocator's pools are never full.
_ROW_BYTES: Final = 400
_BYTES_PER_ENCODED: Final = 2.5
_LEAST_ROWS: Final = 1 << 10
#: The mean size of a row follows about so many rows.
_SIZED_ROWS: Final = 1 << 12
#: At most so many rows leave at once, and an eighth of the cache: enough for a batch of sorted writes, few enough for
#: their encoded forms to be small.
_LEAVING_ROWS: Final = 1 << 12
#: The most of the cache that old rows take that were asked for again.
_AGAIN_SHARE: Final = 0.6


class RowSource(Protocol):
    """Reads and writes rows for the cache."""

    #: The row of the current key: handles work on it, so it does not leave.
    row: Row

    def read_rows(self, keys: Sequence[Any]) -> list[Row]:
        """Read the rows of keys."""

    def write_back(self, rows: Iterable[Row], leave: bool) -> None:
        """Write changed rows; `leave`: they leave the cache."""


class RowCache:
    """The rows in memory of one operator, bounded by their estimated bytes."""

    def __init__(self, source: RowSource, most_bytes: int) -> None:
        self.front: dict[Any, Row] = {}
        self._once: dict[Any, Row] = {}
        self._again: dict[Any, Row] = {}
        #: The keys in `front` whose rows were old before.
        self._proven: set[Any] = set()
        self._source = source
        self._most_bytes = most_bytes
        #: So many rows are young, and as many old, even if they are large.
        self.least_rows = _LEAST_ROWS
        self._encoded_bytes = 0.0  # per row, a moving average
        self._half = self._most_young_rows()

    def _most_young_rows(self) -> int:
        row_bytes = _ROW_BYTES + _BYTES_PER_ENCODED * self._encoded_bytes
        return max(self.least_rows, int(self._most_bytes / row_bytes / 2))

    def load(self, key: Any) -> Row:
        """The row of a key that is not in `front`; puts it there."""
        row = self._recalled(key)
        if row is None:
            row = dict.get(self.front, key)  # the caller may have bound the `get` of an older `front`
            if row is not None:
                return row
            (row,) = self._source.read_rows([key])
        if len(self.front) >= self._half:
            self._age()
        self.front[key] = row
        self._bound()
        return row

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the rows of keys that are not in memory, in one call; afterwards all are in `front`."""
        front, wanted = self.front, list(keys)
        missing = [key for key in wanted if key not in front]
        if len(missing) < 2:
            return
        if len(front) + len(missing) > self._half:
            self._age()
            missing = wanted
        unread = self._recall_all(missing)[: self._half]
        if unread:
            front.update(zip(unread, self._source.read_rows(unread), strict=True))
        self._bound()

    def _recall_all(self, keys: Iterable[Any]) -> list[Any]:
        """Make the old rows of keys young; return the keys that have none."""
        front, once, again, proven = self.front, self._once, self._again, self._proven
        unread = []
        for key in keys:
            row = again.pop(key, None) or once.pop(key, None)
            if row is None:
                unread.append(key)
            else:
                front[key] = row
                proven.add(key)
        return unread

    def _recalled(self, key: Any) -> Row | None:
        """The row of a key from the old ones."""
        row = self._again.pop(key, None) or self._once.pop(key, None)
        if row is not None:
            self._proven.add(key)
        return row

    def _age(self) -> None:
        """Make the young rows old."""
        proven, once, again = self._proven, self._once, self._again
        for key, row in self.front.items():
            if key in proven:
                again[key] = row
            else:
                once[key] = row
        proven.clear()
        self.front.clear()  # in place: a loop has bound its `get`

    def _bound(self) -> None:
        """Let as many old rows leave as there are too many."""
        while (above := len(self) - 2 * self._half) > 0:
            if not self._leave(min(max(above, self._half // 8), self._half // 4 + 1, _LEAVING_ROWS)):
                return  # a batch is larger than the cache: its rows leave when they are old

    def _leave(self, most: int) -> int:
        many = len(self._again) > 2 * self._half * _AGAIN_SHARE
        leaving = self._again if many or not self._once else self._once
        current = self._source.row
        keys = list(islice(leaving, most))
        rows = list(map(leaving.__getitem__, keys))
        self._source.write_back([row for row in rows if row is not current], leave=True)
        for key, row in zip(keys, rows, strict=True):
            del leaving[key]
            if row is current:
                self.front[key] = row
        return len(keys)

    def note_sizes(self, encoded: Sequence[bytes | None], rows: int) -> None:
        """Note the encoded sizes of some rows, state by state: they decide how many rows fit.

        A row that has no value yet, as that of a new key, will get one: it says nothing about sizes.
        """
        by_state = [encoded[begin : begin + rows] for begin in range(0, len(encoded), rows)]
        known = max((rows - values.count(None) for values in by_state), default=0)
        if not known:
            return
        mean = sum(len(each) for each in encoded if each is not None) / known
        self._encoded_bytes += (mean - self._encoded_bytes) * min(1.0, known / _SIZED_ROWS)
        self._half = self._most_young_rows()

    def lend(self, share: float) -> int:
        """Give a share of the memory away; return its bytes."""
        lent = int(self._most_bytes * share)
        self._most_bytes -= lent
        self._half = self._most_young_rows()
        return lent

    def rows(self) -> Iterator[Row]:
        """The rows in memory."""
        yield from self.front.values()
        yield from self._once.values()
        yield from self._again.values()

    def __len__(self) -> int:
        return len(self.front) + len(self._once) + len(self._again)
