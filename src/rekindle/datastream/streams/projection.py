"""`project`: the function that keeps some fields of each tuple or row, and its output type."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from rekindle.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from rekindle.common.types import Row
from rekindle.datastream.functions.simple import MapFunction
from rekindle.errors import GraphError, TypeMismatchError


class ProjectFunction(MapFunction):
    """Keeps the fields at the given positions, in the given order.

    >>> ProjectFunction((1, 0)).map(("a", "b", "c"))
    ('b', 'a')
    """

    def __init__(self, field_indexes: tuple[int, ...]) -> None:
        self._indexes = field_indexes
        self._pick = itemgetter(*field_indexes)

    def map(self, value: Any) -> Any:
        """Return a tuple or row of the chosen fields."""
        if isinstance(value, Row):
            return self._project_row(value)
        picked = self._pick(value)
        return picked if len(self._indexes) > 1 else (picked,)

    def _project_row(self, row: Row) -> Row:
        values = [row[index] for index in self._indexes]
        projected = Row(*values)
        if row.has_own_names():
            projected.set_field_names([row._fields[index] for index in self._indexes])
        projected.set_row_kind(row.get_row_kind())
        return projected


def projection(
    where: str, type_info: TypeInformation | None, field_indexes: tuple[int, ...]
) -> tuple[ProjectFunction, TypeInformation | None]:
    """Return the function that keeps these fields, and the type of its results."""
    if not field_indexes or any(not isinstance(index, int) or index < 0 for index in field_indexes):
        raise GraphError(f"{where} takes positions of fields, counted from 0, not {field_indexes!r}.")
    if type_info is None:
        return ProjectFunction(field_indexes), None
    if not isinstance(type_info, TupleTypeInfo | RowTypeInfo):
        # The first sentence is PyFlink's, to the letter.
        raise TypeMismatchError(
            f"Only Tuple DataStreams can be projected. {where} needs a stream of tuples or rows, not of {type_info!r}."
        )
    types = type_info.get_field_types()
    beyond = [index for index in field_indexes if index >= len(types)]
    if beyond:
        raise GraphError(f"{where}: {type_info} has no field {beyond[0]}, only 0 to {len(types) - 1}.")
    picked = [types[index] for index in field_indexes]
    if isinstance(type_info, TupleTypeInfo):
        return ProjectFunction(field_indexes), TupleTypeInfo(picked)
    names = type_info.get_field_names()
    has_names = type_info.get_field_index(names[0]) >= 0
    return ProjectFunction(field_indexes), RowTypeInfo(
        picked, [names[index] for index in field_indexes] if has_names else None
    )
