"""The keyed state backend in memory: one row per key, one dict of rows per key group."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from rekindle.common.types import Row as RowKey
from rekindle.errors import IncompatibleStateError
from rekindle.runtime.key_bytes import owned_key
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state.backend import NO_KEY, KeyedStateBackend, KeyedStateOptions, StateT, foreign_key
from rekindle.runtime.state.capture import RowCapture
from rekindle.runtime.state.change_tracking import ROW_COLUMNS, ROW_GROUP, ROW_KEY, WHOLE, Change, ChangeLog, Row
from rekindle.runtime.state.columns import Column
from rekindle.runtime.state.handles import RowListState, RowMapState
from rekindle.runtime.state.inventory import Inventories
from rekindle.runtime.state.key_index import HeldIndex
from rekindle.runtime.state.keyed_state_format import CapturedDelta, GroupCapture, StatePart, decode_part
from rekindle.runtime.state.row_columns import HeldListColumn
from rekindle.runtime.state.spec import Codec, StateSpec
from rekindle.runtime.state.ttl.cleanup import CleaningFront
from rekindle.runtime.state.ttl.expiry import adopts
from rekindle.serde import value_codec_for

_FRONT_ENTRIES: Final = 1 << 18
# Each time the keys have doubled beyond so many, rows are frozen for the garbage collector: a full collection over
# millions of rows stops the process for half a second.
_FREEZE_KEYS: Final = 1 << 18
_NOTHING: Final = frozenset({type(None)})

_DEFAULTS: Final = KeyedStateOptions()


def _is_empty(row: Row) -> bool:
    return _NOTHING.issuperset(map(type, row[ROW_COLUMNS::2]))


class HashMapKeyedBackend(KeyedStateBackend):
    """Keyed state in memory."""

    # The attributes that are read or written for each record; slots are the fastest.
    __slots__ = ("front", "generation", "row")

    in_memory = True

    def __init__(
        self,
        max_parallelism: int,
        key_groups: range,
        options: KeyedStateOptions = _DEFAULTS,
        *,
        key_codec: Codec | None = None,
        key_group_of: Callable[[Any], int] | None = None,
    ) -> None:
        """`key_codec` writes keys into snapshots: by default tagged, or pickled if that is allowed.

        `key_group_of` gives the key group of a row's key where that is a compound, such as (key, window).
        """
        self.key_groups = key_groups
        self.options = options
        self.inventories = Inventories()
        self.row: Row = NO_KEY
        #: key -> row of keys seen lately, attached or not; bounded. Cleared in place, and replaced only when a state is
        #: registered: bind its `get` per batch.
        self.front: dict[Any, Row] = {}
        self._groups: dict[int, dict[Any, Row]] = {group: {} for group in key_groups}
        self._max_parallelism = max_parallelism
        self._key_group_of = key_group_of or self._plain_key_group
        self._key_codec = key_codec or value_codec_for(None, allow_pickle=options.allow_pickle)
        self._columns: dict[str, Column] = {}
        self._tracks = options.track_changes
        self._changes = ChangeLog()
        self.generation = self._changes.open
        self._emptied: dict[Any, Row] = {}
        self._frozen_keys = 0
        self._unclaimed: dict[str, list[tuple[int, StatePart]]] = {}
        # Why some restored state could not be loaded: a snapshot without it must not be taken.
        self._refused: IncompatibleStateError | None = None
        defers = options.defer_reads and options.track_changes
        self._capture = RowCapture(self._groups, self._columns, self._unclaimed, self._key_codec, defers)
        # Whether a snapshot defers reading rows, so that old values are kept before they are overwritten.
        self._keeps = False

    # -- current key --------------------------------------------------------------------------------------------------

    def load_row(self, key: Any) -> Row:
        """The row of a key that is not in `front`; puts it there. A new row stays detached until it is written."""
        group = self._key_group_of(key)
        rows = self._groups.get(group)
        if rows is None:
            raise foreign_key(key, group, self.key_groups)
        row = rows.get(key)
        if row is None:
            key = owned_key(key)
            row = [key, ~group] + [None] * (2 * len(self._columns))
        front = self.front
        if len(front) >= _FRONT_ENTRIES:
            front.clear()
        front[key] = row
        return row

    def keys(self) -> Iterator[Any]:
        """The keys that have state, by key group and first write; the caller may change the state on the way."""
        for rows in self._groups.values():
            for row in list(rows.values()):
                if not _is_empty(row):
                    yield row[ROW_KEY]

    def keys_with(self, state_name: str) -> Iterator[Any]:
        """The keys that have a value in one registered state; the caller may change it on the way."""
        place = self._columns[state_name].place
        for rows in self._groups.values():
            for row in list(rows.values()):
                if row[place] is not None:
                    yield row[ROW_KEY]

    def unclaimed_names(self) -> list[str]:
        """The restored states that are not registered; full snapshots carry them along."""
        return list(self._unclaimed)

    def number_of_keys(self) -> int:
        """The number of keys, with removed keys whose removal no snapshot has written yet."""
        return sum(map(len, self._groups.values()))

    def keys_per_group(self) -> dict[int, int]:
        """Key group -> number of its keys, counted as `number_of_keys` does."""
        return {group: len(rows) for group, rows in self._groups.items()}

    def _plain_key_group(self, key: Any) -> int:
        return key_group(key, self._max_parallelism)

    # -- for the handles ----------------------------------------------------------------------------------------------

    def mark(self, row: Row, column: int) -> None:
        """Mark a value-like column before its first write in this generation."""
        if self._keeps:
            self._keeps = self._capture.keep(row, column - 1)
        generation = self.generation
        row[column] = generation
        if self._tracks:
            generation.plain[column].append(row)
        if row[ROW_GROUP] < 0:
            self._attach(row)

    def mark_change(self, row: Row, column: int, change: Change) -> Change:
        """Mark a detailed column at its first change in this generation; returns the change to continue with."""
        if self._tracks:
            self._changes.touch(row, column)
        else:
            change = WHOLE
        row[column] = change
        if row[ROW_GROUP] < 0:
            self._attach(row)
        return change

    def note_emptied(self, row: Row) -> None:
        """Record that a column of the row became empty: the next purge checks the row."""
        self._emptied[row[ROW_KEY]] = row

    def rows_of(self, key_group: int) -> list[Row]:
        """A new list of the rows of a key group."""
        return list(self._groups[key_group].values())

    def before_full_snapshots(self, cleanup: Callable[[Iterable[Row]], None]) -> None:
        """Register a cleanup that is called with the rows of a key group before they are captured whole."""
        self._capture.cleanups.append(cleanup)

    def with_every_key(self, cleanup: Callable[[], object]) -> None:
        """Register a cleanup that is called whenever a key is chosen; costs nothing if it is not used."""
        if not isinstance(self.front, CleaningFront):
            self.front.clear()  # the current batch keeps the old `front`: it must find no rows there
            self.front = CleaningFront()
        self.front.cleanups.append(cleanup)

    def _attach(self, row: Row) -> None:
        group = row[ROW_GROUP] = ~row[ROW_GROUP]
        rows = self._groups[group]
        assert row[ROW_KEY] not in rows, f"two rows for key {row[ROW_KEY]!r}"
        rows[row[ROW_KEY]] = row

    def new_index(self) -> HeldIndex:
        """An index by key, in memory."""
        return HeldIndex()

    def registered(self) -> Iterator[tuple[StateSpec, int]]:
        """The registered states, each with its column."""
        return ((state.spec, state.place) for state in self._columns.values())

    def list_handle(self, column: int) -> RowListState:
        """The handle of a list state over a column."""
        return RowListState(self, column)

    def list_column(self, column: int) -> HeldListColumn:
        """The handle of a list state over a column of any row, for windows."""
        return HeldListColumn(self, column)

    def map_handle(self, column: int) -> RowMapState:
        """The handle of a map state over a column."""
        return RowMapState(self, column)

    # -- registration -------------------------------------------------------------------------------------------------

    def register(self, spec: StateSpec, handle_over: Callable[[int], StateT]) -> StateT:
        """The handle for a spec: the known one, or a new one over a new column, with restored values loaded."""
        known = self._columns.get(spec.name)
        if known is not None:
            known.spec.check_same(spec)
            return known.handle  # type: ignore[return-value]
        place = ROW_COLUMNS + 2 * len(self._columns)
        handle = handle_over(place)
        column = self._columns[spec.name] = Column(spec, place, handle)
        self._widen_rows()
        parts = self._unclaimed.pop(spec.name, [])
        parts.reverse()
        adopted: set[int] = set()
        while parts:  # free each part once it is loaded: not all rows and all bytes need be in memory at once
            group, part = parts.pop()
            try:
                emptied = column.load(part, group, self._groups[group], self._key_codec)
                self._check_key_groups(spec.name, group)
            except IncompatibleStateError as error:
                self._refused = error
                raise
            self._drop_empty(group, emptied)
            if adopts(spec, part):
                adopted.add(group)
        for group in adopted:
            self._mark_adopted(column, self._groups[group].values())
        if self.row is not NO_KEY:
            # A detached row is too short now, and the key may have a restored row.
            self.set_current_key(self.row[ROW_KEY])
        return handle

    def _check_key_groups(self, state: str, group: int) -> None:
        """Refuse a `Row` key that belongs to another key group now: it would never be found again.

        A row without names that was saved when keys had no declared type gets the names of a type declared since.
        """
        rows = self._groups[group]
        if type(next(iter(rows), None)) is not RowKey:
            return
        for key in rows:
            if (home := self._key_group_of(key)) != group:
                raise IncompatibleStateError(
                    f"Key {key!r} of state '{state}' was saved in key group {group}, but under the key's type it "
                    f"belongs to {home}: declare the type that it was saved with, or give the operator another uid()."
                )

    def _mark_adopted(self, column: Column, rows: Iterable[Row]) -> None:
        """Mark values that have just got timestamps as changed: the next delta has to write them."""
        mark = column.place + 1
        for row in rows:
            if row[column.place] is None:
                continue
            if column.spec.kind.detailed:
                self.mark_change(row, mark, WHOLE)
            else:
                self.mark(row, mark)

    def _widen_rows(self) -> None:
        self.front.clear()
        for rows in self._groups.values():
            for row in rows.values():
                row.extend((None, None))

    def _drop_empty(self, group: int, rows: list[Row]) -> None:
        for row in rows:
            # Rows that were emptied since the restore are purged once no snapshot needs them.
            if _is_empty(row) and row[ROW_KEY] not in self._emptied:
                self._groups[group].pop(row[ROW_KEY], None)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def _check_restored(self) -> None:
        if self._refused is not None:
            raise self._refused

    def snapshot_delta(
        self, snapshot_id: int, since_completed_id: int | None, whole: Iterable[int] = ()
    ) -> CapturedDelta:
        """Cut: capture the changes since the completed snapshot, and the key groups in `whole` as a whole."""
        self._check_restored()
        assert self._tracks, "a delta of a backend that tracks no changes"
        key_groups = list(whole)
        self._capture.clean(key_groups)
        rows = sum(len(self._groups[group]) for group in key_groups) + self._changes.number_of_rows()
        overwritten = self._capture.begin(rows)
        rewritten: list[GroupCapture] = [self._capture.group(group, overwritten) for group in key_groups]
        changes = self._changes.cut(snapshot_id, since_completed_id)
        self.generation = self._changes.open
        self._keeps = overwritten is not None
        return self._capture.changed(changes, rewritten, overwritten)

    def snapshot_whole(self, snapshot_id: int) -> list[GroupCapture]:
        """Cut: capture everything, for a snapshot without a base."""
        return self._snapshot_all(lambda: self._changes.cut_whole(snapshot_id))

    def snapshot_aside(self, snapshot_id: int) -> list[GroupCapture]:
        """Capture everything, for a snapshot that is no base of others (a savepoint): the next delta ignores it."""
        return self._snapshot_all(lambda: self._changes.set_aside(snapshot_id))

    def _snapshot_all(self, cut: Callable[[], None]) -> list[GroupCapture]:
        self._check_restored()
        self._capture.clean(self.key_groups)
        overwritten = self._capture.begin(self.number_of_keys())
        captured: list[GroupCapture] = [self._capture.group(group, overwritten) for group in self.key_groups]
        if self._tracks:
            cut()
            self.generation = self._changes.open
        self._keeps = overwritten is not None
        return captured

    def snapshot_completed(self, snapshot_id: int) -> None:
        """The snapshot is durable: later deltas build on it."""
        self._changes.completed(snapshot_id)
        self.inventories.completed(snapshot_id)
        self._purge()
        self._freeze()

    def snapshot_aborted(self, snapshot_id: int) -> None:
        """The snapshot counts as never triggered: the next delta covers its changes too."""
        self._changes.aborted(snapshot_id)
        self.inventories.aborted(snapshot_id)

    def forget_changes(self) -> None:
        """Drop the collected changes and empty rows: no snapshot will ask for them."""
        if self._tracks:
            self._changes.forget()
            self.generation = self._changes.open
        self._purge()
        self._freeze()

    def _freeze(self) -> None:
        if self.number_of_keys() > 2 * self._frozen_keys + _FREEZE_KEYS:
            self._frozen_keys = self.number_of_keys()
            gc.freeze()

    def _purge(self) -> None:
        """Drop empty rows whose removal no snapshot still has to write."""
        if not self._emptied or self._capture.reads_rows:
            return
        needed = self._changes.sealed_rows()
        is_open = self._changes.is_open
        kept: dict[Any, Row] = {}
        for key, row in self._emptied.items():
            if not _is_empty(row):
                continue
            if id(row) in needed or (self._tracks and any(map(is_open, row[ROW_COLUMNS + 1 :: 2]))):
                kept[key] = row
                continue
            group = row[ROW_GROUP]
            del self._groups[group][key]
            self.front.pop(key, None)
            row[ROW_GROUP:] = [~group] + [None] * (len(row) - ROW_COLUMNS)
        self._emptied = kept

    # -- restore ------------------------------------------------------------------------------------------------------

    def restore(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Take (key group, part); a state's values are decoded when it is registered."""
        assert not self._columns, "restore comes before registration"
        assert self.row is NO_KEY, "restore comes before the first key"
        for group, data in parts:
            if group not in self._groups:
                continue
            for part in decode_part(group, data):
                self._unclaimed.setdefault(part.name, []).append((group, part))
