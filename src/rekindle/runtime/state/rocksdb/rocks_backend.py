"""The keyed state backend on disk: decoded rows of keys seen lately in memory, all others in the slot's RocksDB.

Rows are as in the in-memory backend, `[key, key_group, value0, mark0, …]`, and so are the handles of value-like states.
A mark other than None says that RocksDB does not have the value yet; the mark of the open generation says that the open
segment of the delta log does not have it either. Both are written when the row leaves the cache, not at the barrier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

from rekindle.errors import IncompatibleStateError
from rekindle.runtime.key_bytes import canonical_all, owned_keys
from rekindle.runtime.key_hash import key_group, key_groups_of
from rekindle.runtime.state.backend import NO_KEY, KeyedStateBackend, KeyedStateOptions, StateT, foreign_key
from rekindle.runtime.state.change_tracking import ROW_COLUMNS, ROW_GROUP, ROW_KEY, Change, ChangeSet, Row
from rekindle.runtime.state.inventory import Inventories
from rekindle.runtime.state.keyed_state_format import GroupCapture, StatePart
from rekindle.runtime.state.rocksdb.delta_log import DeltaLog, Segment
from rekindle.runtime.state.rocksdb.entry_keys import ungrouped_prefix
from rekindle.runtime.state.rocksdb.part_loading import PartLoader, RestoredParts
from rekindle.runtime.state.rocksdb.rocks_lists import RocksListColumn, RocksListState, StoredLists
from rekindle.runtime.state.rocksdb.rocks_maps import RocksMapState, StoredMaps
from rekindle.runtime.state.rocksdb.row_cache import RowCache
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_index import VALUE_BYTES, StoredIndex
from rekindle.runtime.state.rocksdb.stored_states import StatePlace, StoredState, StoredValues
from rekindle.runtime.state.rocksdb.whole_capture import LoggedDelta, ScannedGroup, keys_of
from rekindle.runtime.state.spec import Codec, StateKind, StateSpec
from rekindle.runtime.state.ttl.cleanup import CleaningFront
from rekindle.serde import value_codec_for

_DEFAULTS: Final = KeyedStateOptions()
#: So many rows are written at once: their encoded forms are in memory beside them.
_SAVED_ROWS: Final = 1 << 12
_SWEPT_ROWS: Final = 256
_INDEX_SHARE: Final = 1 / 8
#: The open generation is rid of rows that have left the cache when they are such a part of the rows in it.
_GONE_SHARE: Final = 8
_STORED: Final[dict[StateKind, type[StoredState]]] = {StateKind.LIST: StoredLists, StateKind.MAP: StoredMaps}


@dataclass(frozen=True)
class RocksPlace:
    """An operator's place in the database of its slot, and its share of the slot's memory."""

    database: ScratchDatabase
    operator: int
    row_bytes: int
    log_bytes: int


class RocksKeyedBackend(KeyedStateBackend):
    """Keyed state in RocksDB."""

    in_memory = False

    def __init__(
        self,
        max_parallelism: int,
        key_groups: range,
        place: RocksPlace,
        options: KeyedStateOptions = _DEFAULTS,
        *,
        key_codec: Codec | None = None,
        key_group_of: Callable[[Any], int] | None = None,
    ) -> None:
        """`key_codec` and `key_group_of` as with the in-memory backend."""
        self.key_groups = key_groups
        self.options = options
        self.inventories = Inventories()
        self.row: Row = NO_KEY
        self.generation = ChangeSet()
        self.database = place.database
        self._operator = place.operator
        self._indexes = 0
        self._max_parallelism = max_parallelism
        self._key_group_of = key_group_of or self._plain_key_group
        self._key_codec = key_codec or value_codec_for(None, allow_pickle=options.allow_pickle)
        self._states: dict[str, StoredState] = {}
        self._tracks = options.track_changes
        self.log = DeltaLog(place.database.folder, place.log_bytes, self.database.live_bytes)
        self._cache = RowCache(self, place.row_bytes)
        self.front = self._cache.front
        self._counts: dict[int, int] = dict.fromkeys(key_groups, 0)
        self._gone = 0
        self._restored = RestoredParts(place.database.folder, key_groups)
        self._refused: IncompatibleStateError | None = None
        self._cleanups: list[Callable[[Iterable[Row]], None]] = []
        #: The keys that were in the cache when a sweep began, of the key groups that it has still to visit.
        self._to_sweep: dict[int, list[Any]] = {}

    def _plain_key_group(self, key: Any) -> int:
        return key_group(key, self._max_parallelism)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def load_row(self, key: Any) -> Row:
        """The row of a key that is not in `front`; puts it there."""
        return self._cache.load(key)

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the rows of keys that are not in memory, in one call, before a batch is processed."""
        self._cache.prefetch(keys)

    def owned_group(self, key: Any) -> int:
        """The key group of a key; InvalidKeyError if another subtask owns it."""
        group = self._key_group_of(key)
        if group not in self._counts:
            raise foreign_key(key, group, self.key_groups)
        return group

    def read_rows(self, keys: Sequence[Any]) -> list[Row]:
        """Read the rows of keys from the database."""
        states = list(self._states.values())
        groups, places = self._owned_groups(keys), canonical_all(keys)
        found = self.database.get_many([wanted for state in states for wanted in state.places_of(groups, places)])
        self._cache.note_sizes(found, len(keys))
        if len(states) == 1 and isinstance(states[0], StoredValues) and None not in found:
            # The most frequent case: one state, and every key has a value.
            values = states[0].values(found)  # type: ignore[arg-type]
            return [
                [key, group, value, None] for key, group, value in zip(owned_keys(keys), groups, values, strict=True)
            ]
        blank = [None] * (2 * len(states))  # added, and not unpacked: a list is then no longer than it must be
        rows: list[Row] = [[key, ~group] + blank for key, group in zip(owned_keys(keys), groups, strict=True)]  # noqa: RUF005
        for number, state in enumerate(states):
            self._fill(state, rows, found[number * len(rows) : (number + 1) * len(rows)])
        return rows

    def _owned_groups(self, keys: Sequence[Any]) -> list[int]:
        if self._key_group_of != self._plain_key_group:
            return list(map(self.owned_group, keys))
        groups = key_groups_of(keys, self._max_parallelism)
        return groups if self._counts.keys() >= set(groups) else list(map(self.owned_group, keys))

    def _fill(self, state: StoredState, rows: list[Row], found: Sequence[bytes | None]) -> None:
        """Put the values of one state into rows that were just read."""
        held = [(row, data) for row, data in zip(rows, found, strict=True) if data is not None]
        if not held:
            return
        values = state.read(held)
        place = state.place
        for (row, _), value in zip(held, values, strict=True):
            row[place] = value
            if row[ROW_GROUP] < 0:
                row[ROW_GROUP] = ~row[ROW_GROUP]

    def mark(self, row: Row, column: int) -> None:
        """Mark a column before its first write in this generation."""
        generation = self.generation
        row[column] = generation
        if self._tracks:
            generation.plain[column].append(row)
        if row[ROW_GROUP] < 0:
            row[ROW_GROUP] = ~row[ROW_GROUP]
            self._counts[row[ROW_GROUP]] += 1

    def mark_change(self, row: Row, column: int, change: Change) -> Change:
        """Mark a column; the handles of lists and maps keep their changes themselves."""
        if row[column] is not self.generation:
            self.mark(row, column)
        return change

    def note_emptied(self, row: Row) -> None:
        """Do nothing: a row without values is not written."""

    # -- write back ---------------------------------------------------------------------------------------------------

    def write_back(self, rows: Iterable[Row], leave: bool) -> None:
        """Write changed rows to the database. `leave`: they leave the cache, and their changes go into the log."""
        listed = list(rows)
        changed = 0
        for state in self._states.values():
            mark = state.place + 1
            rows_of_state = [row for row in listed if row[mark] is not None]
            changed += len(rows_of_state)
            if rows_of_state:
                self._write(state, rows_of_state, leave)
        if leave:
            self._let_go(listed, changed)

    def _write(self, state: StoredState, rows: list[Row], leave: bool) -> None:
        logs = self.log.open if leave and self._tracks else None
        if logs is not None:
            generation, mark = self.generation, state.place + 1
            self._gone += len([row for row in rows if row[mark] is generation])
        writes = state.write(rows, logs, self.generation)
        self._cache.note_sizes([value for _, value in writes], len(rows))
        self.database.write(writes)
        state.saved(rows, leave)

    def save_large(self, row: Row, state: StoredState) -> None:
        """Write a map or list back that has grown large, and drop its entries in memory; the row stays."""
        self._write(state, [row], leave=True)
        row[state.place].forget()
        self.log.bound()

    def _let_go(self, rows: list[Row], changed: int) -> None:
        """Forget the marks of rows that leave the cache."""
        for row in self._emptied(rows):
            self._counts[row[ROW_GROUP]] = max(0, self._counts[row[ROW_GROUP]] - 1)
        if not changed:
            return
        for state in self._states.values():
            mark = state.place + 1
            for row in rows:
                row[mark] = None
        if self._gone * _GONE_SHARE > len(self._cache):
            self._forget_gone()
        self.log.bound()

    def _forget_gone(self) -> None:
        """Drop rows that have left the cache from the open generation, which would keep them in memory."""
        self._gone = 0
        generation = self.generation
        for column, marked in generation.plain.items():
            generation.plain[column] = [row for row in marked if row[column] is generation]

    def _emptied(self, rows: Iterable[Row]) -> list[Row]:
        """Those of the rows that have had a value and have none now."""
        left = [row for row in rows if row[ROW_GROUP] >= 0]
        for state in self._states.values():
            left = state.without_value(left)
        return left

    def _save(self, groups: Iterable[int] | None = None) -> None:
        """Write changed rows of these key groups, which stay in the cache."""
        wanted = None if groups is None else frozenset(groups)
        rows = (row for row in self._cache.rows() if wanted is None or row[ROW_GROUP] in wanted)
        while some := list(islice(rows, _SAVED_ROWS)):
            self.write_back(some, leave=False)

    # -- keys and states ----------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[Any]:
        """The keys that have state, by key group; the caller may change the state of a key on the way."""
        self._save()
        view = self.database.view()
        for group in self.key_groups:
            states = list(self._states.values())
            if len(states) == 1:
                yield from keys_of(self.database, view, states[0], group)
            else:
                yield from dict.fromkeys(key for state in states for key in keys_of(self.database, view, state, group))

    def keys_with(self, state_name: str) -> Iterator[Any]:
        """The keys that have a value in one registered state; the caller may change it on the way."""
        self._save()
        view, state = self.database.view(), self._states[state_name]
        for group in self.key_groups:
            yield from keys_of(self.database, view, state, group)

    def rows_of(self, key_group: int) -> Iterator[Row]:
        """The rows of a key group, read a few at a time."""
        self._save([key_group])
        yield from self._rows_with((), key_group)

    def rows_to_sweep(self, key_group: int) -> Iterator[Row]:
        """The rows of a key group, without those that came since a sweep over all key groups began."""
        if key_group not in self._to_sweep:
            self._to_sweep = self._cached_keys()
        yield from self._rows_with(self._to_sweep.pop(key_group), key_group)

    def _cached_keys(self) -> dict[int, list[Any]]:
        keys: dict[int, list[Any]] = {group: [] for group in self.key_groups}
        for row in self._cache.rows():
            if row[ROW_GROUP] >= 0:
                keys[row[ROW_GROUP]].append(row[ROW_KEY])
        return keys

    def _rows_with(self, more: Iterable[Any], key_group: int) -> Iterator[Row]:
        """The rows of the keys that the database holds of a key group, and of more keys."""
        view = self.database.view()
        written = (key for state in self._states.values() for key in keys_of(self.database, view, state, key_group))
        keys = dict.fromkeys(chain(more, written))
        remaining = iter(keys)
        while some := list(islice(remaining, _SWEPT_ROWS)):
            self.prefetch(some)
            for key in some:
                yield dict.get(self.front, key) or self.load_row(key)  # without the cleanup of every key

    def unclaimed_names(self) -> list[str]:
        """The restored states that are not registered; full snapshots carry them along."""
        return self._restored.names()

    def number_of_keys(self) -> int:
        """About the number of keys."""
        return sum(self._counts.values()) - len(self._emptied(self._cache.rows()))

    def keys_per_group(self) -> dict[int, int]:
        """Key group -> about the number of its keys."""
        return dict(self._counts)

    def register(self, spec: StateSpec, handle_over: Callable[[int], StateT]) -> StateT:
        """The handle for a spec: the known one, or a new one over a new column, with restored values loaded."""
        known = self._states.get(spec.name)
        if known is not None:
            known.spec.check_same(spec)
            return known.handle  # type: ignore[return-value]
        place = ROW_COLUMNS + 2 * len(self._states)
        kind = _STORED.get(spec.kind, StoredValues)
        state = kind(
            StatePlace(self.database, self._operator, len(self._states), place), self.key_groups, spec, self._key_codec
        )
        self._states[spec.name] = state
        for row in self._cache.rows():  # somebody may hold these rows
            row.extend((None, None))
        handle = handle_over(place)
        state.handle = handle
        try:
            self._load_restored(state)
        except IncompatibleStateError as error:
            self._refused = error
            raise
        rows = list(self._cache.rows())
        self._fill(state, rows, self.database.get_many([state.entry_key(row) for row in rows]))
        return handle

    def _load_restored(self, state: StoredState) -> None:
        loader = PartLoader(state, self.database, self._key_codec, self._key_group_of)
        loaded = loader.load(self._restored.claim(state.spec.name))
        for group, added in loaded.keys.items():
            # About: keys that only a later state has are not counted.
            self._counts[group] = max(self._counts[group], added)
        for group in loaded.adopted if self._tracks else ():
            whole = state.scanned(self.database.scan(state.prefix(group)))
            if whole is not None:
                self.log.open.add_part(group, whole)

    def new_index(self) -> StoredIndex:
        """An index by key, on disk; it takes its memory from the rows."""
        prefix = ungrouped_prefix(self._operator, self._indexes)
        self._indexes += 1
        values = max(self._cache.least_rows, self._cache.lend(_INDEX_SHARE) // VALUE_BYTES)
        return StoredIndex(self.database, prefix, value_codec_for(None, allow_pickle=False), values)

    def registered(self) -> Iterator[tuple[StateSpec, int]]:
        """The registered states, each with its column."""
        return ((state.spec, state.place) for state in self._states.values())

    def list_handle(self, column: int) -> RocksListState:
        """The handle of a list state over a column."""
        return RocksListState(self, column)

    def list_column(self, column: int) -> RocksListColumn:
        """The handle of a list state over a column of any row, for windows."""
        return RocksListColumn(self, column)

    def map_handle(self, column: int) -> RocksMapState:
        """The handle of a map state over a column."""
        return RocksMapState(self, column)

    def state_at(self, column: int) -> StoredState:
        """The state whose values are in a column."""
        return next(state for state in self._states.values() if state.place == column)

    def before_full_snapshots(self, cleanup: Callable[[Iterable[Row]], None]) -> None:
        """Register a cleanup that is called with the rows of a key group before they are captured whole."""
        self._cleanups.append(cleanup)

    def with_every_key(self, cleanup: Callable[[], object]) -> None:
        """Register a cleanup that is called whenever a key is chosen."""
        if not isinstance(self.front, CleaningFront):
            before, self.front = self.front, CleaningFront()
            self.front.update(before)
            before.clear()  # the current batch keeps it: it must find no rows there
            self._cache.front = self.front
        self.front.cleanups.append(cleanup)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def _check_restored(self) -> None:
        if self._refused is not None:
            raise self._refused

    def snapshot_delta(
        self, snapshot_id: int, since_completed_id: int | None, whole: Iterable[int] = ()
    ) -> LoggedDelta:
        """Cut: capture the changes since the completed snapshot, and the key groups in `whole` as a whole."""
        self._check_restored()
        groups = sorted({*whole, *self.log.bound_sealed(since_completed_id)})
        rewritten = self._scanned(groups) if groups else []
        return LoggedDelta(self._cut(snapshot_id), rewritten)

    def snapshot_whole(self, snapshot_id: int) -> list[GroupCapture]:
        """Cut: capture everything, for a snapshot without a base."""
        captured = self.snapshot_aside(snapshot_id)
        if self._tracks:
            self.log.bound_sealed(None)
            self._cut(snapshot_id)
        return captured

    def _cut(self, snapshot_id: int) -> Sequence[Segment]:
        segments = self.log.cut(snapshot_id, self._cached_changes())
        self._begin_generation()
        # The last step: if the disk is full, the next cut must not capture these changes a second time.
        segments[-1].bound_encoded()
        return segments

    def _begin_generation(self) -> None:
        """Let marks of now mean nothing but that the database does not have the value."""
        self.generation.plain.clear()  # unwritten rows keep the generation, which would keep rows that leave the cache
        self.generation = ChangeSet()

    def snapshot_aside(self, snapshot_id: int) -> list[GroupCapture]:
        """Capture everything, for a snapshot that is no base of others (a savepoint): the next delta ignores it."""
        self._check_restored()
        return self._scanned(list(self.key_groups))

    def _scanned(self, groups: list[int]) -> list[GroupCapture]:
        for cleanup in self._cleanups:
            for group in groups:
                cleanup(self.rows_of(group))
        self._save(groups)
        view = self.database.view()
        states = list(self._states.values())
        return [ScannedGroup(group, self.database, view, states, self._restored.carried(group)) for group in groups]

    def _cached_changes(self) -> list[tuple[int, StatePart]]:
        """The changes of rows in the cache, by key group.

        Encoded at the cut: the values that an upload would encode later are twice as large, and none of the slot's
        shares of memory has room for them beside the values that replace them meanwhile.
        """
        self._forget_gone()
        changed: list[tuple[int, StatePart]] = []
        generation = self.generation
        for state in self._states.values():
            by_group: defaultdict[int, list[Row]] = defaultdict(list)
            for row in generation.plain.get(state.place + 1, ()):
                by_group[row[ROW_GROUP]].append(row)
            for group, rows in by_group.items():
                changes = state.captured(rows, generation)
                if changes is not None:
                    changed.append((group, changes.encode(self._key_codec)))
        return changed

    def snapshot_completed(self, snapshot_id: int) -> None:
        """The snapshot is durable: later deltas build on it."""
        self.log.completed(snapshot_id)
        self.inventories.completed(snapshot_id)

    def snapshot_aborted(self, snapshot_id: int) -> None:
        """The snapshot counts as never triggered: the next delta covers its changes too."""
        self.inventories.aborted(snapshot_id)

    def forget_changes(self) -> None:
        """Drop the collected changes: no snapshot will ask for them."""
        self.log.forget()
        self._begin_generation()

    def restore(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Take (key group, part) into a file; a state's values go into the database when it is registered."""
        assert not self._states, "restore comes before registration"
        assert self.row is NO_KEY, "restore comes before the first key"
        self._restored.take(parts)
