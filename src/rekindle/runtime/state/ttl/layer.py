"""Build the time-to-live layer of a registered state: its expiring handle, and its cleanup."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from rekindle.clock import Clock
from rekindle.datastream.state import AggregatingState, ListState, MapState, ReducingState, State, ValueState
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.handles import AggregateLike, Rows, RowValueState
from rekindle.runtime.state.spec import StateSpec
from rekindle.runtime.state.ttl.cleanup import (
    Expiry,
    FullSnapshotCleanup,
    IncrementalCleanup,
    ListExpiry,
    MapExpiry,
    SweptRows,
)
from rekindle.runtime.state.ttl.expiring_handles import (
    Access,
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
)
from rekindle.runtime.state.ttl.expiry import TtlSettings, timed_spec

StateT = TypeVar("StateT", bound=State)


class ExpiringRows(Rows, SweptRows, Protocol):
    """The part of a backend that the layer uses."""

    def list_handle(self, column: int) -> ListState[Any]:
        """The handle of a list state over a column."""

    def map_handle(self, column: int) -> MapState[Any, Any]:
        """The handle of a map state over a column."""

    def register(self, spec: StateSpec, handle_over: Callable[[int], StateT]) -> StateT:
        """The handle for a spec: the known one, or a new one over a new column."""

    def before_full_snapshots(self, cleanup: Callable[[Iterable[Row]], None]) -> None:
        """Register a cleanup that is called with the rows of a key group before they are captured whole."""

    def with_every_key(self, cleanup: Callable[[], object]) -> None:
        """Register a cleanup that is called whenever a key is chosen."""


class TtlStates:
    """Registers states of (last access, value) pairs, and returns the handles that let them expire."""

    def __init__(self, rows: ExpiringRows, clock: Clock) -> None:
        self._rows = rows
        self._now_ms = clock.wall_ms

    def value_state(self, spec: StateSpec, ttl: TtlSettings) -> ValueState[Any]:
        """The handle of a value state."""

        def over(column: int) -> TtlValueState:
            cell = RowValueState(self._rows, column)
            return TtlValueState(cell, ttl, self._access(Expiry(self._rows, column, cell), ttl))

        return self._rows.register(timed_spec(spec, ttl, self._now_ms), over)

    def reducing_state(
        self, spec: StateSpec, ttl: TtlSettings, reduce: Callable[[Any, Any], Any]
    ) -> ReducingState[Any]:
        """The handle of a reducing state."""

        def over(column: int) -> TtlReducingState:
            cell = RowValueState(self._rows, column)
            return TtlReducingState(cell, ttl, self._access(Expiry(self._rows, column, cell), ttl), reduce)

        return self._rows.register(timed_spec(spec, ttl, self._now_ms), over)

    def aggregating_state(
        self, spec: StateSpec, ttl: TtlSettings, aggregate: AggregateLike
    ) -> AggregatingState[Any, Any]:
        """The handle of an aggregating state."""

        def over(column: int) -> TtlAggregatingState:
            cell = RowValueState(self._rows, column)
            return TtlAggregatingState(cell, ttl, self._access(Expiry(self._rows, column, cell), ttl), aggregate)

        return self._rows.register(timed_spec(spec, ttl, self._now_ms), over)

    def list_state(self, spec: StateSpec, ttl: TtlSettings) -> ListState[Any]:
        """The handle of a list state."""

        def over(column: int) -> TtlListState:
            elements = self._rows.list_handle(column)
            return TtlListState(elements, ttl, self._access(ListExpiry(self._rows, column, elements), ttl))

        return self._rows.register(timed_spec(spec, ttl, self._now_ms), over)

    def map_state(self, spec: StateSpec, ttl: TtlSettings) -> MapState[Any, Any]:
        """The handle of a map state."""

        def over(column: int) -> TtlMapState:
            entries = self._rows.map_handle(column)
            return TtlMapState(entries, ttl, self._access(MapExpiry(self._rows, column, entries), ttl))

        return self._rows.register(timed_spec(spec, ttl, self._now_ms), over)

    def _access(self, expiry: Expiry, ttl: TtlSettings) -> Access:
        """Start the cleanup of a new state; returns the function that its handle calls at each access."""
        if ttl.cleans_full_snapshots:
            self._rows.before_full_snapshots(FullSnapshotCleanup(expiry, ttl.ttl_ms, self._now_ms))
        if not ttl.cleanup_size:
            return self._now_ms
        cleanup = IncrementalCleanup(self._rows, expiry, ttl.cleanup_size, ttl.ttl_ms, self._now_ms)
        if ttl.cleans_with_every_key:
            self._rows.with_every_key(cleanup.access)
        return cleanup.access
