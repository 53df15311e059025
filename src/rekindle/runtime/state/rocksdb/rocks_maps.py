"""Map state in the database: every entry is one of its own, so that a large map is never loaded whole.

At the place of the key lies a header with the key alone; the entries follow it, by the canonical bytes of their field.
In memory a map keeps the entries that were used lately, and all of them if they are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from rekindle.datastream.state import MapState
from rekindle.runtime.key_bytes import canonical_bytes
from rekindle.runtime.state.change_tracking import ROW_GROUP, ROW_KEY, ChangeSet, Row
from rekindle.runtime.state.keyed_state_format import (
    CapturedColumn,
    CapturedMaps,
    CapturedState,
    MapOperations,
    StatePart,
)
from rekindle.runtime.state.rocksdb.delta_log import Segment
from rekindle.runtime.state.rocksdb.element_codecs import Element, element_codec
from rekindle.runtime.state.rocksdb.scratch_database import Write
from rekindle.runtime.state.rocksdb.stored_states import StatePlace, StoredState, packed, unpacked
from rekindle.runtime.state.spec import Codec, StateSpec

_encode = msgspec.msgpack.Encoder().encode
_ABSENT: Final = object()
_UNKNOWN: Final = object()
#: A map with at most so many entries is loaded whole.
_FEW_ENTRIES: Final = 64
#: A map that has more entries in memory writes them back.
_MOST_ENTRIES: Final = 4096


class MapEntries:
    """One key's map: entries in memory, the others in the database."""

    __slots__ = ("cleared", "complete", "dirty", "entries", "header", "replaced_in", "state")

    def __init__(self, state: StoredMaps, header: bytes, complete: bool) -> None:
        """`complete`: the database has no entries of this map."""
        self.state = state
        self.header = header
        #: field -> value, or _ABSENT for a field that is known to be missing.
        self.entries: dict[Any, Any] = {}
        #: Whether all fields are in `entries`.
        self.complete = complete
        #: Field that the database does not have as it is now -> the generation of its last change.
        self.dirty: dict[Any, ChangeSet] = {}
        #: Whether the entries in the database count no more.
        self.cleared = False
        #: The generation in which the map was emptied: its delta begins with an empty map.
        self.replaced_in: ChangeSet | None = None

    # -- reading ------------------------------------------------------------------------------------------------------

    def load_if_small(self) -> None:
        """Load the map whole if it has few entries."""
        if self.complete or self.entries:
            return
        stored = list(islice(self._stored(), _FEW_ENTRIES + 1))
        if len(stored) <= _FEW_ENTRIES:
            self.entries = dict(self.state.decoded(stored))
            self.complete = True

    def get(self, field: Any) -> Any:
        """The value of a field; _ABSENT if there is none."""
        self.load_if_small()
        value = self.entries.get(field, _UNKNOWN)
        if value is not _UNKNOWN:
            return value
        if self.complete:
            return _ABSENT
        data = self.state.database.get(self.header + canonical_bytes(field))
        value = _ABSENT if data is None else self.state.decoded([data])[0][1]
        self.entries[field] = value
        return value

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The entries as they are now."""
        self.load_if_small()
        if self.complete:
            return iter([(field, value) for field, value in self.entries.items() if value is not _ABSENT])
        return self._merged({field: self.entries[field] for field in self.dirty})

    def _merged(self, changed: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
        """The entries of the database with the changes that it does not have yet."""
        stored = self._stored()
        while some := list(islice(stored, _FEW_ENTRIES)):
            for field, value in self.state.decoded(some):
                value = changed.pop(field, value)
                if value is not _ABSENT:
                    yield field, value
        for field, value in changed.items():
            if value is not _ABSENT:
                yield field, value

    def _stored(self) -> Iterator[bytes]:
        entries = self.state.database.scan(self.header)
        return (data for key, data in entries if len(key) > len(self.header))

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return next(self.items(), None) is None

    # -- writing ------------------------------------------------------------------------------------------------------

    def put(self, field: Any, value: Any, generation: ChangeSet) -> None:
        """Set an entry."""
        self.entries[field] = value
        self.dirty[field] = generation

    def clear(self, generation: ChangeSet) -> None:
        """Remove all entries."""
        self.entries, self.dirty = {}, {}
        self.cleared = self.complete = True
        self.replaced_in = generation

    def forget(self) -> None:
        """Drop the entries in memory, which the database has."""
        self.entries = {}
        self.complete = False


class RocksMapState(MapState[Any, Any]):
    """A map per key whose entries are in the database."""

    __slots__ = ("_column", "_mark", "_rows")

    def __init__(self, rows: Any, column: int) -> None:
        self._rows = rows
        self._column = column
        self._mark = column + 1

    def _held(self) -> MapEntries | None:
        held: MapEntries | None = self._rows.row[self._column]
        return held

    def get(self, key: Any) -> Any:
        """The value of an entry, or None."""
        held = self._held()
        value = _ABSENT if held is None else held.get(key)
        return None if value is _ABSENT else value

    def contains(self, key: Any) -> bool:
        """Whether there is such an entry."""
        held = self._held()
        return held is not None and held.get(key) is not _ABSENT

    def put(self, key: Any, value: Any) -> None:
        """Set an entry; None is a value like any other."""
        held = self._changing()
        held.put(key, value, self._rows.generation)
        self._bound(held)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove an entry, if it is there."""
        if self.contains(key):
            held = self._changing()
            held.put(key, _ABSENT, self._rows.generation)
            self._bound(held)

    def _changing(self) -> MapEntries:
        """The map of the current key, which is about to change."""
        rows = self._rows
        row = rows.row
        held: MapEntries | None = row[self._column]
        if held is None:
            state: StoredMaps = rows.state_at(self._column)
            held = row[self._column] = MapEntries(state, state.entry_key(row), complete=True)
            held.replaced_in = rows.generation
        else:
            held.load_if_small()
        if row[self._mark] is not rows.generation:
            rows.mark(row, self._mark)
        return held

    def _bound(self, held: MapEntries) -> None:
        if len(held.entries) > _MOST_ENTRIES:
            self._rows.save_large(self._rows.row, held.state)

    def keys(self) -> Iterator[Any]:
        """The keys as they are now: changing the map while iterating is safe."""
        return (key for key, _ in self.items())

    def values(self) -> Iterator[Any]:
        """The values as they are now."""
        return (value for _, value in self.items())

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The entries as they are now."""
        held = self._held()
        return iter(()) if held is None else held.items()

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        held = self._held()
        return held is None or held.is_empty()

    def clear(self) -> None:
        """Remove all entries."""
        if not self.is_empty():
            self._changing().clear(self._rows.generation)


class StoredMaps(StoredState):
    """A map state in the database."""

    def __init__(self, place: StatePlace, key_groups: range, spec: StateSpec, key_codec: Codec) -> None:
        super().__init__(place, key_groups, spec, key_codec)
        assert spec.fields is not None
        self.fields = element_codec(spec.fields)

    def read(self, found: Sequence[tuple[Row, bytes]]) -> list[Any]:
        return [MapEntries(self, self.entry_key(row), complete=False) for row, _ in found]

    def decoded(self, stored: Sequence[bytes]) -> list[tuple[Any, Any]]:
        """Decode entries."""
        fields, values = unpacked(stored)
        return list(zip(self.fields.values(fields), self.elements.values(values), strict=True))

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, rows: Sequence[Row], logs: Segment | None, generation: ChangeSet) -> list[Write]:
        writes: list[Write] = []
        for row in rows:
            held: MapEntries = row[self.place]
            (key,) = self.keys.elements([row[ROW_KEY]])
            entries = self._entries(held)
            if logs is not None and row[self.place + 1] is generation:
                self._log(logs, row[ROW_GROUP], key, held, entries, generation)
            if held.cleared:
                writes += [(stored, None) for stored, _ in self.database.scan(held.header)]
            writes += [
                (held.header + canonical_bytes(field), None if value is None else packed(encoded, value))
                for field, encoded, value in entries
            ]
            writes.append((held.header, None if self._is_empty(row) else key))
        return writes

    def _entries(self, held: MapEntries) -> list[tuple[Any, bytes, bytes | None]]:
        """The changed entries: field, its element, and the element of its value; None if it was removed."""
        changed = list(held.dirty)
        fields = self.fields.elements(changed)
        there = [value for field in changed if (value := held.entries[field]) is not _ABSENT]
        values = iter(self.elements.elements(there))
        return [
            (field, encoded, None if held.entries[field] is _ABSENT else next(values))
            for field, encoded in zip(changed, fields, strict=True)
        ]

    def _log(
        self,
        segment: Segment,
        group: int,
        key: bytes,
        held: MapEntries,
        entries: Sequence[tuple[Any, bytes, bytes | None]],
        generation: ChangeSet,
    ) -> None:
        operations = segment.operations(group, self.number)
        if operations is None:
            operations = LoggedMaps(self)
            segment.begin(group, self.number, operations)
        assert isinstance(operations, LoggedMaps)
        now = [(encoded, value) for field, encoded, value in entries if held.dirty[field] is generation]
        operations.add(key, held.replaced_in is generation, now)
        segment.grow(1 + len(now), len(key) + sum(len(field) + len(value or b"") for field, value in now))

    def saved(self, rows: Sequence[Row], leave: bool) -> None:
        """Note that the database has the rows' maps."""
        for row in rows:
            held: MapEntries | None = row[self.place]
            if held is None:
                continue
            held.cleared = False
            if leave:
                held.replaced_in = None
                held.dirty = {}

    def without_value(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if self._is_empty(row)]

    def _is_empty(self, row: Row) -> bool:
        held: MapEntries | None = row[self.place]
        return held is None or (held.complete and all(value is _ABSENT for value in held.entries.values()))

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def captured(self, rows: Sequence[Row], generation: ChangeSet) -> CapturedState | None:
        keys: list[Any] = []
        whole: list[bool] = []
        lengths: list[int] = []
        fields: list[Any] = []
        removed: list[int] = []
        values: list[Any] = []
        for row in rows:
            held: MapEntries = row[self.place]
            changed = [field for field, last in held.dirty.items() if last is generation]
            if not changed and held.replaced_in is not generation:
                continue
            keys.append(row[ROW_KEY])
            whole.append(held.replaced_in is generation)
            lengths.append(len(changed))
            for field in changed:
                value = held.entries[field]
                if value is _ABSENT:
                    removed.append(len(fields))
                else:
                    values.append(value)
                fields.append(field)
        if not keys:
            return None
        assert self.spec.fields is not None
        columns = CapturedColumn(fields, self.spec.fields, True), CapturedColumn(values, self.spec.values, True)
        return CapturedState(self.spec, keys, CapturedMaps(whole, lengths, columns[0], removed, columns[1]))

    def scanned(self, entries: Iterator[tuple[bytes, bytes]]) -> StatePart | None:
        operations = LoggedMaps(self)
        for key, stored in self._maps(entries):
            operations.add(key, True, list(zip(*unpacked(stored), strict=True)))
        return operations.part() if operations.keys else None

    def scanned_keys(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
        return (key for key, _ in self._maps(entries))

    def _maps(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, list[bytes]]]:
        """The maps that have entries: the key's element, and the entries."""
        header, key, stored = b"", b"", []
        for place, data in entries:
            if header and place.startswith(header):
                stored.append(data)
                continue
            if stored:
                yield key, stored
            header, key, stored = place, data, []
        if stored:
            yield key, stored


class LoggedMaps:
    """Operations on a map state, as elements."""

    def __init__(self, state: StoredMaps) -> None:
        self._state = state
        self.keys: list[bytes] = []
        self._whole: list[bool] = []
        self._lengths: list[int] = []
        self._fields: list[Element] = []
        self._removed: list[int] = []
        self._values: list[Element] = []

    def add(self, key: bytes, whole: bool, entries: Sequence[tuple[Element, Element | None]]) -> None:
        """Add the entries of one key, None for a removed one; `whole`: the map was empty before them."""
        self.keys.append(key)
        self._whole.append(whole)
        self._lengths.append(len(entries))
        for field, value in entries:
            if value is None:
                self._removed.append(len(self._fields))
            else:
                self._values.append(value)
            self._fields.append(field)

    def part(self) -> StatePart:
        """Encode them."""
        state = self._state
        fields, values = state.fields.column(self._fields), state.elements.column(self._values)
        operations = MapOperations(self._whole, self._lengths, fields, self._removed, values)
        return state.part(self.keys, msgspec.Raw(_encode(operations)))
