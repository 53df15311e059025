"""Timers of an operator as a table: a row per timer; the logs of parts are merged one key group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import KeyedPart, OperatorState
from rekindle.checkpoint.read_state import read_parts
from rekindle.runtime.timer_parts import TimerPart, TimersOfGroup, timer_part
from rekindle.snapshots.column_values import to_column
from rekindle.snapshots.key_columns import KEY_GROUP, WINDOW, KeyColumns, is_windowed, split_by_groups
from rekindle.snapshots.settle import settled
from rekindle.snapshots.shapes import INT, LONG, STRING, UNKNOWN, ElementsShape, FieldsShape
from rekindle.snapshots.stored_state import ClassFreeCodec, in_order
from rekindle.snapshots.stored_types import UNTYPED, StoredType, key_type
from rekindle.snapshots.table import ReadOptions, StateTable, TableColumn

DOMAIN: Final = "domain"
TIME_MS: Final = "time_ms"
EVENT: Final = "event"
PROCESSING: Final = "processing"
_SAMPLED: Final = 1000


class StoredTimer(NamedTuple):
    """A timer as it is stored."""

    key_group: int
    domain: str
    time_ms: int
    key: Any
    namespace: Any


class TimerTable(StateTable):
    """The timers of an operator."""

    def __init__(self, snapshot: LoadedCheckpoint, operator: OperatorState, options: ReadOptions) -> None:
        self._snapshot = snapshot
        self._options = options
        self._operator = operator
        self._parts = in_order(part for subtask in operator.subtasks for part in subtask.timers)
        sample = list(islice(self.timers(self._parts), _SAMPLED))
        stored = self._stored_key()
        self.keys = KeyColumns(stored, settled(stored.shape, [timer.key for timer in sample]))
        #: Whether key groups follow from the shown keys.
        self.hashed = all(self.keys.group_of(timer.key, operator) == timer.key_group for timer in sample)
        self.window = settled(UNKNOWN, [timer.namespace for timer in sample]) if is_windowed(operator) else None
        if isinstance(self.window, FieldsShape | ElementsShape):
            self.window = FieldsShape(("start_ms", "end_ms"), (LONG, LONG), self.window.form)
        self.columns = [TableColumn(KEY_GROUP, INT), *self.keys.columns(), TableColumn(DOMAIN, STRING)]
        self.columns.append(TableColumn(TIME_MS, LONG))
        if self.window is not None:
            self.columns.append(TableColumn(WINDOW, self.window))

    def _stored_key(self) -> StoredType:
        for group, data in read_parts(self._snapshot.store, self._snapshot.root, self._parts[:1]):
            return key_type(timer_part(group, data).key_schema)
        return UNTYPED

    def timers(self, parts: Sequence[KeyedPart]) -> Iterator[StoredTimer]:
        """The timers of these parts, which are whole key groups in order."""
        read = read_parts(self._snapshot.store, self._snapshot.root, parts)
        for group, own in groupby(read, key=lambda each: each[0]):
            held: dict[StoredTimer, None] = {}
            for _, data in own:
                decoded = self._decoded(timer_part(group, data))
                for domain, gone in ((EVENT, decoded.removed_event), (PROCESSING, decoded.removed_processing)):
                    for timer in gone:
                        held.pop(StoredTimer(group, domain, *timer), None)
                for domain, added in ((EVENT, decoded.event), (PROCESSING, decoded.processing)):
                    held.update(dict.fromkeys(StoredTimer(group, domain, *timer) for timer in added))
            yield from held

    def _decoded(self, part: TimerPart) -> TimersOfGroup:
        allow_pickle = self._options.allow_pickle
        keys, namespaces = (
            ClassFreeCodec(stored, allow_pickle, as_keys=True) for stored in (key_type(part.key_schema), UNTYPED)
        )
        return TimersOfGroup(part, keys, namespaces, allow_pickle)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_parts", "_operator")}

    def splits(self) -> list[Any]:
        """Ranges of key groups."""
        return split_by_groups(self._parts, self._options.splits or self._operator.parallelism)

    def rows(self, split: Any) -> Iterator[tuple[Any, ...]]:
        """The timers of a range of key groups."""
        show_key = to_column(self.keys.key)
        show_window = to_column(self.window) if self.window is not None else None
        for timer in self.timers(split):
            window = () if show_window is None else (show_window(timer.namespace),)
            yield timer.key_group, show_key(timer.key), timer.domain, timer.time_ms, *window
