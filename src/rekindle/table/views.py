"""Views: the tables behind the names in a query, as plain data which the engine turns into a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rekindle.common.data_types import RowType
from rekindle.datastream.transformations import Program, Transformation, with_inputs
from rekindle.datastream.vocabulary import Boundedness
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.table.udf import QueryFunction


@dataclass(frozen=True, eq=False)
class StreamView:
    """A bounded stream: its records are collected when a query reads them first."""

    program: Program
    row_type: RowType


@dataclass(frozen=True, eq=False)
class ElementsView:
    """Rows of the program itself."""

    rows: Sequence[tuple[Any, ...]]
    row_type: RowType


@dataclass(frozen=True, eq=False)
class FilesView:
    """Files of a format that Spark reads."""

    path: str
    format: str
    row_type: RowType
    options: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class QueryView:
    """Another query."""

    query: Query


View: TypeAlias = StreamView | ElementsView | FilesView | QueryView


@dataclass(frozen=True, eq=False)
class Query:
    """A query, with everything that its names stand for."""

    sql: str
    views: Mapping[str, View] = field(default_factory=dict)
    functions: Mapping[str, QueryFunction] = field(default_factory=dict)


class QueryEngine(Protocol):
    """The interface of what runs queries. A frame is a DataFrame."""

    def frame(self, query: Query) -> Any:
        """Return the query's frame."""
        ...

    def columns(self, query: Query) -> RowType:
        """Return the query's columns, without running anything."""
        ...

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a frame, in the values that streams have."""
        ...

    def write_files(self, frame: Any, path: str, format: str, options: Mapping[str, str]) -> None:
        """Add a frame's rows to the files of a directory."""
        ...

    def explain(self, query: Query) -> str:
        """Return Spark's plan of the query as text."""
        ...


def check_bounded(program: Program) -> None:
    """Refuse a stream that may never end."""
    source = _endless_source(program)
    if source is not None:
        raise GraphError(
            f"A query reads the stream of '{source.name}', which may never end: bound it, or compute with "
            "the DataStream."
        )


def is_endless(query: Query) -> bool:
    """Whether a query reads a stream that may never end."""
    return any(
        is_endless(view.query)
        if isinstance(view, QueryView)
        else isinstance(view, StreamView) and _endless_source(view.program) is not None
        for view in query.views.values()
    )


def _endless_source(program: Program) -> Transformation | None:
    sources = with_inputs(program.transformations)
    return next((each for each in sources if each.boundedness is Boundedness.CONTINUOUS_UNBOUNDED), None)
