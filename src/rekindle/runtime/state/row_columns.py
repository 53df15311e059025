"""Handles of one column of any row, for windows: they hold rows of many keys and windows, not only the current one.

A row that a window operator has just made is *young*: the backend does not know it, and never will if the window is
cleaned up before the next snapshot. The handles write young rows without marking changes.
"""

from __future__ import annotations

from typing import Any, Final

from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import ROW_COLUMNS, ROW_KEY, WHOLE, Row
from rekindle.runtime.state.handles import RowValueState
from rekindle.runtime.state.spec import StateSpec


class _Young:
    """The change mark of a young row."""


YOUNG: Final = _Young()


def young_row(columns: int) -> Row:
    """A young row with the columns that were registered first."""
    return [None] * ROW_COLUMNS + [None, YOUNG] * columns


def is_young(row: Row) -> bool:
    """Whether the backend does not know the row."""
    return row[ROW_KEY] is None


class ValueColumn:
    """One value per row; None is "no value".

    A hot loop may write `row[place]` itself, and then calls `set` unless `row[mark]` is `YOUNG` or the backend's
    generation.
    """

    def __init__(self, backend: KeyedStateBackend, spec: StateSpec) -> None:
        self._backend = backend
        self.place = self.mark = -1
        backend.register(spec, self._handle_at)
        assert self.place >= 0, f"state '{spec.name}' is registered twice"

    def _handle_at(self, place: int) -> RowValueState:
        self.place, self.mark = place, place + 1
        return RowValueState(self._backend, place)

    def get(self, row: Row) -> Any:
        """The row's value, or None."""
        return row[self.place]

    def set(self, row: Row, value: Any) -> None:
        """Set the row's value."""
        mark = row[self.mark]
        if mark is not self._backend.generation and mark is not YOUNG:
            self._backend.mark(row, self.mark)
        row[self.place] = value

    def remove(self, row: Row) -> None:
        """Remove the row's value, if it has one."""
        if row[self.place] is not None:
            self.set(row, None)
            self._backend.note_emptied(row)


class HeldListColumn:
    """A `ListColumn` whose elements are a list in the row."""

    def __init__(self, backend: KeyedStateBackend, place: int) -> None:
        self._backend = backend
        self._place = place
        self._mark = place + 1

    def present(self, row: Row) -> bool:
        """Whether the row has elements."""
        return row[self._place] is not None

    def get(self, row: Row) -> list[Any]:
        """The row's elements, which the caller may not change; the row must have some."""
        held: list[Any] = row[self._place]
        return held

    def append(self, row: Row, element: Any) -> None:
        """Add an element."""
        held = row[self._place]
        if held is None:
            self._replace(row, [element])
            return
        if row[self._mark] is None:
            self._backend.mark_change(row, self._mark, len(held))
        held.append(element)

    def put(self, row: Row, elements: list[Any]) -> None:
        """Replace the elements by these, of which there is at least one; the list is the row's from now on."""
        self._replace(row, elements)

    def remove(self, row: Row) -> None:
        """Remove all elements."""
        if row[self._place] is not None:
            self._replace(row, None)
            self._backend.note_emptied(row)

    def _replace(self, row: Row, value: list[Any] | None) -> None:
        row[self._place] = value
        mark = row[self._mark]
        if mark is None:
            self._backend.mark_change(row, self._mark, WHOLE)
        elif mark is not YOUNG:
            row[self._mark] = WHOLE
