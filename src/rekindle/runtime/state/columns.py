"""The columns of one state in the rows of a backend: captured for snapshots, loaded from parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice, repeat
from typing import Any, Final

from rekindle.datastream.state import State
from rekindle.errors import IncompatibleStateError, SerializationError
from rekindle.runtime.immutability import all_immutable
from rekindle.runtime.state.change_tracking import ROW_COLUMNS, ROW_GROUP, ROW_KEY, WHOLE, Change, ChangeSet, Row
from rekindle.runtime.state.deferred_capture import SAMPLE_ROWS, Deferred, Overwritten, checked
from rekindle.runtime.state.evolution import evolved, migrations
from rekindle.runtime.state.keyed_state_format import (
    REPLACE,
    CapturedColumn,
    CapturedLists,
    CapturedMaps,
    CapturedOperations,
    CapturedState,
    StatePart,
    list_operations,
    map_operations,
)
from rekindle.runtime.state.spec import UNREADABLE, Codec, StateKind, StateSpec
from rekindle.runtime.state.ttl.expiry import reader

_ABSENT: Final = object()
_NONE: Final = type(None)


class Column:
    """A registered state: its place in a row, its handle, and how its values become operations of a part."""

    __slots__ = ("_captured", "handle", "place", "spec")

    def __init__(self, spec: StateSpec, place: int, handle: State) -> None:
        self.spec = spec
        self.place = place
        self.handle = handle
        self._captured: Callable[[list[Any], Iterable[Change]], CapturedOperations]
        if spec.kind is StateKind.LIST:
            self._captured = self._captured_lists
        elif spec.kind is StateKind.MAP:
            self._captured = self._captured_maps
        else:
            self._captured = self._captured_values

    # --------------------------------------------------------------------------------------------------- capturing

    def capture_changes(self, changes: ChangeSet, without: frozenset[int]) -> dict[int, CapturedState]:
        """Capture the changes of this state, per key group; key groups in `without` are left out."""
        mark, place = self.place + 1, self.place
        rows: dict[int, list[Row]] = defaultdict(list)
        details: dict[int, list[Change]] = defaultdict(list)
        if self.spec.kind.detailed:
            for row, change in changes.detailed.get(mark, ()):
                rows[row[ROW_GROUP]].append(row)
                details[row[ROW_GROUP]].append(change)
        else:
            for row in changes.plain.get(mark, ()):
                rows[row[ROW_GROUP]].append(row)
        captured = {}
        for group, own in rows.items():
            if group not in without:
                operations = self._captured([row[place] for row in own], details.get(group) or repeat(WHOLE))
                captured[group] = CapturedState(self.spec, [row[ROW_KEY] for row in own], operations)
        return captured

    def capture_all(self, rows: Mapping[Any, Row]) -> CapturedState | None:
        """Capture this state of all rows of one key group; None if no row has a value."""
        place = self.place
        values = [row[place] for row in rows.values()]
        # Compare identities only: touching each value would miss the processor's cache.
        held = [value for value in values if value is not None]
        if not held:
            return None
        if len(held) == len(values):
            keys = list(rows)
        else:
            keys = [key for key, value in zip(rows, values, strict=True) if value is not None]
        return CapturedState(self.spec, keys, self._captured(held, repeat(WHOLE)))

    def defer_changes(
        self, changes: ChangeSet, without: frozenset[int], overwritten: Overwritten
    ) -> Deferred[dict[int, CapturedState]] | None:
        """Do `capture_changes` later; None if that is not possible."""
        rows = changes.plain.get(self.place + 1, [])
        if not self._can_defer(rows[-SAMPLE_ROWS:]):
            return None

        def work() -> dict[int, CapturedState]:
            by_group: dict[int, tuple[list[Any], list[Any]]] = {}
            for row, value in zip(rows, overwritten.values_at_cut(rows, self.place), strict=True):
                group = row[ROW_GROUP]
                own = by_group.get(group)
                if own is None:
                    own = by_group[group] = ([], [])
                own[0].append(row[ROW_KEY])
                own[1].append(value)
            return {
                group: self._checked(keys, values) for group, (keys, values) in by_group.items() if group not in without
            }

        return overwritten.defer(work)

    def defer_all(self, rows: Mapping[Any, Row], overwritten: Overwritten) -> Deferred[CapturedState | None] | None:
        """Do `capture_all` later; None if that is not possible."""
        if not self._can_defer(islice(rows.values(), SAMPLE_ROWS)):
            return None

        def work() -> CapturedState | None:
            listed = list(rows.values())  # atomic: rows are added and removed meanwhile
            values = overwritten.values_at_cut(listed, self.place)
            keys = [row[ROW_KEY] for row, value in zip(listed, values, strict=True) if value is not None]
            if len(keys) < len(values):
                values = [value for value in values if value is not None]
            return self._checked(keys, values) if keys else None

        return overwritten.defer(work)

    def _can_defer(self, sample: Iterable[Row]) -> bool:
        """Whether the values can be read later: their declared type and a few samples are immutable."""
        spec, place = self.spec, self.place
        return spec.frozen and not spec.kind.detailed and all_immutable([row[place] for row in sample])

    def _checked(self, keys: list[Any], values: list[Any]) -> CapturedState:
        column = CapturedColumn(checked(self.spec, values), self.spec.values, checked=True)
        return CapturedState(self.spec, keys, column)

    def _captured_values(self, held: list[Any], _: Iterable[Change]) -> CapturedOperations:
        return CapturedColumn(held, self.spec.values)

    def _captured_lists(self, held: list[list[Any] | None], changes: Iterable[Change]) -> CapturedOperations:
        bases: list[int] = []
        appended: list[list[Any]] = []
        for elements, change in zip(held, changes):  # noqa: B905 (changes may be endless)
            if elements is None or change is WHOLE:
                bases.append(REPLACE)
                appended.append(elements or [])
            else:
                bases.append(change)
                appended.append(elements[change:])
        column = CapturedColumn(list(chain.from_iterable(appended)), self.spec.values)
        return CapturedLists(bases, list(map(len, appended)), column)

    def _captured_maps(self, held: list[dict[Any, Any] | None], changes: Iterable[Change]) -> CapturedOperations:
        whole: list[bool] = []
        lengths: list[int] = []
        fields: list[Any] = []
        values: list[Any] = []
        removed: list[int] = []
        for entries, change in zip(held, changes):  # noqa: B905 (changes may be endless)
            replaced = entries is None or change is WHOLE
            whole.append(replaced)
            if entries is None:
                lengths.append(0)
            elif replaced:
                lengths.append(len(entries))
                fields.extend(entries)
                values.extend(entries.values())
            else:
                lengths.append(len(change))
                for field in change:
                    value = entries.get(field, _ABSENT)
                    if value is _ABSENT:
                        removed.append(len(fields))
                    else:
                        values.append(value)
                    fields.append(field)
        assert self.spec.fields is not None
        return CapturedMaps(
            whole,
            lengths,
            CapturedColumn(fields, self.spec.fields),
            removed,
            CapturedColumn(values, self.spec.values),
        )

    # ----------------------------------------------------------------------------------------------------- loading

    def load(self, part: StatePart, group: int, rows: dict[Any, Row], key_codec: Codec) -> list[Row]:
        """Apply a part's operations to the rows of its key group; returns the rows whose value is empty now.

        This is the last column so far: rows that the part adds have no values in the columns before it.
        """
        spec = self.spec
        if part.kind is not spec.kind:
            raise IncompatibleStateError(
                f"State '{spec.name}' was saved as {part.kind} state of {part.type_name}, but the program registers it "
                f"as {spec.kind} state of {spec.type_name}: give the new one another name."
            )
        migrations(spec, part, key_codec)  # refuses a type that cannot be read, by name
        load = {StateKind.LIST: self._load_lists, StateKind.MAP: self._load_maps}.get(spec.kind, self._load_values)
        try:
            part = evolved(spec, part, key_codec)
            return load(part, group, rows, key_codec.decode_all(part.keys))
        except UNREADABLE as error:
            raise IncompatibleStateError(
                f"State '{spec.name}', saved as {part.kind} state of {part.type_name}, cannot be read as "
                f"{spec.type_name} ({error}): declare the types that it and its key were saved with, or give the new "
                "state another name."
            ) from error

    def _load_values(self, part: StatePart, group: int, rows: dict[Any, Row], keys: list[Any]) -> list[Row]:
        values = reader(self.spec, part)(part.operations)
        before = [None] * (self.place - ROW_COLUMNS)
        if not rows and not before and _NONE not in set(map(type, values)):
            # The fast path for the most frequent case, which may have millions of keys.
            rows.update({key: [key, group, value, None] for key, value in zip(keys, values, strict=True)})
            return []
        emptied: list[Row] = []
        place = self.place
        for key, value in zip(keys, values, strict=True):
            row = rows.get(key)
            if row is None:
                row = rows[key] = [key, group, *before, value, None]
            else:
                row[place] = value
            if value is None:
                emptied.append(row)
        return emptied

    def _load_lists(self, part: StatePart, group: int, rows: dict[Any, Row], keys: list[Any]) -> list[Row]:
        operations = list_operations(part)
        elements = reader(self.spec, part)(operations.elements)
        if len(elements) != sum(operations.lengths):
            raise SerializationError(f"{sum(operations.lengths)} elements were saved, but {len(elements)} are there")
        remaining = iter(elements)
        emptied: list[Row] = []
        for key, base, length in zip(keys, operations.bases, operations.lengths, strict=True):
            row = self._row(key, group, rows)
            held = [] if base == REPLACE else row[self.place]
            if base != REPLACE and (held is None or len(held) != base):
                raise SerializationError(
                    f"a delta appends to {base} elements of key {key!r}, but there are {len(held or ())}"
                )
            held.extend(islice(remaining, length))
            row[self.place] = held or None
            if not held:
                emptied.append(row)
        return emptied

    def _load_maps(self, part: StatePart, group: int, rows: dict[Any, Row], keys: list[Any]) -> list[Row]:
        operations = map_operations(part)
        assert self.spec.fields is not None
        fields = self.spec.fields.decode_all(operations.fields)
        values = reader(self.spec, part)(operations.values)
        removed = set(operations.removed)
        if not sum(operations.lengths) == len(fields) == len(values) + len(removed):
            raise SerializationError(f"{sum(operations.lengths)} entries were saved, but {len(fields)} are there")
        remaining = iter(values)
        emptied: list[Row] = []
        start = 0
        for key, whole, length in zip(keys, operations.whole, operations.lengths, strict=True):
            row = self._row(key, group, rows)
            held = {} if whole or row[self.place] is None else row[self.place]
            for place in range(start, start + length):
                if place in removed:
                    held.pop(fields[place], None)
                else:
                    held[fields[place]] = next(remaining)
            start += length
            row[self.place] = held or None
            if not held:
                emptied.append(row)
        return emptied

    def _row(self, key: Any, group: int, rows: dict[Any, Row]) -> Row:
        row = rows.get(key)
        if row is None:
            row = rows[key] = [key, group, *[None] * (self.place - ROW_COLUMNS), None, None]
        return row
