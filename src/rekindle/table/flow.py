"""A table that is a stream: the stream of its rows, and the steps of Python that a query takes with each row.

A stream that never ends has no other way: Spark, which runs all other queries, would wait for its last row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rekindle.common.data_types import RowType
from rekindle.common.types import Row, make_row
from rekindle.datastream.data_stream import DataStream
from rekindle.table.computed import Computed, Evaluate

#: Makes any number of rows of one, all as values in the order of the columns.
RowStep: TypeAlias = Callable[[Sequence[Any]], Iterable[Sequence[Any]]]


@dataclass(frozen=True, eq=False)
class Flow:
    """The rows of a stream, after steps."""

    stream: DataStream
    names: tuple[str, ...]
    steps: tuple[RowStep, ...] = ()

    def project(self, names: Sequence[str], columns: Sequence[Computed | None]) -> Flow | None:
        """Return the flow of these columns; None if one of them is not computed in Python."""
        evaluates = [column.bind(self.names) if column is not None else None for column in columns]
        bound = [each for each in evaluates if each is not None]
        if len(bound) < len(evaluates):
            return None
        return replace(self, names=tuple(names), steps=(*self.steps, Project(bound)))

    def explode(self, names: Sequence[str], function: Callable[[Row], Iterable[Sequence[Any]]]) -> Flow:
        """Return the flow of the rows that a function makes of each row."""
        return replace(self, names=tuple(names), steps=(*self.steps, Explode(self.names, function)))

    def rows(self, row_type: RowType) -> DataStream:
        """Return the stream of the rows after the steps."""
        steps = AllSteps(self.steps, row_type.field_names())
        return self.stream.flat_map(steps, row_type.to_type_info()).name("Table")


class Project:
    """Makes one row of each."""

    def __init__(self, columns: Sequence[Evaluate]) -> None:
        self._columns = columns

    def __call__(self, values: Sequence[Any]) -> Iterable[Sequence[Any]]:
        return ([column(values) for column in self._columns],)


class Explode:
    """Makes rows with a table function."""

    def __init__(self, names: Sequence[str], function: Callable[[Row], Iterable[Sequence[Any]]]) -> None:
        self._names = list(names)
        self._function = function

    def __call__(self, values: Sequence[Any]) -> Iterable[Sequence[Any]]:
        return self._function(make_row(self._names, list(values)))


class AllSteps:
    """Takes all steps with a row of the stream."""

    def __init__(self, steps: Sequence[RowStep], names: Sequence[str]) -> None:
        self._steps = steps
        self._names = list(names)

    def __call__(self, row: Row) -> Iterator[Row]:
        found: Iterable[Sequence[Any]] = [list(row)]
        for step in self._steps:
            found = [made for values in found for made in step(values)]
        return (make_row(self._names, list(values)) for values in found)
