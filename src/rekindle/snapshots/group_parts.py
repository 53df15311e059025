"""Parts of key groups made of cells: keyed state and timers, in the format that the engine restores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from rekindle.errors import TypeMismatchError
from rekindle.runtime.state.keyed_state_format import (
    REPLACE,
    ListOperations,
    MapOperations,
    StatePart,
    decode_part,
    encode_group,
)
from rekindle.runtime.state.spec import StateKind
from rekindle.runtime.timer_parts import TimerColumns, TimerPart
from rekindle.serde.class_free_decoding import class_free_decoder
from rekindle.snapshots.cells import Cell, StateHead
from rekindle.snapshots.timer_table import EVENT

Raw = msgspec.Raw
_encode = msgspec.msgpack.Encoder().encode
_NIL = Raw(_encode(None))

#: The row of a key: its encoded key, and what the writer of the rows has put beside it.
Row = tuple[bytes, bytes]


class GroupBuilder(Protocol):
    """Builds the part of one key group."""

    def build(self, group: int, rows: Sequence[Row], kept: Iterable[bytes]) -> bytes | None:
        """The part made of rows and of what stays of the `kept` parts, oldest first; None if there is nothing."""
        ...


@dataclass(frozen=True)
class KeyedBuilder:
    """Builds parts of keyed state; states of `kept` parts that are not in `replaced` stay as they are."""

    heads: Sequence[StateHead]
    replaced: Collection[str]

    def build(self, group: int, rows: Sequence[Row], kept: Iterable[bytes]) -> bytes | None:
        """The part of a key group."""
        states = [
            part for data in kept for part in decode_part(group, data) if part.name not in self.replaced
        ]  # a part is a log: operations of several parts, in order, are one part
        _refuse_twice(rows)
        decoded = [(key, _decode_cells(cells)) for key, cells in rows]
        for index, head in enumerate(self.heads):
            own = [(key, cells[index]) for key, cells in decoded]
            present = [(key, cell) for key, cell in own if cell is not None]
            if present:
                states.append(_state_part(head, present))
        return encode_group(states) if states else None


_decode_cells = msgspec.msgpack.Decoder(list[Cell | None]).decode


def _refuse_twice(rows: Sequence[Row]) -> None:
    seen: set[bytes] = set()
    for key, _ in rows:
        if key in seen:
            shown = class_free_decoder().decode(key)
            raise TypeMismatchError(f"The key {shown!r:.200} is in the DataFrame more than once: leave one row of it.")
        seen.add(key)


def _state_part(head: StateHead, cells: Sequence[tuple[bytes, Cell]]) -> StatePart:
    keys = Raw(_encode([Raw(key) for key, _ in cells]))
    own = [cell for _, cell in cells]
    values = _column(head, [value for cell in own for value in cell.values], [at for cell in own for at in cell.times])
    lengths = [len(cell.values) for cell in own]
    operations: Any = values
    if head.kind is StateKind.LIST:
        operations = Raw(_encode(ListOperations([REPLACE] * len(own), lengths, values)))
    elif head.kind is StateKind.MAP:
        fields = Raw(_encode([field for cell in own for field in cell.fields]))
        operations = Raw(_encode(MapOperations([True] * len(own), lengths, fields, [], values)))
    return StatePart(head.name, head.kind, head.type_name, keys, operations, head.schema)


def _column(head: StateHead, values: list[Raw], times: list[int]) -> Raw:
    """Values as a codec's `encode_all` writes them, with their times as `TimedCodec` does."""
    column = Raw(_encode(values))
    return Raw(_encode((times, column))) if head.timed else column


class TimerCell(msgspec.Struct, array_like=True, frozen=True):
    """A timer of a key: its domain, time and encoded namespace."""

    domain: str
    time_ms: int
    namespace: Raw = _NIL


@dataclass(frozen=True)
class TimerBuilder:
    """Builds parts of timers, which replace all timers of the operator."""

    key_schema: bytes

    def build(self, group: int, rows: Sequence[Row], kept: Iterable[bytes]) -> bytes | None:
        """The part of a key group."""
        if not rows:
            return None
        keys: dict[bytes, int] = {}
        namespaces: dict[bytes, int] = {}
        event, processing = TimerColumns([], [], []), TimerColumns([], [], [])
        for key, data in dict.fromkeys(rows):
            timer = _decode_timer(data)
            columns = event if timer.domain == EVENT else processing
            columns.times.append(timer.time_ms)
            columns.keys.append(keys.setdefault(key, len(keys)))
            columns.namespaces.append(namespaces.setdefault(bytes(timer.namespace), len(namespaces)))
        return _encode(TimerPart(self.key_schema, _raw_array(keys), _raw_array(namespaces), event, processing))


_decode_timer = msgspec.msgpack.Decoder(TimerCell).decode


def _raw_array(values: Iterable[bytes]) -> Raw:
    return Raw(_encode([Raw(value) for value in values]))
