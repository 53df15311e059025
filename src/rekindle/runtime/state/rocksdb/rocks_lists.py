"""List state in the database: every element is an entry of its own, so that appending reads nothing.

At the place of the key lies a header with the key and the number of elements; the elements follow it, by their index.
In memory a list keeps its end, and all elements if they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Final, TypeVar

import msgspec

from rekindle.datastream.state import ListState
from rekindle.runtime.state.change_tracking import ROW_GROUP, ROW_KEY, ChangeSet, Row
from rekindle.runtime.state.keyed_state_format import (
    REPLACE,
    CapturedColumn,
    CapturedLists,
    CapturedState,
    ListOperations,
    StatePart,
)
from rekindle.runtime.state.rocksdb.delta_log import Segment
from rekindle.runtime.state.rocksdb.entry_keys import index_bytes
from rekindle.runtime.state.rocksdb.scratch_database import Write
from rekindle.runtime.state.rocksdb.stored_states import StoredState

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_COUNT: Final = Struct(">Q")
#: A list with at most so many elements is kept in memory when it was read.
_FEW_ELEMENTS: Final = 64
#: A list that has more elements in memory writes them back.
_MOST_ELEMENTS: Final = 4096


class ListElements:
    """One key's list: its end in memory, the elements before it in the database."""

    __slots__ = ("base", "changed_in", "cleared", "header", "saved", "start", "state", "tail")

    def __init__(self, state: StoredLists, header: bytes, stored: int) -> None:
        self.state = state
        self.header = header
        #: The elements from index `start` on.
        self.tail: list[Any] = []
        self.start = stored
        #: How many elements the database has.
        self.saved = stored
        #: Whether the elements that the database had before count no more.
        self.cleared = False
        #: What the open delta appends to, or REPLACE; counts in the generation `changed_in`.
        self.base = 0
        self.changed_in: ChangeSet | None = None

    def __len__(self) -> int:
        return self.start + len(self.tail)

    def get(self) -> list[Any]:
        """All elements."""
        if self.start:
            stored = self.state.database.scan(self.header)
            elements = [data for key, data in stored if len(key) > len(self.header)][: self.start]
            before = self.state.elements.values(elements)
            if len(before) + len(self.tail) > _FEW_ELEMENTS:
                return before + self.tail
            self.tail, self.start = before + self.tail, 0
        return self.tail.copy()

    def append(self, values: Iterable[Any], generation: ChangeSet) -> None:
        """Append elements."""
        if self.changed_in is not generation:
            self.base, self.changed_in = len(self) or REPLACE, generation  # nothing is appended to an empty list
        self.tail.extend(values)

    def replace(self, values: list[Any], generation: ChangeSet) -> None:
        """Replace all elements."""
        self.tail, self.start, self.saved = values, 0, 0
        self.cleared = True
        self.base, self.changed_in = REPLACE, generation

    def unlogged(self, generation: ChangeSet) -> list[Any]:
        """The elements that the open delta appends, or replaces the list with."""
        if self.changed_in is not generation:
            return []
        return self.tail[max(0, self.base - self.start) :] if self.base != REPLACE else self.tail

    def forget(self) -> None:
        """Drop the elements in memory, which the database has."""
        self.start, self.tail = len(self), []


class RocksListState(ListState[Any]):
    """A list per key whose elements are in the database."""

    __slots__ = ("_column", "_mark", "_rows")

    def __init__(self, rows: Any, column: int) -> None:
        self._rows = rows
        self._column = column
        self._mark = column + 1

    def get(self) -> list[Any]:
        """A copy of the current key's list; empty when there is none."""
        held: ListElements | None = self._rows.row[self._column]
        return [] if held is None else held.get()

    def add(self, value: Any) -> None:
        """Append one element."""
        self.add_all([value])

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several elements."""
        added = list(values)
        if not added:
            return
        held = self._changing()
        held.append(added, self._rows.generation)
        if len(held.tail) > _MOST_ELEMENTS:
            self._rows.save_large(self._rows.row, held.state)

    def update(self, values: Iterable[Any]) -> None:
        """Replace the list; an empty one clears it."""
        replacement = list(values)
        if replacement or self._rows.row[self._column] is not None:
            held = self._changing()
            held.replace(replacement, self._rows.generation)

    def clear(self) -> None:
        """Remove the current key's list."""
        self.update(())

    def _changing(self) -> ListElements:
        rows = self._rows
        row = rows.row
        held: ListElements | None = row[self._column]
        if held is None:
            state: StoredLists = rows.state_at(self._column)
            held = row[self._column] = ListElements(state, state.entry_key(row), stored=0)
            held.base, held.changed_in = REPLACE, rows.generation
        if row[self._mark] is not rows.generation:
            rows.mark(row, self._mark)
        return held


class StoredLists(StoredState):
    """A list state in the database."""

    def read(self, found: Sequence[tuple[Row, bytes]]) -> list[Any]:
        return [ListElements(self, self.entry_key(row), count_of(data)) for row, data in found]

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, rows: Sequence[Row], logs: Segment | None, generation: ChangeSet) -> list[Write]:
        writes: list[Write] = []
        for row in rows:
            held: ListElements = row[self.place]
            (key,) = self.keys.elements([row[ROW_KEY]])
            if logs is not None and held.changed_in is generation:
                self._log(logs, row[ROW_GROUP], key, held, generation)
            if held.cleared:
                writes += [(stored, None) for stored, _ in self.database.scan(held.header)]
            unsaved = self.elements.elements(held.tail[held.saved - held.start :])
            writes += [(held.header + index_bytes(index), element) for index, element in enumerate(unsaved, held.saved)]
            writes.append((held.header, header_of(key, len(held)) if len(held) else None))
        return writes

    def _log(self, segment: Segment, group: int, key: bytes, held: ListElements, generation: ChangeSet) -> None:
        operations = segment.operations(group, self.number)
        if operations is None:
            operations = LoggedLists(self)
            segment.begin(group, self.number, operations)
        assert isinstance(operations, LoggedLists)
        elements = self.elements.elements(held.unlogged(generation))
        operations.add(key, held.base, elements)
        segment.grow(1 + len(elements), len(key) + sum(map(len, elements)))

    def saved(self, rows: Sequence[Row], leave: bool) -> None:
        for row in rows:
            held: ListElements | None = row[self.place]
            if held is None:
                continue
            held.saved, held.cleared = len(held), False
            if leave:
                held.changed_in = None

    def without_value(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if not row[self.place]]

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def captured(self, rows: Sequence[Row], generation: ChangeSet) -> CapturedState | None:
        changed = [row for row in rows if row[self.place].changed_in is generation]
        if not changed:
            return None
        bases = [row[self.place].base for row in changed]
        appended = [row[self.place].unlogged(generation) for row in changed]
        column = CapturedColumn(
            [element for elements in appended for element in elements], self.spec.values, checked=True
        )
        operations = CapturedLists(bases, list(map(len, appended)), column)
        return CapturedState(self.spec, [row[ROW_KEY] for row in changed], operations)

    def scanned(self, entries: Iterator[tuple[bytes, bytes]]) -> StatePart | None:
        operations = LoggedLists(self)
        header, key, elements = b"", b"", []
        for place, data in entries:
            if header and place.startswith(header):
                elements.append(data)
                continue
            if header:
                operations.add(key, REPLACE, elements)
            header, key, elements = place, data[_COUNT.size :], []
        if header:
            operations.add(key, REPLACE, elements)
        return operations.part() if operations.keys else None

    def scanned_keys(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
        header = b""
        for place, data in entries:
            if not header or not place.startswith(header):
                header = place
                yield data[_COUNT.size :]


def header_of(key: bytes, count: int) -> bytes:
    """The header of a list: the number of its elements, and its key's element."""
    return _COUNT.pack(count) + key


def count_of(header: bytes) -> int:
    """The number of elements of a list."""
    return int(_COUNT.unpack_from(header)[0])


class LoggedLists:
    """Operations on a list state, as elements."""

    def __init__(self, state: StoredLists) -> None:
        self._state = state
        self.keys: list[bytes] = []
        self._bases: list[int] = []
        self._lengths: list[int] = []
        self._elements: list[bytes] = []

    def add(self, key: bytes, base: int, elements: Sequence[bytes]) -> None:
        """Add a list that was replaced (`REPLACE`) or appended to."""
        self.keys.append(key)
        self._bases.append(base)
        self._lengths.append(len(elements))
        self._elements += elements

    def part(self) -> StatePart:
        """Encode them."""
        elements = self._state.elements.column(self._elements)
        operations = ListOperations(self._bases, self._lengths, elements)
        return self._state.part(self.keys, msgspec.Raw(_encode(operations)))


class RocksListColumn:
    """The `ListColumn` over elements in the database: it makes a row current for each call of the list's handle."""

    def __init__(self, rows: Any, column: int) -> None:
        self._rows = rows
        self._column = column
        self._elements = RocksListState(rows, column)

    def present(self, row: Row) -> bool:
        """Whether the row has elements."""
        held: ListElements | None = row[self._column]
        return held is not None and len(held) > 0

    def get(self, row: Row) -> list[Any]:
        """The row's elements."""
        return self._at(row, self._elements.get)

    def append(self, row: Row, element: Any) -> None:
        """Add an element."""
        self._at(row, self._elements.add, element)

    def put(self, row: Row, elements: list[Any]) -> None:
        """Replace the elements."""
        self._at(row, self._elements.update, elements)

    def remove(self, row: Row) -> None:
        """Remove all elements."""
        self._at(row, self._elements.clear)

    def _at(self, row: Row, method: Callable[..., T], *arguments: Any) -> T:
        rows = self._rows
        current, rows.row = rows.row, row
        try:
            return method(*arguments)
        finally:
            rows.row = current
