"""The state handles over rows: of value-like states for every backend, of lists and maps that lie in the row itself.

This is the hottest code of the engine.

A handle is obtained once, in `open()`, and works on the row of the current key. It touches its two columns only:
the value, and the mark that says whether the change is already recorded (`change_tracking.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from rekindle.datastream.state import AggregatingState, ListState, MapState, ReducingState, ValueState
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import WHOLE


class RowValueState(ValueState[Any]):
    """One value per key; None is "no value"."""

    __slots__ = ("_column", "_mark", "_rows")

    def __init__(self, rows: KeyedStateBackend, column: int) -> None:
        self._rows = rows
        self._column = column
        self._mark = column + 1

    def value(self) -> Any:
        """The current key's value, or None."""
        return self._rows.row[self._column]

    def update(self, value: Any) -> None:
        """Set the current key's value; None clears it."""
        if value is None:
            self.clear()
            return
        rows = self._rows
        row = rows.row
        if row[self._mark] is not rows.generation:
            rows.mark(row, self._mark)
        row[self._column] = value

    def clear(self) -> None:
        """Remove the current key's value."""
        _clear_value(self._rows, self._column)


def _clear_value(rows: KeyedStateBackend, column: int) -> None:
    row = rows.row
    if row[column] is not None:
        if row[column + 1] is not rows.generation:
            rows.mark(row, column + 1)
        row[column] = None
        rows.note_emptied(row)


class RowReducingState(ReducingState[Any]):
    """One value per key, combined with each added one by a reduce function."""

    __slots__ = ("_column", "_mark", "_reduce", "_rows")

    def __init__(self, rows: KeyedStateBackend, column: int, reduce: Callable[[Any, Any], Any]) -> None:
        self._rows = rows
        self._column = column
        self._mark = column + 1
        self._reduce = reduce

    def get(self) -> Any:
        """The reduced value of the current key, or None."""
        return self._rows.row[self._column]

    def add(self, value: Any) -> None:
        """Combine a value into the current key's."""
        rows = self._rows
        row = rows.row
        held = row[self._column]
        reduced = value if held is None else self._reduce(held, value)
        if row[self._mark] is not rows.generation:
            rows.mark(row, self._mark)
        row[self._column] = reduced

    def clear(self) -> None:
        """Remove the current key's value."""
        _clear_value(self._rows, self._column)


class AggregateLike(Protocol):
    """An `AggregateFunction`."""

    def create_accumulator(self) -> Any: ...

    def add(self, value: Any, accumulator: Any) -> Any: ...

    def get_result(self, accumulator: Any) -> Any: ...

    def merge(self, acc_a: Any, acc_b: Any) -> Any: ...


class RowAggregatingState(AggregatingState[Any, Any]):
    """One accumulator per key, fed and read through an aggregate function."""

    __slots__ = ("_aggregate", "_column", "_mark", "_rows")

    def __init__(self, rows: KeyedStateBackend, column: int, aggregate: AggregateLike) -> None:
        self._rows = rows
        self._column = column
        self._mark = column + 1
        self._aggregate = aggregate

    def get(self) -> Any:
        """The result for the current key, or None when nothing was added."""
        held = self._rows.row[self._column]
        return None if held is None else self._aggregate.get_result(held)

    def add(self, value: Any) -> None:
        """Add a value to the current key's accumulator."""
        rows = self._rows
        row = rows.row
        held = row[self._column]
        if held is None:
            held = self._aggregate.create_accumulator()
        accumulated = self._aggregate.add(value, held)
        if row[self._mark] is not rows.generation:
            rows.mark(row, self._mark)
        row[self._column] = accumulated

    def clear(self) -> None:
        """Remove the current key's accumulator."""
        _clear_value(self._rows, self._column)

    def accumulator(self) -> Any:
        """The current key's accumulator, or None."""
        return self._rows.row[self._column]

    def merge(self, accumulator: Any) -> None:
        """Merge another accumulator, unless it is None, into the current key's."""
        if accumulator is None:
            return
        rows = self._rows
        row = rows.row
        held = row[self._column]
        row[self._column] = accumulator if held is None else self._aggregate.merge(held, accumulator)
        if row[self._mark] is not rows.generation:
            rows.mark(row, self._mark)


def _replace(rows: KeyedStateBackend, column: int, value: Any) -> None:
    row = rows.row
    row[column] = value
    if row[column + 1] is None:
        rows.mark_change(row, column + 1, WHOLE)
    else:
        row[column + 1] = WHOLE
    if value is None:
        rows.note_emptied(row)


class RowListState(ListState[Any]):
    """A list per key; a delta writes appended elements only."""

    __slots__ = ("_column", "_mark", "_rows")

    def __init__(self, rows: KeyedStateBackend, column: int) -> None:
        self._rows = rows
        self._column = column
        self._mark = column + 1

    def get(self) -> list[Any]:
        """A copy of the current key's list: adding while iterating is safe; empty when there is none."""
        held = self._rows.row[self._column]
        return [] if held is None else held.copy()

    def add(self, value: Any) -> None:
        """Append one element."""
        row = self._rows.row
        held = row[self._column]
        if held is None:
            _replace(self._rows, self._column, [value])
            return
        if row[self._mark] is None:
            self._rows.mark_change(row, self._mark, len(held))
        held.append(value)

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several elements."""
        added = list(values)
        if not added:
            return
        row = self._rows.row
        held = row[self._column]
        if held is None:
            _replace(self._rows, self._column, added)
            return
        if row[self._mark] is None:
            self._rows.mark_change(row, self._mark, len(held))
        held.extend(added)

    def update(self, values: Iterable[Any]) -> None:
        """Replace the list; an empty one clears it."""
        replacement = list(values)
        if replacement:
            _replace(self._rows, self._column, replacement)
        else:
            self.clear()

    def clear(self) -> None:
        """Remove the current key's list."""
        if self._rows.row[self._column] is not None:
            _replace(self._rows, self._column, None)


class RowMapState(MapState[Any, Any]):
    """A map per key; a delta writes changed entries only."""

    __slots__ = ("_column", "_mark", "_rows")

    def __init__(self, rows: KeyedStateBackend, column: int) -> None:
        self._rows = rows
        self._column = column
        self._mark = column + 1

    def get(self, key: Any) -> Any:
        """The value of an entry, or None."""
        held = self._rows.row[self._column]
        return None if held is None else held.get(key)

    def contains(self, key: Any) -> bool:
        """Whether there is such an entry."""
        held = self._rows.row[self._column]
        return held is not None and key in held

    def put(self, key: Any, value: Any) -> None:
        """Set an entry; None is a value like any other."""
        row = self._rows.row
        held = row[self._column]
        if held is None:
            _replace(self._rows, self._column, {key: value})
            return
        held[key] = value
        changed = row[self._mark]
        if changed is None:
            changed = self._rows.mark_change(row, self._mark, {})
        if changed is not WHOLE:
            changed[key] = None

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove an entry, if it is there."""
        row = self._rows.row
        held = row[self._column]
        if held is None or key not in held:
            return
        del held[key]
        if not held:
            _replace(self._rows, self._column, None)
            return
        changed = row[self._mark]
        if changed is None:
            changed = self._rows.mark_change(row, self._mark, {})
        if changed is not WHOLE:
            changed[key] = None
            # Else entries that come and go make the changes larger than the map.
            if len(changed) > 2 * len(held) + 16:
                row[self._mark] = WHOLE

    def keys(self) -> list[Any]:
        """The keys as they are now: changing the map while iterating is safe."""
        held = self._rows.row[self._column]
        return [] if held is None else list(held)

    def values(self) -> list[Any]:
        """The values as they are now."""
        held = self._rows.row[self._column]
        return [] if held is None else list(held.values())

    def items(self) -> list[tuple[Any, Any]]:
        """The entries as they are now."""
        held = self._rows.row[self._column]
        return [] if held is None else list(held.items())

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return self._rows.row[self._column] is None

    def clear(self) -> None:
        """Remove all entries."""
        if self._rows.row[self._column] is not None:
            _replace(self._rows, self._column, None)
