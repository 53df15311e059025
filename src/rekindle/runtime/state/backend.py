"""The port of keyed state: everything that operators, handles, timers and snapshots ask of a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rekindle.clock import Clock, SystemClock
from rekindle.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.inventory import Inventories
from rekindle.runtime.state.key_index import KeyIndex
from rekindle.runtime.state.keyed_state_format import GroupCapture
from rekindle.runtime.state.ttl.layer import ExpiringRows


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


class KeyedStateBackend(ExpiringRows, Protocol):
    """Keyed state of one operator in one subtask, one row per key. Call it on the task's thread only.

    The rows are part of the port, because hot loops choose the current key without a call::

        front_get, load_row = backend.front.get, backend.load_row
        for record in records:
            key = key_of(record)
            backend.row = front_get(key) or load_row(key)
    """

    #: key -> row of keys seen lately; bounded. Bind its `get` anew for each batch.
    front: dict[Any, Row]
    #: The stored state of the last snapshots: decides what the next snapshot writes whole.
    inventories: Inventories

    @property
    def prefetch(self) -> Callable[[Iterable[Any]], None] | None:
        """Reads the rows of keys that are not in memory before a batch needs them; None if all are in memory."""

    # -- the current key ----------------------------------------------------------------------------------------------

    def load_row(self, key: Any) -> Row:
        """The row of a key that is not in `front`; puts it there."""

    def set_current_key(self, key: Any) -> None:
        """Let the handles work on this key from now on."""

    def current_key(self) -> Any:
        """The key that the handles work on; StateAccessError when there is none."""

    def clear_current_key(self) -> None:
        """Leave no current key: handles refuse to work."""

    def visiting_keys(self) -> AbstractContextManager[None]:
        """A block in which any key may become the current one; afterwards the former one is current again."""

    # -- keys and states ----------------------------------------------------------------------------------------------

    def rows_of(self, key_group: int) -> Iterable[Row]:
        """The rows of a key group; the caller may change them on the way."""

    def keys(self) -> Iterator[Any]:
        """The keys that have state, by key group; the caller may change the state of a key on the way."""

    def keys_with(self, state_name: str) -> Iterator[Any]:
        """The keys that have a value in one registered state; the caller may change it on the way."""

    def keys_per_group(self) -> dict[int, int]:
        """Key group -> number of its keys, with removed keys whose removal no snapshot has written yet."""

    def values_of(self, key: Any) -> dict[str, Any]:
        """The values that a key has now, by state, as they are stored: for people who look, not for operators."""

    def unclaimed_names(self) -> list[str]:
        """The restored states that are not registered; full snapshots carry them along."""

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def new_index(self) -> KeyIndex:
        """An index by key, which lies where the state lies; no snapshot holds it."""

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
        """Load (key group, part): for each key group the full part first, then its deltas in order."""
