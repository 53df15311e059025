"""Keyed state of an operator as a table: a row per key, or per key and window, with a column for each state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import OperatorState, blob_size
from rekindle.runtime.key_hash import key_group
from rekindle.serde.class_free_decoding import encode_canonically
from rekindle.snapshots.column_values import to_column
from rekindle.snapshots.key_columns import KEY, KEY_GROUP, WINDOW, key_columns, split_by_groups
from rekindle.snapshots.keyed_rows import KeyedRow, KeyedRows
from rekindle.snapshots.shapes import BYTES, INT, ElementsShape, Form
from rekindle.snapshots.state_columns import StateColumn, digest_of, state_column
from rekindle.snapshots.stored_state import keyed_parts, stored_states
from rekindle.snapshots.stored_types import UNTYPED
from rekindle.snapshots.table import ReadOptions, StateTable, TableColumn

#: Columns for a comparison.
KEY_BYTES: Final = "_key_bytes"
DIGESTS: Final = "_digests"
_FIXED: Final = frozenset({KEY_GROUP, KEY, WINDOW})
#: Types that a checkpoint does not tell are settled by so many rows.
_SAMPLED_ROWS: Final = 1000
_SPLIT_BYTES: Final = 16 << 20


def column_name(state: str) -> str:
    """The name of a state's column.

    >>> column_name("count"), column_name("key")
    ('count', 'key_state')
    """
    return f"{state}_state" if state.lower() in _FIXED else state


class KeyedTable(StateTable):
    """The rows of all states of an operator, or of some."""

    def __init__(self, snapshot: LoadedCheckpoint, operator: OperatorState, options: ReadOptions) -> None:
        self._operator = operator
        self._options = options
        self._parts = keyed_parts(operator)
        states = stored_states(snapshot, operator, options.states)
        self._rows = KeyedRows(snapshot, states, options.allow_pickle)
        sample = list(islice(self._rows.read(self._parts), _SAMPLED_ROWS))
        stored_key = states[0].types.keys if states else UNTYPED
        self.keys = key_columns(operator, stored_key, [row.key for row in sample], options.untyped_as_json)
        self.states = [
            state_column(state, [row.values[index] for row in sample], options) for index, state in enumerate(states)
        ]
        self.columns = [TableColumn(KEY_GROUP, INT), *self.keys.columns(), *map(_column, self.states)]
        if options.digests:
            self.columns += [TableColumn(KEY_BYTES, BYTES), TableColumn(DIGESTS, ElementsShape(BYTES, Form.ARRAY))]
        #: Whether key groups follow from the shown keys: not if keys are of a class, or stored as their text.
        self.hashed = all(self.keys.group_of(row.key, operator) == row.key_group for row in sample)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_parts", "_operator")}

    @property
    def key_groups(self) -> int:
        """The number of key groups over which the keys are spread."""
        return self._operator.max_parallelism

    def splits(self) -> list[Any]:
        """Ranges of key groups, with the references to their parts."""
        parts = self._parts
        if self._options.key is not None and self.hashed:
            group = key_group(self._options.key[0], self._operator.max_parallelism)
            parts = [part for part in parts if part.key_group == group]
        return split_by_groups(parts, self._options.splits or self._default_splits())

    def _default_splits(self) -> int:
        size = sum(blob_size(part.blob) for part in self._parts)
        return max(self._operator.parallelism, -(-size // _SPLIT_BYTES))

    def rows(self, split: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a range of key groups."""
        show_key, window = to_column(self.keys.key), self.keys.window
        show_window = to_column(window) if window is not None else None
        shown = [column.shown() for column in self.states]
        for row in self._rows.read(split):
            if not self._wanted(row):
                continue
            of_window = () if show_window is None else (show_window(row.key[1]),)
            values = (show(value) for show, value in zip(shown, row.values, strict=True))
            digests = (encode_canonically(row.key), self._digests(row)) if self._options.digests else ()
            yield row.key_group, show_key(self.keys.plain(row.key)), *of_window, *values, *digests

    def _digests(self, row: KeyedRow) -> list[bytes | None]:
        return [digest_of(column.state, value) for column, value in zip(self.states, row.values, strict=True)]

    def _wanted(self, row: KeyedRow) -> bool:
        return self._options.key is None or self.keys.python_key(row.key) == self._options.key[0]


def _column(state: StateColumn) -> TableColumn:
    return TableColumn(column_name(state.state.name), state.shape)
