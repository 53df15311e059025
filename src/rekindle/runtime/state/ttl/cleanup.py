"""Removes what has expired and is not read any more: a few entries at each access, or all of it in a full snapshot.

Everything goes through the handle below the one that users hold: a removal is a change like any other, so deltas write
it, and nothing that was left out comes back from an older part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from rekindle.datastream.state import ListState, MapState, State
from rekindle.runtime.state.changes import Row
from rekindle.runtime.state.ttl.expiry import Timed

# So many key groups without rows cost as much as one entry.
_EMPTY_GROUPS: Final = 64
_ONE_ENTRY: Final = (None,)


class SweptRows(Protocol):
    """What a clean-up needs of its backend."""

    row: Row
    key_groups: range

    def rows_of(self, key_group: int) -> list[Row]:
        """The rows of a key group as they are now; the list is the caller's."""


class Expiry:
    """Finds and removes the expired entries of one state, row by row. `last_expired` is the time to go by."""

    def __init__(self, rows: SweptRows, place: int, below: State) -> None:
        self._rows = rows
        self._place = place
        self._below = below
        #: Last accesses up to this time, in ms, have expired.
        self.last_expired = 0
        #: The oldest last access among the entries that were found alive since this was set.
        self.oldest = 0

    def visit(self, row: Row) -> Iterable[object]:
        """Check a row. What comes back has an item per entry, so that whoever pays per entry can take them slowly."""
        timed: Timed | None = row[self._place]
        if timed is not None and self._has_expired(timed):
            self._change(row, self._below.clear)
        return _ONE_ENTRY

    def _has_expired(self, timed: Timed) -> bool:
        stamp = timed[0]
        if stamp <= self.last_expired:
            return True
        if stamp < self.oldest:
            self.oldest = stamp
        return False

    def _change(self, row: Row, change: Callable[..., None], *arguments: Any) -> None:
        """Call a method of the handle below as if the row's key were the current one."""
        rows = self._rows
        current = rows.row
        rows.row = row
        try:
            change(*arguments)
        finally:
            rows.row = current


class ListExpiry(Expiry):
    """The same for a list: it is checked at once and paid for element by element."""

    _below: ListState[Timed]

    def visit(self, row: Row) -> Iterable[object]:
        """Check a row."""
        held: list[Timed] | None = row[self._place]
        if held is None:
            return _ONE_ENTRY
        size = len(held)
        live = [timed for timed in held if not self._has_expired(timed)]
        if len(live) < size:
            self._change(row, self._below.update, live)
        return range(size)


class MapExpiry(Expiry):
    """The same for a map, entry by entry: the map may change between two of them."""

    _below: MapState[Any, Timed]

    def visit(self, row: Row) -> Iterable[object]:
        """Check a row, as far as the items are taken."""
        held: dict[Any, Timed] | None = row[self._place]
        return _ONE_ENTRY if held is None else self._visit_fields(row, list(held))

    def _visit_fields(self, row: Row, fields: list[Any]) -> Iterator[None]:
        for field in fields:
            held: dict[Any, Timed] | None = row[self._place]
            timed = held.get(field) if held is not None else None
            if timed is not None and self._has_expired(timed):
                self._change(row, self._below.remove, field)
            yield


class FullSnapshotCleanup:
    """Leaves expired entries out of full snapshots: they are removed when a key group's turn comes."""

    def __init__(self, expiry: Expiry, ttl_ms: int, now_ms: Callable[[], int]) -> None:
        self._expiry = expiry
        self._ttl_ms = ttl_ms
        self._now_ms = now_ms

    def __call__(self, rows: Iterable[Row]) -> None:
        """Before these rows are captured."""
        self._expiry.last_expired = self._now_ms() - self._ttl_ms
        for row in rows:
            deque(self._expiry.visit(row), maxlen=0)


class IncrementalCleanup:
    """Checks a bounded number of entries at each access, key group by key group, again and again.

    A pass over everything tells the oldest last access: until that one can expire, nothing can, and accesses cost no
    more than a look at the clock.
    """

    def __init__(self, rows: SweptRows, expiry: Expiry, size: int, ttl_ms: int, now_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._expiry = expiry
        self._size = size
        self._ttl_ms = ttl_ms
        self._now_ms = now_ms
        self._wake_ms: int | None = None
        self._checked = self._endless_passes()

    def access(self) -> int:
        """Go on for a bounded number of entries; returns what time it is."""
        now = self._now_ms()
        if self._wake_ms is None or self._wake_ms <= now:
            self._wake_ms = None
            self._expiry.last_expired = now - self._ttl_ms
            for _ in range(self._size):
                if next(self._checked):
                    break
        return now

    def _endless_passes(self) -> Iterator[bool]:
        """One item per checked entry; True: the end of a pass, and there is nothing to do for now."""
        expiry, rows, visit = self._expiry, self._rows, self._expiry.visit
        while True:
            # What is written during the pass, and not met by it, is younger than this.
            begun = expiry.oldest = expiry.last_expired + self._ttl_ms
            empty = 0
            for group in rows.key_groups:
                listed = rows.rows_of(group)
                empty += not listed
                if not listed and empty % _EMPTY_GROUPS == 0:
                    yield False
                for row in listed:
                    for _ in visit(row):
                        yield False
            self._wake_ms = min(begun, expiry.oldest) + self._ttl_ms
            yield self._wake_ms > expiry.last_expired + self._ttl_ms


class CleaningFront(dict[Any, Row]):
    """A backend's `front` that cleans up whenever a key is chosen, that is with every record and every timer."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanups: list[Callable[[], object]] = []

    def get(self, key: Any, default: Any = None, /) -> Any:
        """The row of a key, after a piece of clean-up."""
        for cleanup in self.cleanups:
            cleanup()
        return super().get(key, default)
