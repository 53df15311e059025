"""A registered state in the database: its number, its codecs, and the operations that its changes become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

import msgspec

from rekindle.datastream.state import State
from rekindle.runtime.key_bytes import canonical_bytes
from rekindle.runtime.state.change_tracking import ROW_GROUP, ROW_KEY, ChangeSet, Row
from rekindle.runtime.state.keyed_state_format import CapturedColumn, CapturedState, StatePart
from rekindle.runtime.state.rocksdb.delta_log import Segment
from rekindle.runtime.state.rocksdb.element_codecs import ElementCodec, element_codec
from rekindle.runtime.state.rocksdb.entry_keys import state_prefix
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase, Write
from rekindle.runtime.state.spec import Codec, StateSpec

_LENGTH: Final = Struct(">I")


def packed(first: bytes, second: bytes) -> bytes:
    """Two elements as one value of the database.

    >>> unpacked(packed(b"key", b"value"))
    (b'key', b'value')
    """
    return _LENGTH.pack(len(first)) + first + second


def unpacked(data: bytes) -> tuple[bytes, bytes]:
    """The elements that `packed` joined."""
    middle = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    return data[_LENGTH.size : middle], data[middle:]


def second_of(data: bytes) -> bytes:
    """The second element that `packed` joined."""
    return data[_LENGTH.size + _LENGTH.unpack_from(data)[0] :]


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

    def part(self, keys: Sequence[bytes], operations: msgspec.Raw) -> StatePart:
        """A part of operations."""
        spec = self.spec
        return StatePart(spec.name, spec.kind, spec.type_name, "", self.keys.column(keys), operations, self._schema)

    @abstractmethod
    def read(self, found: Sequence[tuple[Row, bytes]]) -> list[Any]:
        """The values for rows, from what the database has at their `entry_key`."""

    @abstractmethod
    def write(self, rows: Sequence[Row], logs: Segment | None, generation: ChangeSet) -> list[Write]:
        """The entries to write for changed rows; changes of the open generation go into `logs`, if there is one."""

    def saved(self, row: Row, leave: bool) -> None:
        """Note that the database has the row's value; `leave`: the log has its change too."""

    def is_empty(self, row: Row) -> bool:
        """Whether a row that leaves the cache has no value in this state."""
        return row[self.place] is None

    @abstractmethod
    def captured(self, rows: Sequence[Row], generation: ChangeSet) -> CapturedState | None:
        """The changes of rows of one key group in the open generation."""

    @abstractmethod
    def scanned(self, entries: Iterator[tuple[bytes, bytes]]) -> StatePart | None:
        """The whole state of a key group from its entries in the database; None if there is nothing."""

    @abstractmethod
    def scanned_keys(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
        """The elements of the keys that have a value."""


class StoredValues(StoredState):
    """A value-like state: one entry per key, with the key and the value."""

    def read(self, found: Sequence[tuple[Row, bytes]]) -> list[Any]:
        return self.elements.values([second_of(data) for _, data in found])

    def write(self, rows: Sequence[Row], logs: Segment | None, generation: ChangeSet) -> list[Write]:
        place, mark = self.place, self.place + 1
        keys = self.keys.elements([row[ROW_KEY] for row in rows])
        values = self.elements.elements([row[place] for row in rows])
        if logs is not None:
            by_group: defaultdict[int, ValueOperations] = defaultdict(lambda: ValueOperations(self))
            for row, key, value in zip(rows, keys, values, strict=True):
                if row[mark] is generation:
                    operations = by_group[row[ROW_GROUP]]
                    operations.keys.append(key)
                    operations.values.append(value)
            for group, operations in by_group.items():
                self._log(logs, group, operations)
        return [
            (self.entry_key(row), None if row[place] is None else packed(key, value))
            for row, key, value in zip(rows, keys, values, strict=True)
        ]

    def _log(self, segment: Segment, group: int, added: ValueOperations) -> None:
        operations = segment.operations(group, self.number)
        if operations is None:
            segment.begin(group, self.number, added)
        else:
            assert isinstance(operations, ValueOperations)
            operations.keys += added.keys
            operations.values += added.values
        segment.grow(len(added.keys), sum(map(len, added.keys)) + sum(map(len, added.values)))

    def captured(self, rows: Sequence[Row], generation: ChangeSet) -> CapturedState | None:
        place = self.place
        column = CapturedColumn([row[place] for row in rows], self.spec.values)
        return CapturedState(self.spec, [row[ROW_KEY] for row in rows], column)

    def scanned(self, entries: Iterator[tuple[bytes, bytes]]) -> StatePart | None:
        pairs = [unpacked(data) for _, data in entries]
        if not pairs:
            return None
        return self.part([key for key, _ in pairs], self.elements.column([value for _, value in pairs]))

    def scanned_keys(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
        return (unpacked(data)[0] for _, data in entries)


class ValueOperations:
    """Logged operations on a value-like state."""

    def __init__(self, state: StoredState) -> None:
        self._state = state
        self.keys: list[bytes] = []
        self.values: list[bytes] = []

    def part(self) -> StatePart:
        """Encode them."""
        return self._state.part(self.keys, self._state.elements.column(self.values))
