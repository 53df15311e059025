"""Track changes since the last completed snapshot (I12), per state and key, map entry and list append.

A *row* is one key's state: `[key, key_group, value0, mark0, value1, mark1, …]`. The mark beside a value says how the
value has changed since the last cut:

- value-like states: the change set that was open at the last write. A write compares it with the open one (`is`);
- lists: None (nothing), the length before the first append, or `WHOLE`;
- maps: None (nothing), the fields that were put or removed (a dict, for its order), or `WHOLE`.

Deltas build on completed snapshots only: the change sets of every later snapshot are kept until one of them completes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from rekindle.errors import RekindleError

Row = list[Any]
# The change of a detailed column (list, map); `WHOLE` for everything.
Change = Any


class _Whole:
    __slots__ = ()

    def __repr__(self) -> str:
        return "WHOLE"


WHOLE: Final = _Whole()

ROW_KEY: Final = 0
# The key group; its complement (negative) while the row is detached, that is, not in its key group's dict.
ROW_GROUP: Final = 1
ROW_COLUMNS: Final = 2


class ChangeSet:
    """The rows that changed between two cuts, per mark column."""

    __slots__ = ("aborted", "detailed", "plain", "snapshot_id")

    def __init__(self) -> None:
        self.snapshot_id: int | None = None
        self.aborted = False
        # Value-like columns: the rows. Detailed columns: the rows while open, rows with their changes once sealed.
        self.plain: defaultdict[int, list[Row]] = defaultdict(list)
        self.detailed: defaultdict[int, list[tuple[Row, Change]]] = defaultdict(list)

    def absorb(self, older: ChangeSet) -> None:
        """Add the changes of an older set; afterwards each row is in this set once per column."""
        for column, rows in older.plain.items():
            mine = self.plain[column]
            known = set(map(id, mine))
            # A new list: a snapshot may be reading the old one.
            self.plain[column] = mine + [row for row in rows if id(row) not in known]
        for column, entries in older.detailed.items():
            self.detailed[column] = _united(entries, self.detailed[column])

    def rows(self) -> Iterator[Row]:
        """Every row in here, once per column."""
        for rows in self.plain.values():
            yield from rows
        for entries in self.detailed.values():
            for row, _ in entries:
                yield row


def _united(*parts: list[tuple[Row, Change]]) -> list[tuple[Row, Change]]:
    by_row: dict[int, tuple[Row, Change]] = {}
    for entries in parts:
        for row, change in entries:
            known = by_row.get(id(row))
            by_row[id(row)] = (row, change if known is None else _combined(known[1], change))
    return list(by_row.values())


def _combined(one: Change, other: Change) -> Change:
    if one is WHOLE or other is WHOLE:
        return WHOLE
    return one | other if isinstance(one, dict) else min(one, other)


class ChangeLog:
    """The open change set, and the sealed ones of snapshots that are not completed."""

    __slots__ = ("_sealed", "_touched", "open")

    def __init__(self) -> None:
        self.open = ChangeSet()
        self._touched: defaultdict[int, list[Row]] = defaultdict(list)
        self._sealed: list[ChangeSet] = []

    def touch(self, row: Row, column: int) -> None:
        """Record a row whose detailed column's mark is set for the first time since the last cut."""
        self._touched[column].append(row)

    def cut(self, snapshot_id: int, since_completed_id: int | None) -> ChangeSet:
        """Seal the open set for a snapshot; returns all changes since the completed snapshot."""
        if since_completed_id is not None:
            self.completed(since_completed_id)
        newest = self._newest_before(snapshot_id)
        sealed = self._seal(snapshot_id)
        if newest is not None and newest.aborted:
            sealed.absorb(self._sealed.pop())
        self._sealed.append(sealed)
        if len(self._sealed) == 1:
            return sealed
        everything = ChangeSet()
        for change_set in self._sealed:
            everything.absorb(change_set)
        return everything

    def cut_whole(self, snapshot_id: int) -> None:
        """Seal the open set for a snapshot that has no base and holds everything."""
        newest = self._newest_before(snapshot_id)
        sealed = self._seal(snapshot_id)
        if all(change_set.aborted for change_set in self._sealed):
            # Later deltas build on this snapshot or a later one: older changes are not needed.
            self._sealed.clear()
            sealed = ChangeSet()
            sealed.snapshot_id = snapshot_id
        elif newest is not None and newest.aborted:
            sealed.absorb(self._sealed.pop())
        self._sealed.append(sealed)

    def set_aside(self, snapshot_id: int) -> None:
        """Seal the open set for a snapshot that is no base of others: the next cut covers these changes too."""
        newest = self._newest_before(snapshot_id)
        sealed = self._seal(snapshot_id)
        if newest is not None and newest.aborted:
            sealed.absorb(self._sealed.pop())
        sealed.aborted = True
        self._sealed.append(sealed)

    def _newest_before(self, snapshot_id: int) -> ChangeSet | None:
        newest = self._sealed[-1] if self._sealed else None
        if newest is not None and newest.snapshot_id is not None and newest.snapshot_id >= snapshot_id:
            raise RekindleError(f"Snapshot {snapshot_id} was asked for after snapshot {newest.snapshot_id}.")
        return newest

    def completed(self, snapshot_id: int) -> None:
        """Drop the change sets of a completed snapshot and of older ones."""
        self._sealed = [s for s in self._sealed if s.snapshot_id is not None and s.snapshot_id > snapshot_id]

    def aborted(self, snapshot_id: int) -> None:
        """Move an aborted snapshot's changes to the next one."""
        for place, change_set in enumerate(self._sealed):
            if change_set.snapshot_id == snapshot_id:
                if place + 1 < len(self._sealed):
                    self._sealed[place + 1].absorb(self._sealed.pop(place))
                else:
                    change_set.aborted = True
                return

    def forget(self) -> None:
        """Drop all changes."""
        self._seal(None)
        self._sealed.clear()

    def sealed_rows(self) -> set[int]:
        """Identities of the rows that a snapshot still needs."""
        return {id(row) for change_set in self._sealed for row in change_set.rows()}

    def number_of_rows(self) -> int:
        """The approximate number of value-like changes in the next cut."""
        return sum(len(rows) for each in (self.open, *self._sealed) for rows in each.plain.values())

    def is_open(self, mark: Any) -> bool:
        """Whether a mark says that its column changed since the last cut."""
        return mark is not None and (mark is self.open or type(mark) is not ChangeSet)

    def _seal(self, snapshot_id: int | None) -> ChangeSet:
        sealed = self.open
        sealed.snapshot_id = snapshot_id
        for column, rows in self._touched.items():
            sealed.detailed[column] = [(row, row[column]) for row in rows]
            for row in rows:
                row[column] = None
        self._touched = defaultdict(list)
        self.open = ChangeSet()
        return sealed
