"""Restored parts on their way into the database: they wait in a file, and each state loads its own, group by group.

The entries of one state in one key group go into the database as a sorted file. Lists and maps are applied in memory,
one key group at a time; values that RocksDB has saved are read a thousand at a time. Elements are taken over as they
are where the type is the one that they were saved with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar
from uuid import uuid4

import msgspec

from rekindle.common.types import Row as RowKey
from rekindle.errors import IncompatibleStateError, SerializationError, StateBackendError
from rekindle.runtime.key_bytes import canonical_all
from rekindle.runtime.state.columns import check_kind, unreadable
from rekindle.runtime.state.evolution import migrations, rewritten
from rekindle.runtime.state.keyed_state_format import REPLACE, StatePart, decode_part, list_operations, map_operations
from rekindle.runtime.state.rocksdb.element_codecs import Element
from rekindle.runtime.state.rocksdb.entry_keys import index_bytes
from rekindle.runtime.state.rocksdb.merged_values import Columns, MergedValues
from rekindle.runtime.state.rocksdb.rocks_lists import StoredLists, header_of
from rekindle.runtime.state.rocksdb.rocks_maps import StoredMaps
from rekindle.runtime.state.rocksdb.scratch_database import Entries, ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_states import StoredState, packed
from rekindle.runtime.state.spec import UNREADABLE, Codec, StateKind
from rekindle.runtime.state.ttl.expiry import TimedCodec, adopts
from rekindle.system import return_free_memory

T = TypeVar("T")
#: The elements of keys.
Keys = Sequence[Element]
_NO_COLUMN: Final = msgspec.Raw()
#: Where the entries of a key lie -> the key's element, and its list or map.
Held = dict[bytes, tuple[Element, Any]]


@dataclass(frozen=True, slots=True)
class WaitingPart:
    """A part whose columns are in the file of restored parts, one behind the other."""

    #: The part without its columns; parts of one state share it.
    header: StatePart
    #: It has changes, and not the whole key group.
    is_change: bool
    offset: int
    keys_bytes: int
    operations_bytes: int

    def with_columns(self, data: bytes) -> StatePart:
        """The part, from the bytes of both columns."""
        columns = memoryview(data)
        keys, operations = columns[: self.keys_bytes], columns[self.keys_bytes :]
        return msgspec.structs.replace(self.header, keys=msgspec.Raw(keys), operations=msgspec.Raw(operations))


@dataclass(frozen=True, slots=True)
class ClaimedGroup:
    """The parts of one state in one key group, read when they are asked for."""

    key_group: int
    #: A part of each kind that is there, without its columns.
    headers: list[StatePart]
    whole: Iterator[StatePart]
    changes: Iterator[StatePart]

    def parts(self) -> Iterator[StatePart]:
        """All of them, in their order."""
        return chain(self.whole, self.changes)


class RestoredParts:
    """The parts that no state has claimed yet: their columns are in a file on the local disk.

    When all are claimed, the file loses its name; snapshots that were cut before can still read it.
    """

    def __init__(self, folder: Path, key_groups: range) -> None:
        self._path = folder / f"restored-{uuid4().hex[:12]}"
        self._file: BinaryIO | None = None
        self._key_groups = key_groups
        self._waiting: dict[str, dict[int, list[WaitingPart]]] = {}
        self._headers: dict[tuple[str, StateKind, str, bytes], StatePart] = {}

    def take(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Keep the parts of own key groups: of each, first the whole one, then changes in their order."""
        offset, begun = 0, set[int]()
        try:
            with self._path.open("wb") as file:
                for group, data in parts:
                    for part in decode_part(group, data) if group in self._key_groups else ():
                        lengths = file.write(part.keys), file.write(part.operations)
                        waiting = WaitingPart(self._header(part), group in begun, offset, *lengths)
                        self._waiting.setdefault(part.name, {}).setdefault(group, []).append(waiting)
                        offset += sum(lengths)
                    begun.add(group)
            self._file = self._path.open("rb", buffering=0)
        except OSError as error:
            raise self._failed("written", error) from error
        self._remove_if_claimed()

    def _header(self, part: StatePart) -> StatePart:
        values = part.name, part.kind, part.type_name, part.schema
        if values not in self._headers:
            self._headers[values] = msgspec.structs.replace(part, keys=_NO_COLUMN, operations=_NO_COLUMN)
        return self._headers[values]

    def _remove_if_claimed(self) -> None:
        if not self._waiting:
            self._path.unlink(missing_ok=True)
            self._file = None

    def names(self) -> list[str]:
        """The states that are not claimed."""
        return list(self._waiting)

    def carried(self, group: int) -> Iterator[StatePart]:
        """The parts in a key group of the states that are unclaimed now, read when they are asked for."""
        return self._read(self._file, [part for groups in self._waiting.values() for part in groups.get(group, ())])

    def claim(self, name: str) -> Iterator[ClaimedGroup]:
        """The parts of a state, by key group; afterwards nobody else gets them."""
        for group, waiting in self._waiting.get(name, {}).items():
            whole = self._read(self._file, [part for part in waiting if not part.is_change])
            changes = self._read(self._file, [part for part in waiting if part.is_change])
            headers = list({id(part.header): part.header for part in waiting}.values())
            yield ClaimedGroup(group, headers, whole, changes)
        if self._waiting.pop(name, None) is not None:
            self._remove_if_claimed()

    def _read(self, file: BinaryIO | None, waiting: Iterable[WaitingPart]) -> Iterator[StatePart]:
        try:
            for part in waiting:
                assert file is not None, "parts without a file"
                length = part.keys_bytes + part.operations_bytes
                data = os.pread(file.fileno(), length, part.offset)
                if len(data) != length:
                    raise EOFError(f"it ends at {part.offset + len(data)}")
                yield part.with_columns(data)
        except (OSError, EOFError) as error:
            raise self._failed("read", error) from error

    def _failed(self, what: str, error: Exception) -> StateBackendError:
        return StateBackendError(f"Restored state cannot be {what} in {self._path}: {error}.")


@dataclass
class Loaded:
    """The parts that were loaded."""

    #: Key group -> the number of its keys.
    keys: dict[int, int] = field(default_factory=dict)
    #: Key groups whose values have just got timestamps, so that the next delta has to write them.
    adopted: list[int] = field(default_factory=list)


class PartLoader:
    """Loads the parts of one state into the database."""

    def __init__(
        self, state: StoredState, database: ScratchDatabase, key_codec: Codec, key_group_of: Callable[[Any], int]
    ) -> None:
        self._state = state
        self._key_codec = key_codec
        self._database = database
        self._key_group_of = key_group_of

    def load(self, claimed: Iterable[ClaimedGroup]) -> Loaded:
        """Load the parts of key groups."""
        loaded = Loaded()
        merged: dict[int, MergedValues] = {}
        self._database.ingest_files(self._entries(group, loaded, merged) for group in claimed)
        self._database.write(write for values in merged.values() for write in values.late)
        loaded.keys |= {group: values.count for group, values in merged.items()}
        if loaded.keys:
            return_free_memory()
        return loaded

    def _entries(self, claimed: ClaimedGroup, loaded: Loaded, merged: dict[int, MergedValues]) -> Entries:
        group = claimed.key_group
        if any(adopts(self._state.spec, header) for header in claimed.headers):
            loaded.adopted.append(group)
        if isinstance(self._state, StoredMaps):
            maps: Held = {}
            for part in claimed.parts():
                self._apply(group, part, partial(self._maps, maps=maps))
            loaded.keys[group], entries = len(maps), _map_entries(_ordered(maps))
        elif isinstance(self._state, StoredLists):
            lists: Held = {}
            for part in claimed.parts():
                self._apply(group, part, partial(self._lists, lists=lists))
            loaded.keys[group], entries = len(lists), _list_entries(_ordered(lists))
        else:
            merged[group] = MergedValues(self._columns(group, claimed.whole), self._columns(group, claimed.changes))
            entries = merged[group].entries()
        return entries

    def _columns(self, group: int, parts: Iterable[StatePart]) -> Iterator[Columns]:
        """The columns of value-like parts that are not empty."""
        for part in parts:
            columns = self._apply(group, part, self._values)
            if columns[0]:
                yield columns

    def _apply(self, group: int, part: StatePart, apply: Callable[[StatePart, Keys, list[bytes]], T]) -> T:
        """Call `apply` for a part, with the elements of its keys, and with where the entries of these lie."""
        spec = self._state.spec
        check_kind(spec, part)
        migrations(spec, part, self._key_codec)  # refuses a type that cannot be read, by name
        try:
            part = rewritten(spec, part, self._key_codec)
            self._check_readable(part)
            keys = self._key_codec.decode_all(part.keys)
            applied = apply(part, self._state.keys.cut(part.keys), canonical_all(keys, self._state.prefix(group)))
        except UNREADABLE as error:
            raise unreadable(spec, part, error) from error
        self._check_key_groups(group, keys)
        return applied

    def _check_readable(self, part: StatePart) -> None:
        """Decode values that are not msgpack of their type: a class or a serializer may be gone, or have changed."""
        values = self._state.spec.values
        if getattr(values.untimed if isinstance(values, TimedCodec) else values, "name", "") == "msgpack":
            return
        column = part.operations
        if part.kind is StateKind.LIST:
            column = list_operations(part).elements
        elif part.kind is StateKind.MAP:
            column = map_operations(part).values
        values.decode_all(column)

    def _values(self, part: StatePart, keys: Keys, places: list[bytes]) -> Columns:
        elements = self._state.elements.cut(part.operations)
        if len(keys) != len(elements):
            raise SerializationError(f"{len(keys)} keys were saved, but {len(elements)} values")
        return places, list(keys), list(elements)

    def _lists(self, part: StatePart, keys: Keys, places: list[bytes], lists: Held) -> None:
        operations = list_operations(part)
        elements = self._state.elements.split(operations.elements)
        if len(elements) != sum(operations.lengths):
            raise SerializationError(f"{sum(operations.lengths)} elements were saved, but {len(elements)} are there")
        begin = 0
        for key, place, base, length in zip(keys, places, operations.bases, operations.lengths, strict=True):
            _, held = lists.get(place, (key, []))
            held = [] if base == REPLACE else held
            if base != REPLACE and len(held) != base:
                named = self._state.keys.values([key])[0]
                raise SerializationError(
                    f"a delta appends to {base} elements of key {named!r}, but there are {len(held)}"
                )
            held += elements[begin : begin + length]
            begin += length
            if held:
                lists[place] = key, held
            else:
                lists.pop(place, None)

    def _maps(self, part: StatePart, keys: Keys, places: list[bytes], maps: Held) -> None:
        state = self._state
        assert isinstance(state, StoredMaps)
        operations = map_operations(part)
        encoded = state.fields.split(operations.fields)
        fields = canonical_all(state.fields.values(encoded))
        values, removed = self._state.elements.split(operations.values), set(operations.removed)
        if not sum(operations.lengths) == len(fields) == len(values) + len(removed):
            raise SerializationError(f"{sum(operations.lengths)} entries were saved, but {len(fields)} are there")
        remaining, begin = iter(values), 0
        for key, place, whole, length in zip(keys, places, operations.whole, operations.lengths, strict=True):
            _, held = maps.get(place, (key, {}))
            held = {} if whole else held
            for index in range(begin, begin + length):
                if index in removed:
                    held.pop(fields[index], None)
                else:
                    held[fields[index]] = packed(encoded[index], next(remaining))
            begin += length
            if held:
                maps[place] = key, held
            else:
                maps.pop(place, None)

    def _check_key_groups(self, group: int, keys: list[Any]) -> None:
        """Refuse a `Row` key that belongs to another key group now: it would never be found again.

        A row without names that was saved when keys had no declared type gets the names of a type declared since.
        """
        if not keys or type(keys[0]) is not RowKey:
            return
        for key in keys:
            if (home := self._key_group_of(key)) != group:
                raise IncompatibleStateError(
                    f"Key {key!r} of state '{self._state.spec.name}' was saved in key group {group}, but under the "
                    f"key's type it belongs to {home}: declare the type that it was saved with, or give the operator "
                    "another uid()."
                )


def _ordered(held: Held) -> list[tuple[bytes, Any]]:
    return sorted(held.items(), key=itemgetter(0))


def _map_entries(maps: Iterable[tuple[bytes, tuple[Element, dict[bytes, bytes]]]]) -> Entries:
    for place, (key, fields) in maps:
        yield place, bytes(key)
        for name in sorted(fields):
            yield place + name, fields[name]


def _list_entries(lists: Iterable[tuple[bytes, tuple[Element, list[bytes]]]]) -> Entries:
    for place, (key, elements) in lists:
        yield place, header_of(bytes(key), len(elements))
        for index, element in enumerate(elements):
            yield place + index_bytes(index), element
