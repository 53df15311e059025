"""The port of keyed state: all that operators, handles, timers and snapshots ask of a backend.

A third backend inherits `KeyedStateBackend` and implements its methods; `rekindle.testing.state_contract` tests it.
State by descriptor is no part of the port: `described_states` puts handles over the rows of any backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NoReturn, Protocol, TypeVar

from rekindle.clock import Clock, SystemClock
from rekindle.datastream.state import ListState, MapState, State
from rekindle.errors import InvalidKeyError, StateAccessError
from rekindle.runtime.state.change_tracking import ROW_KEY, Change, ChangeSet, Row
from rekindle.runtime.state.inventory import Inventories
from rekindle.runtime.state.key_index import KeyIndex
from rekindle.runtime.state.keyed_state_format import GroupCapture
from rekindle.runtime.state.spec import StateSpec

StateT = TypeVar("StateT", bound=State)


class _NoKeyRow(list[Any]):
    """The current row while there is no current key: any access to it raises StateAccessError."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateAccessError(
            "Keyed state and timers belong to the key of an element, and there is none here: use them while an "
            "element or a timer is processed, not in open(), close() or __init__()."
        )

    __getitem__ = __setitem__ = _refuse


NO_KEY: Final = _NoKeyRow()


@dataclass(frozen=True)
class KeyedStateOptions:
    """Options of a backend for the state of one operator."""

    #: Whether values of undeclared types may be pickled.
    allow_pickle: bool = True
    #: False (a job without checkpoints): marks are set once per row, and no changes are collected.
    track_changes: bool = True
    #: Whether only the handles write rows, so that large snapshots may read them after the cut (`deferred_capture.py`).
    defer_reads: bool = False
    #: The clock of state with a time to live.
    clock: Clock = field(default_factory=SystemClock)


class DeltaCapture(Protocol):
    """The changes since a completed snapshot, captured at the cut."""

    #: Key groups that are written whole, so that their changes are not in the delta.
    whole: list[GroupCapture]

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""


class ListColumn(Protocol):
    """The elements of a list state, of any row."""

    def present(self, row: Row) -> bool:
        """Whether the row has elements."""

    def get(self, row: Row) -> list[Any]:
        """The row's elements, which the caller may not change; the row must have some."""

    def append(self, row: Row, element: Any) -> None:
        """Add an element."""

    def put(self, row: Row, elements: list[Any]) -> None:
        """Replace the elements by these, of which there is at least one; the list is the row's from now on."""

    def remove(self, row: Row) -> None:
        """Remove all elements."""


class KeyedStateBackend(Protocol):
    """Keyed state of one operator in one subtask, one row per key. Call it on the task's thread only.

    The rows are part of the port, because hot loops choose the current key without a call::

        front_get, load_row = backend.front.get, backend.load_row
        for record in records:
            key = key_of(record)
            backend.row = front_get(key) or load_row(key)
    """

    #: Whether all rows are in memory and stay there: then operators may hold rows, and reading ahead is of no use.
    in_memory: ClassVar[bool]
    #: The key groups that the subtask owns.
    key_groups: range
    options: KeyedStateOptions
    #: The row that the handles work on; `NO_KEY` if there is none.
    row: Row
    #: key -> row of keys seen lately; bounded. Bind its `get` anew for each batch.
    front: dict[Any, Row]
    #: The open change set: a value-like column that has this mark was written since the last cut.
    generation: ChangeSet
    #: The stored state of the last snapshots: decides what the next snapshot writes whole.
    inventories: Inventories

    # -- the current key ----------------------------------------------------------------------------------------------

    def load_row(self, key: Any) -> Row:
        """The row of a key that is not in `front`; puts it there. InvalidKeyError if another subtask owns the key."""

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the rows of keys that are not in memory, in one call, before a batch is processed."""
        return

    def set_current_key(self, key: Any) -> None:
        """Let the handles work on this key from now on."""
        self.row = self.front.get(key) or self.load_row(key)

    def current_key(self) -> Any:
        """The key that the handles work on; StateAccessError when there is none."""
        return self.row[ROW_KEY]

    def clear_current_key(self) -> None:
        """Leave no current key: handles refuse to work."""
        self.row = NO_KEY

    @contextmanager
    def visiting_keys(self) -> Iterator[None]:
        """A block in which any key may become the current one; afterwards the former one, or none, is current again."""
        before = self.row
        try:
            yield
        finally:
            self.row = before
            if before is not NO_KEY:  # look the row up again: it may have been replaced
                self.row = self.front.get(before[ROW_KEY]) or self.load_row(before[ROW_KEY])

    # -- for the handles ----------------------------------------------------------------------------------------------

    def mark(self, row: Row, column: int) -> None:
        """Mark a value-like column before its first write in this generation."""

    def mark_change(self, row: Row, column: int, change: Change) -> Change:
        """Mark a detailed column at its first change in this generation; returns the change to continue with."""

    def note_emptied(self, row: Row) -> None:
        """Record that a column of the row became empty; the row is dropped once all its columns are."""

    # -- states -------------------------------------------------------------------------------------------------------

    def register(self, spec: StateSpec, handle_over: Callable[[int], StateT]) -> StateT:
        """The handle for a spec: the known one, or a new one over a new column, with restored values loaded."""

    def registered(self) -> Iterable[tuple[StateSpec, int]]:
        """The registered states, each with its column."""

    def unclaimed_names(self) -> list[str]:
        """The restored states that are not registered; full snapshots carry them along."""

    def list_handle(self, column: int) -> ListState[Any]:
        """The handle of a list state over a column."""

    def list_column(self, column: int) -> ListColumn:
        """The handle of a list state over a column of any row, for windows."""

    def map_handle(self, column: int) -> MapState[Any, Any]:
        """The handle of a map state over a column."""

    def new_index(self) -> KeyIndex:
        """An index by key, which lies where the state lies; no snapshot holds it."""

    # -- keys and rows ------------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[Any]:
        """The keys that have state, by key group; the caller may change the state of a key on the way."""

    def keys_with(self, state_name: str) -> Iterator[Any]:
        """The keys that have a value in one registered state; the caller may change it on the way."""

    def keys_per_group(self) -> dict[int, int]:
        """Key group -> about the number of its keys, with removed keys whose removal no snapshot has written yet."""

    def rows_of(self, key_group: int) -> Iterable[Row]:
        """The rows of a key group; the caller may change them on the way."""

    def rows_to_sweep(self, key_group: int) -> Iterable[Row]:
        """The rows of a key group, which the caller may change; young ones may be missing."""
        return self.rows_of(key_group)

    def before_full_snapshots(self, cleanup: Callable[[Iterable[Row]], None]) -> None:
        """Register a cleanup that is called with the rows of a key group before they are captured whole."""

    def with_every_key(self, cleanup: Callable[[], object]) -> None:
        """Register a cleanup that is called whenever a key is chosen."""

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot_delta(
        self, snapshot_id: int, since_completed_id: int | None, whole: Iterable[int] = ()
    ) -> DeltaCapture:
        """Cut: capture the changes since the completed snapshot, and the key groups in `whole` as a whole."""

    def snapshot_whole(self, snapshot_id: int) -> list[GroupCapture]:
        """Cut: capture everything, for a snapshot without a base."""

    def snapshot_aside(self, snapshot_id: int) -> list[GroupCapture]:
        """Capture everything, for a snapshot that is no base of others (a savepoint): the next delta ignores it."""

    def snapshot_completed(self, snapshot_id: int) -> None:
        """The snapshot is durable: later deltas build on it."""

    def snapshot_aborted(self, snapshot_id: int) -> None:
        """The snapshot counts as never triggered: the next delta covers its changes too."""

    def forget_changes(self) -> None:
        """Drop the collected changes: no snapshot will ask for them (end of an epoch without checkpointing)."""

    def restore(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Load (key group, part): for each key group the full part first, then its deltas in order.

        Parts of key groups that this subtask does not own are skipped. Restore comes before the first registration.
        """


def foreign_key(key: Any, group: int, owned: range) -> InvalidKeyError:
    """The error for a key whose key group another subtask owns."""
    return InvalidKeyError(
        f"Key {key!r} belongs to key group {group}, but this subtask owns {owned.start} to {owned.stop - 1}: "
        "the key selector must give the same key for the same element every time."
    )
