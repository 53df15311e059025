"""Merge the state of several rows into one row, for windows that merge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rekindle.datastream.state import AggregatingState, ListState, ReducingState, State
from rekindle.errors import StateAccessError
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.handles import RowAggregatingState
from rekindle.runtime.state.named_rows import ShapedListState
from rekindle.runtime.state.ttl.expiring_handles import TtlAggregatingState, TtlListState


def merge_state(rows: KeyedStateBackend, handle: State, target: Row, sources: Iterable[Row]) -> None:
    """Move a state's values from the source rows to the target row, which is the current row afterwards."""
    if isinstance(handle, ShapedListState):
        handle = handle.inner
    if isinstance(handle, TtlListState):
        handle = handle.elements  # each element keeps its time
    for source in sources:
        rows.row = source
        if isinstance(handle, RowAggregatingState | TtlAggregatingState):
            accumulator = handle.accumulator()
            handle.clear()
            rows.row = target
            handle.merge(accumulator)
            continue
        if not isinstance(handle, ReducingState | ListState) or isinstance(handle, AggregatingState):
            raise StateAccessError(
                f"A {type(handle).__name__} cannot be merged: windows that merge take reducing, list and aggregating "
                "state."
            )
        held: Any = handle.get()
        handle.clear()
        rows.row = target
        if isinstance(handle, ListState):
            handle.add_all(list(held))
        elif held is not None:
            handle.add(held)
    rows.row = target
