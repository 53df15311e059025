"""The rows of keyed state: deltas are merged by the engine's own code, one key group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import KeyedPart
from rekindle.datastream.state import State
from rekindle.runtime.state.change_tracking import ROW_COLUMNS, ROW_KEY, Row
from rekindle.runtime.state.columns import Column
from rekindle.runtime.state.keyed_state_format import StatePart
from rekindle.snapshots.stored_state import ClassFreeCodec, SavedState, state_parts


class _NoHandle(State):
    """The column's handle, which is not used here."""

    def clear(self) -> None:
        raise AssertionError("a table has no handles")


_HANDLE: Final = _NoHandle()


@dataclass(frozen=True)
class KeyedRow:
    """A key with the values of its states, as they are stored; None where a state has no value for the key."""

    key_group: int
    key: Any
    values: Sequence[Any]


@dataclass(frozen=True)
class KeyedRows:
    """Reads the rows of some states of an operator."""

    snapshot: LoadedCheckpoint
    states: Sequence[SavedState]
    allow_pickle: bool = False

    def read(self, parts: Sequence[KeyedPart]) -> Iterator[KeyedRow]:
        """Yield the rows of these parts, which are whole key groups in order; one key group is in memory at a time."""
        names = {state.name for state in self.states}
        named = (each for each in state_parts(self.snapshot, parts) if each[2].name in names)
        for group, own in groupby(named, key=lambda each: each[1]):
            yield from self._merged(group, [part for _, _, part in own])

    def _merged(self, group: int, parts: Sequence[StatePart]) -> Iterator[KeyedRow]:
        rows: dict[Any, Row] = {}
        for index, state in enumerate(self.states):
            keys = ClassFreeCodec(state.types.keys, self.allow_pickle, as_keys=True)
            column = Column(state.spec(self.allow_pickle), ROW_COLUMNS + 2 * index, _HANDLE)
            for row in rows.values():
                row.extend((None, None))
            for part in parts:
                if part.name == state.name:
                    column.load(part, group, rows, keys)
        for row in rows.values():
            values = row[ROW_COLUMNS::2]
            if any(value is not None for value in values):
                yield KeyedRow(group, row[ROW_KEY], values)
