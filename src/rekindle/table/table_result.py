"""`TableResult`: the result of `execute_sql`, `execute` and `execute_insert`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rekindle.common.data_types import RowType
from rekindle.common.job_client import JobClient
from rekindle.common.types import Row, make_row
from rekindle.table.row_text import table_text
from rekindle.table.schema import Schema

__all__ = ["TableResult"]


class TableResult:
    """The rows of a query, or the job of an insertion."""

    def __init__(
        self,
        row_type: RowType,
        rows: Callable[[], Sequence[tuple[Any, ...]]],
        job: JobClient | None = None,
        plain: bool = False,
    ) -> None:
        self._row_type = row_type
        self._make_rows = rows
        self._rows: Sequence[tuple[Any, ...]] | None = None
        self._job = job
        self._plain = plain

    def get_job_client(self) -> JobClient | None:
        """Return the client of the job; None for what Spark's SQL has done itself."""
        return self._job

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait for the end."""
        if self._job is not None:
            self._job.get_job_execution_result().result()
        self._fetched()

    def get_table_schema(self) -> Schema:
        """Return the columns of the rows."""
        return Schema(self._row_type)

    get_resolved_schema = get_table_schema

    def collect(self) -> CloseableRows:
        """Return an iterator over the rows."""
        names = self._row_type.field_names()
        return CloseableRows(iter([make_row(names, list(values)) for values in self._fetched()]))

    def print(self) -> None:
        """Print the rows as a table."""
        rows = self._fetched()
        if self._plain:
            print("OK" if not self._row_type.fields else "\n".join(str(values[0]) for values in rows))
            return
        print(table_text(self._row_type.field_names(), rows))

    def _fetched(self) -> Sequence[tuple[Any, ...]]:
        if self._rows is None:
            self._rows = self._make_rows()
        return self._rows


class CloseableRows(Iterator[Row]):
    """Iterates over rows; to be used in a `with` statement, as PyFlink's."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows

    def __next__(self) -> Row:
        return next(self._rows)

    def __enter__(self) -> CloseableRows:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Return no more rows."""
        self._rows = iter(())
