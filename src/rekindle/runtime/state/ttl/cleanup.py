"""Remove expired entries that are not read any more: a few at each access, or all of them in a full snapshot.

Removals go through the handle below the user's: a removal is a change like any other, so deltas write it, and a removed
entry does not come back from an older part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from rekindle.datastream.state import ListState, MapState, State
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.ttl.expiry import Timed

# So many key groups without rows cost as much as one entry.
_EMPTY_GROUPS: Final = 64
_ONE_ENTRY: Final = (None,)

T = TypeVar("T")


class Expiry:
    """Finds and removes the expired entries of one state, row by row, by the time `last_expired`."""

    def __init__(self, rows: KeyedStateBackend, place: int, below: State) -> None:
        self._rows = rows
        self._place = place
        self._below = below
        #: Last accesses up to this time, in ms, have expired.
        self.last_expired = 0
        #: The oldest last access among the entries that were found alive since this was set.
        self.oldest = 0

    def visit(self, row: Row) -> Iterable[object]:
        """Check a row; returns one item per entry, so that a caller can limit the entries that it checks."""
        timed: Timed | None = row[self._place]
        if timed is not None and self._has_expired(timed):
            self._at(row, self._below.clear)
        return _ONE_ENTRY

    def _has_expired(self, timed: Timed) -> bool:
        stamp = timed[0]
        if stamp <= self.last_expired:
            return True
        if stamp < self.oldest:
            self.oldest = stamp
        return False

    def _at(self, row: Row, method: Callable[..., T], *arguments: Any) -> T:
        """Call a method of the handle below as if the row's key were the current one."""
        rows = self._rows
        current = rows.row
        rows.row = row
        try:
            return method(*arguments)
        finally:
            rows.row = current


class ListExpiry(Expiry):
    """Expiry of a list: the list is checked at once, and counts one item per element."""

    _below: ListState[Timed]

    def visit(self, row: Row) -> Iterable[object]:
        """Check a row."""
        if row[self._place] is None:
            return _ONE_ENTRY
        held = list(self._at(row, self._below.get))
        live = [timed for timed in held if not self._has_expired(timed)]
        if len(live) < len(held):
            self._at(row, self._below.update, live)
        return range(len(held))


class MapExpiry(Expiry):
    """Expiry of a map, entry by entry: the map may change between two of them."""

    _below: MapState[Any, Timed]

    def visit(self, row: Row) -> Iterable[object]:
        """Check a row, as far as the caller consumes the items."""
        return _ONE_ENTRY if row[self._place] is None else self._visit_fields(row)

    def _visit_fields(self, row: Row) -> Iterator[None]:
        for field in self._at(row, self._below.keys):
            timed = self._at(row, self._below.get, field)
            if timed is not None and self._has_expired(timed):
                self._at(row, self._below.remove, field)
            yield


class FullSnapshotCleanup:
    """Removes expired entries of a key group before it is captured whole."""

    def __init__(self, expiry: Expiry, ttl_ms: int, now_ms: Callable[[], int]) -> None:
        self._expiry = expiry
        self._ttl_ms = ttl_ms
        self._now_ms = now_ms

    def __call__(self, rows: Iterable[Row]) -> None:
        """Remove the expired entries of these rows."""
        self._expiry.last_expired = self._now_ms() - self._ttl_ms
        for row in rows:
            deque(self._expiry.visit(row), maxlen=0)


class IncrementalCleanup:
    """Checks a bounded number of entries at each access, in endless passes over all key groups.

    A pass finds the oldest last access: until that entry can expire, no entry can, and accesses only read the clock.
    """

    def __init__(
        self, rows: KeyedStateBackend, expiry: Expiry, size: int, ttl_ms: int, now_ms: Callable[[], int]
    ) -> None:
        self._rows = rows
        self._expiry = expiry
        self._size = size
        self._ttl_ms = ttl_ms
        self._now_ms = now_ms
        self._wake_ms: int | None = None
        self._checked = self._endless_passes()

    def access(self) -> int:
        """Check a bounded number of entries; returns the current time."""
        now = self._now_ms()
        if self._wake_ms is None or self._wake_ms <= now:
            self._wake_ms = None
            self._expiry.last_expired = now - self._ttl_ms
            for _ in range(self._size):
                if next(self._checked):
                    break
        return now

    def _endless_passes(self) -> Iterator[bool]:
        """One item per checked entry; True: a pass has ended, and no entry can expire yet."""
        expiry, rows, visit = self._expiry, self._rows, self._expiry.visit
        while True:
            # Entries that are written during the pass, and missed by it, are younger than this.
            begun = expiry.oldest = expiry.last_expired + self._ttl_ms
            empty = 0
            for group in rows.key_groups:
                is_empty = True
                for row in rows.rows_to_sweep(group):
                    is_empty = False
                    for _ in visit(row):
                        yield False
                empty += is_empty
                if is_empty and empty % _EMPTY_GROUPS == 0:
                    yield False
            self._wake_ms = min(begun, expiry.oldest) + self._ttl_ms
            yield self._wake_ms > expiry.last_expired + self._ttl_ms


class CleaningFront(dict[Any, Row]):
    """A backend's `front` that runs the cleanups whenever a key is chosen, that is for every record and timer."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanups: list[Callable[[], object]] = []

    def get(self, key: Any, default: Any = None, /) -> Any:
        """The row of a key, after a step of each cleanup."""
        for cleanup in self.cleanups:
            cleanup()
        return super().get(key, default)
