"""The column of one state: a value, an array or a map, with the times of last access if they are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rekindle.runtime.state.spec import StateKind
from rekindle.serde.class_free_decoding import encode_canonically
from rekindle.snapshots.column_values import Convert, to_column
from rekindle.snapshots.settle import settled
from rekindle.snapshots.shapes import (
    ElementsShape,
    EntriesShape,
    FieldsShape,
    Form,
    JsonShape,
    Plain,
    PlainShape,
    Shape,
)
from rekindle.snapshots.stored_state import SavedState
from rekindle.snapshots.stored_types import StoredType
from rekindle.snapshots.stored_values import from_column
from rekindle.snapshots.table import ReadOptions

#: The fields of a value that is shown with its time.
LAST_ACCESS: Final = "last_access_ms"
VALUE: Final = "value"


@dataclass(frozen=True)
class StateColumn:
    """How a state is shown: `value` is the shape of a value, element or map value, `field` that of a map's keys."""

    state: SavedState
    value: Shape
    field: Shape
    with_times: bool

    @property
    def shape(self) -> Shape:
        """The shape of the column."""
        one = _with_time(self.value) if self.with_times else self.value
        if self.state.kind is StateKind.LIST:
            return ElementsShape(one, Form.ARRAY)
        if self.state.kind is StateKind.MAP:
            return EntriesShape(self.field, one, Form.MAP)
        return one

    def shown(self) -> Convert:
        """The conversion of the state of one key, as `KeyedRows` reads it, to the column's value."""
        one = self._shown_value()
        if self.state.kind is StateKind.LIST:
            return lambda held: None if held is None else [one(value) for value in held]
        if self.state.kind is StateKind.MAP:
            field = to_column(self.field)
            return lambda held: None if held is None else [(field(each), one(value)) for each, value in held.items()]
        return lambda held: None if held is None else one(held)

    def _shown_value(self) -> Convert:
        convert = to_column(self.value)
        if not self.state.types.timed:
            return convert
        if self.with_times:
            return lambda timed: {LAST_ACCESS: timed[0], VALUE: convert(timed[1])}
        return lambda timed: convert(timed[1])

    def stored_value(self) -> Convert:
        """The conversion of one value, element or map value of the column to the value to store, without its time."""
        return from_column(self.value, self.state.types.values.tagged)

    def stored_field(self) -> Convert:
        """The conversion of a map's key to the one to store."""
        return from_column(self.field, self.state.types.fields.tagged)


def state_column(state: SavedState, held: Iterable[Any], options: ReadOptions) -> StateColumn:
    """The column of a state, settled by the states of some keys."""

    def shape(stored: StoredType, found: list[Any]) -> Shape:
        as_json = options.all_as_json or (options.untyped_as_json and stored.tagged)
        return JsonShape() if as_json else settled(stored.shape, found)

    values, fields = _samples(state, [each for each in held if each is not None])
    types = state.types
    return StateColumn(
        state, shape(types.values, values), shape(types.fields, fields), options.access_times and types.timed
    )


def _samples(state: SavedState, held: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    fields: list[Any] = []
    if state.kind is StateKind.LIST:
        values = [value for elements in held for value in elements]
    elif state.kind is StateKind.MAP:
        values = [value for entries in held for value in entries.values()]
        fields = [field for entries in held for field in entries]
    else:
        values = list(held)
    return ([value for _, value in values] if state.types.timed else values), fields


def _with_time(value: Shape) -> Shape:
    return FieldsShape((LAST_ACCESS, VALUE), (PlainShape(Plain.LONG), value), Form.MAP)


def digest_of(state: SavedState, held: Any) -> bytes | None:
    """A digest of one key's state, without times of last access: equal state has equal digests."""
    if held is None:
        return None
    if state.types.timed:
        held = _without_times(state.kind, held)
    if state.kind is StateKind.MAP:
        held = sorted((encode_canonically(field), encode_canonically(value)) for field, value in held.items())
    return hashlib.blake2b(encode_canonically(held), digest_size=16).digest()


def _without_times(kind: StateKind, held: Any) -> Any:
    if kind is StateKind.LIST:
        return [value for _, value in held]
    if kind is StateKind.MAP:
        return {field: value for field, (_, value) in held.items()}
    return held[1]
