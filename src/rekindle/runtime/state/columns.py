"""One state's columns in the rows of a backend: captured for snapshots, loaded from parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from rekindle.datastream.state import State
from rekindle.errors import RekindleError, SerializationError, StateAccessError
from rekindle.runtime.state.changes import ROW_GROUP, ROW_KEY, WHOLE, Change, ChangeSet, Row
from rekindle.runtime.state.format import (
    REMOVED,
    REPLACE,
    CapturedState,
    StatePart,
    capture,
    decoded,
    list_operations,
    map_operations,
    value_operations,
)
from rekindle.runtime.state.spec import Codec, StateKind, StateSpec

_ABSENT: Final = object()


class Column:
    """A registered state: where it is in a row, its handle, and how its part of a row becomes an operation."""

    __slots__ = ("_operation", "handle", "place", "spec")

    def __init__(self, spec: StateSpec, place: int, handle: State) -> None:
        self.spec = spec
        self.place = place
        self.handle = handle
        self._operation: Callable[[Any, Change], Any]
        if spec.kind is StateKind.LIST:
            self._operation = self._list_operation
        elif spec.kind is StateKind.MAP:
            self._operation = self._map_operation
        else:
            self._operation = self._value_operation

    # --------------------------------------------------------------------------------------------------- capturing

    def capture_changes(self, changes: ChangeSet) -> dict[int, CapturedState]:
        """What changed in this state, per key group."""
        mark = self.place + 1
        if self.spec.kind.detailed:
            return self._captured(changes.detailed.get(mark, ()))
        return self._captured((row, WHOLE) for row in changes.plain.get(mark, ()))

    def capture_all(self, rows: Iterable[Row]) -> CapturedState:
        """This state of all rows of one key group."""
        held = [row for row in rows if row[self.place] is not None]
        captured = self._captured((row, WHOLE) for row in held)
        return next(iter(captured.values()), CapturedState(self.spec, [], []))

    def _captured(self, changed: Iterable[tuple[Row, Change]]) -> dict[int, CapturedState]:
        place, operation = self.place, self._operation
        groups: dict[int, CapturedState] = {}
        for row, change in changed:
            group = row[ROW_GROUP]
            state = groups.get(group)
            if state is None:
                state = groups[group] = CapturedState(self.spec, [], [])
            state.keys.append(row[ROW_KEY])
            state.operations.append(operation(row[place], change))
        return groups

    def _value_operation(self, held: Any, _: Change) -> Any:
        return capture(held, self.spec.values)

    def _list_operation(self, held: list[Any] | None, change: Change) -> tuple[int, list[Any]]:
        values = self.spec.values
        if held is None or change is WHOLE:
            return REPLACE, [capture(value, values) for value in held or ()]
        return change, [capture(value, values) for value in held[change:]]

    def _map_operation(self, held: dict[Any, Any] | None, change: Change) -> tuple[bool, list[tuple[Any, Any]]]:
        values, fields = self.spec.values, self.spec.fields
        assert fields is not None
        if held is None or change is WHOLE:
            entries = held.items() if held is not None else ()
            return True, [(capture(field, fields), capture(value, values)) for field, value in entries]
        operations = []
        for field in change:
            value = held.get(field, _ABSENT)
            operations.append((capture(field, fields), REMOVED if value is _ABSENT else capture(value, values)))
        return False, operations

    # ----------------------------------------------------------------------------------------------------- loading

    def load(self, part: StatePart, row_of: Callable[[Any], Row], key_codec: Codec) -> list[Row]:
        """Apply a part's operations; returns the rows that they touched."""
        spec = self.spec
        if part.kind is not spec.kind:
            raise StateAccessError(
                f"State '{spec.name}' was saved as {part.kind} state of {part.type_name}, but the program registers it "
                f"as {spec.kind} state of {spec.type_name}: give the new one another name."
            )
        apply = {StateKind.LIST: self._load_lists, StateKind.MAP: self._load_maps}.get(spec.kind, self._load_values)
        try:
            touched = [row_of(key_codec.decode(key)) for key in part.keys]
            apply(part, touched)
            return touched
        except (msgspec.MsgspecError, RekindleError, ValueError, TypeError, LookupError) as error:
            raise SerializationError(
                f"State '{spec.name}', saved as {part.kind} state of {part.type_name}, cannot be read as "
                f"{spec.type_name}: {error}"
            ) from error

    def _load_values(self, part: StatePart, rows: list[Row]) -> None:
        place, decode = self.place, self.spec.values.decode
        for row, data in zip(rows, value_operations(part), strict=True):
            row[place] = None if data is None else decode(data)

    def _load_lists(self, part: StatePart, rows: list[Row]) -> None:
        place, values = self.place, self.spec.values
        for row, (base, elements) in zip(rows, list_operations(part), strict=True):
            held = [] if base == REPLACE else row[place]
            if base != REPLACE and (held is None or len(held) != base):
                raise SerializationError(
                    f"a delta appends to {base} elements of key {row[ROW_KEY]!r}, but there are {len(held or ())}"
                )
            held.extend(decoded(data, values) for data in elements)
            row[place] = held or None

    def _load_maps(self, part: StatePart, rows: list[Row]) -> None:
        place, values, fields = self.place, self.spec.values, self.spec.fields
        assert fields is not None
        for row, (whole, entries) in zip(rows, map_operations(part), strict=True):
            held = {} if whole or row[place] is None else row[place]
            for field_data, data in entries:
                field = decoded(field_data, fields)
                if data is None:
                    held.pop(field, None)
                else:
                    held[field] = decoded(data, values)
            row[place] = held or None
