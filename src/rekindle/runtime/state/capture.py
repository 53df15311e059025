"""Capture rows of the in-memory backend for a snapshot: at the cut, or later where reading can be deferred."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rekindle.runtime.state.change_tracking import ChangeSet, Row
from rekindle.runtime.state.columns import Column
from rekindle.runtime.state.deferred_capture import WORTHWHILE_ROWS, Deferred, Overwritten
from rekindle.runtime.state.keyed_state_format import (
    CapturedDelta,
    CapturedGroup,
    CapturedState,
    GroupCapture,
    StatePart,
)
from rekindle.runtime.state.spec import Codec

#: Called with the rows of a key group before they are captured whole.
Cleanup = Callable[[Iterable[Row]], None]


class RowCapture:
    """Captures the rows of its backend; it shares the backend's own dicts."""

    __slots__ = ("_columns", "_defers", "_groups", "_key_codec", "_overwritten", "_unclaimed", "cleanups")

    def __init__(
        self,
        groups: Mapping[int, dict[Any, Row]],
        columns: Mapping[str, Column],
        unclaimed: Mapping[str, list[tuple[int, StatePart]]],
        key_codec: Codec,
        defers: bool,
    ) -> None:
        self.cleanups: list[Cleanup] = []
        self._groups = groups
        self._columns = columns
        self._unclaimed = unclaimed
        self._key_codec = key_codec
        self._defers = defers
        self._overwritten: weakref.ref[Overwritten] | None = None

    # -- while rows change --------------------------------------------------------------------------------------------

    @property
    def reads_rows(self) -> bool:
        """Whether a snapshot has deferred reading rows: then no row may be removed, and old values are kept."""
        return self._overwritten is not None and self._overwritten() is not None

    def keep(self, row: Row, place: int) -> bool:
        """Keep a row's old value before its first write since the cut; False: no snapshot reads rows any more."""
        overwritten = self._overwritten() if self._overwritten is not None else None
        if overwritten is None:
            self._overwritten = None
            return False
        overwritten.keep(row, place)
        return True

    # -- the cut ------------------------------------------------------------------------------------------------------

    def clean(self, key_groups: Iterable[int]) -> None:
        """Remove expired entries of key groups before these are captured whole."""
        for cleanup in self.cleanups:
            for group in key_groups:
                cleanup(self._groups[group].values())

    def begin(self, rows: int) -> Overwritten | None:
        """Start a cut of about so many rows. Returns the copy-on-write buffer if reading is deferred, else None."""
        before = self._overwritten() if self._overwritten is not None else None
        if before is not None:
            before.finish()
        self._overwritten = None
        if not self._defers or rows < WORTHWHILE_ROWS:
            return None
        overwritten = Overwritten()
        self._overwritten = weakref.ref(overwritten)
        return overwritten

    def group(self, group: int, overwritten: Overwritten | None) -> CapturedGroup:
        """Capture a whole key group."""
        rows = self._groups[group]
        carried = (part for parts in self._unclaimed.values() for at, part in parts if at == group)
        captured = CapturedGroup(group, self._key_codec, carried)
        for column in self._columns.values():
            deferred_state = column.defer_all(rows, overwritten) if overwritten is not None else None
            if deferred_state is not None:
                captured.deferred.append(deferred_state)
                continue
            state = column.capture_all(rows)
            if state is not None:
                captured.states.append(state)
        return captured

    def changed(self, changes: ChangeSet, whole: list[GroupCapture], overwritten: Overwritten | None) -> CapturedDelta:
        """Capture changes, without those of key groups that are written whole."""
        without = frozenset(group.key_group for group in whole)
        groups: dict[int, CapturedGroup] = {}
        deferred: list[Deferred[dict[int, CapturedState]]] = []
        for column in self._columns.values():
            deferred_state = column.defer_changes(changes, without, overwritten) if overwritten is not None else None
            if deferred_state is not None:
                deferred.append(deferred_state)
                continue
            for group, captured in column.capture_changes(changes, without).items():
                if group not in groups:
                    groups[group] = CapturedGroup(group, self._key_codec)
                groups[group].states.append(captured)
        return CapturedDelta(groups, whole, deferred, self._key_codec)
