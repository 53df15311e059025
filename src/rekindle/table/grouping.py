"""A grouped table as Flink's streams print it: each row changes the row of its group, and every change is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rekindle.common.typeinfo import RowTypeInfo
from rekindle.common.types import Row
from rekindle.datastream.functions import KeyedProcessFunction, RuntimeContext
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.table.row_text import row_text

if TYPE_CHECKING:
    from rekindle.table.table import Table

#: Aggregates that a new value changes without a look at the earlier ones.
AGGREGATES = frozenset({"count", "sum", "min", "max"})


@dataclass(frozen=True, eq=False)
class Grouping:
    """A grouped table: the rows to group, and the keys and aggregates among their values."""

    #: The rows before the grouping: the keys, then the argument of each aggregate.
    prepared: Table
    layout: GroupLayout


@dataclass(frozen=True)
class GroupLayout:
    """Which values of a prepared row are keys, how the others are aggregated, and in which order they are written.

    >>> layout = GroupLayout(1, ("count", "max"), (0, 1, 2))
    >>> [f"{kind}{list(values)}" for kind, values in layout.all_changes([("to", 1, 5), ("be", 1, 2), ("to", 1, 3)])]
    ["+I['to', 1, 5]", "+I['be', 1, 2]", "-U['to', 1, 5]", "+U['to', 2, 5]"]
    """

    keys: int
    aggregates: tuple[str, ...]
    #: Positions in the keys followed by the aggregates.
    outputs: tuple[int, ...]

    def added(self, before: Sequence[Any] | None, values: Sequence[Any]) -> list[Any]:
        """Return the aggregates of a group with one more row; None before its first row."""
        arguments = values[self.keys :]
        old = before if before is not None else [0 if kind == "count" else None for kind in self.aggregates]
        return [_add(*each) for each in zip(self.aggregates, old, arguments, strict=True)]

    def changes(
        self, key: Sequence[Any], before: Sequence[Any] | None, after: Sequence[Any]
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield the kind and the values of each row that a change of a group's aggregates gives."""
        if before is None:
            yield "+I", self._written(key, after)
        elif list(before) != list(after):
            yield "-U", self._written(key, before)
            yield "+U", self._written(key, after)

    def all_changes(self, rows: Iterable[Sequence[Any]]) -> Iterator[tuple[str, list[Any]]]:
        """Yield the changes that all rows of a bounded table give."""
        groups: dict[str, list[Any]] = {}
        for values in rows:
            key = values[: self.keys]
            name = repr(key)  # a key may hold lists
            before = groups.get(name)
            after = groups[name] = self.added(before, values)
            yield from self.changes(key, before, after)

    def _written(self, key: Sequence[Any], aggregates: Sequence[Any]) -> list[Any]:
        both = [*key, *aggregates]
        return [both[index] for index in self.outputs]


def _add(kind: str, before: Any, value: Any) -> Any:
    if value is None:
        return before
    if kind == "count":
        return before + 1
    if before is None:
        return value
    match kind:
        case "sum":
            return before + value
        case "min":
            return min(before, value)
        case _:
            assert kind == "max", kind
            return max(before, value)


class GroupChanges(KeyedProcessFunction):
    """Writes the changes of the groups of a stream as text."""

    def __init__(self, layout: GroupLayout, aggregates: RowTypeInfo) -> None:
        self._layout = layout
        self._type = aggregates

    def open(self, runtime_context: RuntimeContext) -> None:
        self._aggregates = runtime_context.get_state(ValueStateDescriptor("aggregates", self._type))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        values = list(value)
        stored = self._aggregates.value()
        before = None if stored is None else list(stored)
        after = self._layout.added(before, values)
        self._aggregates.update(Row(*after))
        for kind, written in self._layout.changes(values[: self._layout.keys], before, after):
            yield row_text(written, kind)


class KeyValues:
    """Selects the keys of a prepared row."""

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def __call__(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[: self._keys])
