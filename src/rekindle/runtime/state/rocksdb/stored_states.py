"""A registered state in the database: its number, its codecs, and the operations that its changes become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import add, itemgetter
from typing import Any, Final

import msgspec

from rekindle.datastream.state import State
from rekindle.runtime.key_bytes import canonical_all, canonical_bytes
from rekindle.runtime.state.change_tracking import ROW_GROUP, ROW_KEY, ChangeSet, Row
from rekindle.runtime.state.keyed_state_format import CapturedColumn, CapturedState, StatePart
from rekindle.runtime.state.rocksdb.delta_log import Segment
from rekindle.runtime.state.rocksdb.element_codecs import Element, ElementCodec, cut, element_codec, joined
from rekindle.runtime.state.rocksdb.entry_keys import state_prefix
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase, Write
from rekindle.runtime.state.spec import Codec, StateSpec

_SCANNED_ENTRIES: Final = 1024
#: The entries of a whole key group are written in parts of so many.
_PART_ENTRIES: Final = 1 << 12
_row_key = itemgetter(ROW_KEY)
_row_group = itemgetter(ROW_GROUP)


def packed(first: Element, second: Element) -> bytes:
    """Two elements as one value of the database.

    >>> list(map(bytes, unpacked([packed(b"\\x01", b"\\xa1k"), packed(b"\\x02", b"\\xc0")])[1]))
    [b'\\xa1k', b'\\xc0']
    """
    return b"".join((first, second))


def unpacked(entries: Sequence[bytes]) -> tuple[list[msgspec.Raw], list[msgspec.Raw]]:
    """The first and the second elements that `packed` joined, of many values; they keep one copy of all alive."""
    pieces = cut(joined(entries, values_in_each=2))
    return pieces[::2], pieces[1::2]


@dataclass(frozen=True)
class StatePlace:
    """Where a state is: in which database, of which operator, under which number there, in which column of a row."""

    database: ScratchDatabase
    operator: int
    number: int
    column: int


class StoredState(ABC):
    """A registered state."""

    def __init__(self, place: StatePlace, key_groups: range, spec: StateSpec, key_codec: Codec) -> None:
        self.spec = spec
        self.database = place.database
        self.number = place.number
        self.place = place.column
        self.handle: State | None = None
        self.elements: ElementCodec = element_codec(spec.values)
        self.keys: ElementCodec = element_codec(key_codec)
        self._schema = spec.stored_schema(key_codec.schema)
        self._prefixes = {group: state_prefix(place.operator, group, place.number) for group in key_groups}

    def prefix(self, group: int) -> bytes:
        """The prefix of its entries in a key group."""
        return self._prefixes[group]

    def entry_key(self, row: Row) -> bytes:
        """Where the entry of a row's key lies."""
        group = row[ROW_GROUP]
        return self._prefixes[group if group >= 0 else ~group] + canonical_bytes(row[ROW_KEY])

    def entry_keys(self, rows: Sequence[Row]) -> list[bytes]:
        """Where the entries of rows that have a value lie."""
        return self.places_of(map(_row_group, rows), canonical_all(list(map(_row_key, rows))))

    def places_of(self, groups: Iterable[int], places: Iterable[bytes]) -> list[bytes]:
        """Where the entries of keys lie, by their key groups and canonical bytes."""
        return list(map(add, map(self._prefixes.__getitem__, groups), places))

    def part(self, keys: Sequence[Element], operations: msgspec.Raw) -> StatePart:
        """A part of operations."""
        spec = self.spec
        return StatePart(spec.name, spec.kind, spec.type_name, self.keys.column(keys), operations, self._schema)

    @abstractmethod
    def read(self, found: Sequence[tuple[Row, bytes]]) -> list[Any]:
        """The values for rows, from what the database has at their `entry_key`."""

    @abstractmethod
    def write(self, rows: Sequence[Row], logs: Segment | None, generation: ChangeSet) -> list[Write]:
        """The entries to write for changed rows; changes of the open generation go into `logs`, if there is one."""

    def saved(self, rows: Sequence[Row], leave: bool) -> None:
        """Note that the database has the rows' values; `leave`: the log has their changes too."""

    def without_value(self, rows: Iterable[Row]) -> list[Row]:
        """Those of the rows that have no value in this state."""
        place = self.place
        return [row for row in rows if row[place] is None]

    @abstractmethod
    def captured(self, rows: Sequence[Row], generation: ChangeSet) -> CapturedState | None:
        """The changes of rows of one key group in the open generation."""

    @abstractmethod
    def scanned(self, entries: Iterator[tuple[bytes, bytes]]) -> StatePart | None:
        """The whole state of a key group from its entries in the database; None if there is nothing."""

    def scanned_parts(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[StatePart]:
        """The same in one part or several, so that not all entries are in memory at once."""
        if (part := self.scanned(entries)) is not None:
            yield part

    @abstractmethod
    def scanned_keys(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[Element]:
        """The elements of the keys that have a value."""


class StoredValues(StoredState):
    """A value-like state: one entry per key, with the key and the value."""

    def read(self, found: Sequence[tuple[Row, bytes]]) -> list[Any]:
        return self.values([data for _, data in found])

    def values(self, entries: Sequence[bytes]) -> list[Any]:
        """The values of entries."""
        return self.elements.values(unpacked(entries)[1])

    def write(self, rows: Sequence[Row], logs: Segment | None, generation: ChangeSet) -> list[Write]:
        if logs is None:
            return self._writes(rows, None)
        mark = self.place + 1
        # Logged elements are pieces of what is encoded together: nothing else may be in there.
        before = [row for row in rows if row[mark] is not generation]
        now = [row for row in rows if row[mark] is generation] if before else rows
        return self._writes(before, None) + self._writes(now, logs)

    def _writes(self, rows: Sequence[Row], logs: Segment | None) -> list[Write]:
        place = self.place
        keys = self.keys.pieces(list(map(_row_key, rows)))
        held = [row[place] for row in rows]
        values = self.elements.pieces(held)
        if logs is not None:
            self._log(logs, rows, keys, values)
        entries: Iterable[bytes | None] = map(b"".join, zip(keys, values, strict=True))
        if type(None) in set(map(type, held)):
            entries = (entry if value is not None else None for entry, value in zip(entries, held, strict=True))
        return list(zip(self.entry_keys(rows), entries, strict=True))

    def _log(self, segment: Segment, rows: Sequence[Row], keys: Sequence[Element], values: Sequence[Element]) -> None:
        for row, key, value in zip(rows, keys, values, strict=True):
            operations = segment.operations(row[ROW_GROUP], self.number)
            if operations is None:
                operations = ValueOperations(self)
                segment.begin(row[ROW_GROUP], self.number, operations)
            assert type(operations) is ValueOperations
            operations.keys.append(key)
            operations.values.append(value)
        segment.grow(len(rows), sum(map(len, keys)) + sum(map(len, values)))

    def captured(self, rows: Sequence[Row], generation: ChangeSet) -> CapturedState | None:
        place = self.place
        column = CapturedColumn([row[place] for row in rows], self.spec.values, checked=True)
        return CapturedState(self.spec, [row[ROW_KEY] for row in rows], column)

    def scanned(self, entries: Iterator[tuple[bytes, bytes]]) -> StatePart | None:
        keys, values = unpacked([data for _, data in entries])
        return self.part(keys, self.elements.column(values)) if keys else None

    def scanned_parts(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[StatePart]:
        while (part := self.scanned(islice(entries, _PART_ENTRIES))) is not None:
            yield part

    def scanned_keys(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[Element]:
        while some := [data for _, data in islice(entries, _SCANNED_ENTRIES)]:
            yield from unpacked(some)[0]


class ValueOperations:
    """Logged operations on a value-like state."""

    def __init__(self, state: StoredState) -> None:
        self._state = state
        self.keys: list[Element] = []
        self.values: list[Element] = []

    def part(self) -> StatePart:
        """Encode them."""
        return self._state.part(self.keys, self._state.elements.column(self.values))
