"""The splits of a query, which are ranges of a column's values, and the reader that reads one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.exc import DBAPIError

from rekindle.datastream.connectors.base import SourceReader, SourceSplit
from rekindle.datastream.connectors.jdbc.database import Database, RowValues
from rekindle.datastream.connectors.jdbc.database_errors import Fault, fault_of
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.jdbc.settings import JdbcSourceSettings
from rekindle.datastream.connectors.jdbc.statements import table_of
from rekindle.errors import ConnectorError


@dataclass(frozen=True)
class RangePosition:
    """A range of values, and how far it is read.

    The first range has no lower bound and the last one no upper bound: bounds say how to share, and leave out nothing.
    """

    lower: Any = None
    upper: Any = None
    #: The value of the last row that was read, and how many rows with this value were read.
    last: Any = None
    seen: int = 0

    def plain(self) -> tuple[Any, ...]:
        """The position as plain data."""
        return (self.lower, self.upper, self.last, self.seen)

    def after(self, values: Sequence[Any]) -> RangePosition:
        """The position after more rows, whose column has these values.

        >>> RangePosition(seen=2, last=7).after([7, 7, 8, 8])
        RangePosition(lower=None, upper=None, last=8, seen=2)
        >>> RangePosition(seen=2, last=7).after([7])
        RangePosition(lower=None, upper=None, last=7, seen=3)
        """
        last = values[-1]
        equal = 0
        for value in reversed(values):
            if value != last:
                break
            equal += 1
        before = self.seen if equal == len(values) and self.seen and self.last == last else 0
        return replace(self, last=last, seen=before + equal)


def ranges_of(lower: Any, upper: Any, count: int) -> list[RangePosition]:
    """Return up to `count` ranges of about the same width.

    >>> [(each.lower, each.upper) for each in ranges_of(0, 9, 3)]
    [(None, 3), (3, 6), (6, None)]
    >>> [(each.lower, each.upper) for each in ranges_of(None, None, 3)]
    [(None, None)]
    """
    if lower is None or upper is None or count < 2:
        return [RangePosition()]
    try:
        width = upper - lower
        steps = [width * n // count if isinstance(width, int) else width * n / count for n in range(1, count)]
        edges = sorted({lower + step for step in steps} - {lower})
    except TypeError as error:
        raise ConnectorError(
            f"A partition column holds numbers, dates or timestamps: {lower!r} to {upper!r} cannot be shared."
        ) from error
    return [RangePosition(begin, end) for begin, end in zip([None, *edges], [*edges, None], strict=True)]


def range_query(
    sql: str, column: str | None, position: RangePosition, ordered: Callable[[str, str | None], str]
) -> tuple[str, list[Any]]:
    """Return a query for the rows of a range from its position on, and its parameters; the column comes first in a row.

    Of rows with the last value all are returned: the reader leaves out as many as it has seen.
    """
    query = bare_query(sql)
    order = ordered(query, column)
    if column is None:
        return f"SELECT * FROM ({query}) rekindle_rows {order}", []
    conditions, parameters = [], []
    begin = position.last if position.seen and position.last is not None else position.lower
    if begin is not None:
        conditions.append(f"{column} >= ?")
        parameters.append(begin)
    if position.upper is not None:
        # Rows without a value belong to the first range, before all others.
        conditions.append(f"{column} < ?" if begin is not None else f"({column} < ? OR {column} IS NULL)")
        parameters.append(position.upper)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    return f"SELECT {column}, rekindle_rows.* FROM ({query}) rekindle_rows {where}{order}", parameters


def bounds_query(sql: str, column: str) -> str:
    """Return the query for the least and the greatest value of a column."""
    return f"SELECT MIN({column}), MAX({column}) FROM ({bare_query(sql)}) rekindle_rows"


def bare_query(sql: str) -> str:
    """Return a query without the semicolon at its end.

    >>> bare_query("SELECT 1 ; ")
    'SELECT 1'
    """
    return sql.strip().rstrip(";").strip()


class JdbcReader(SourceReader[Any]):
    """Reads splits, and knows after each batch which rows were returned."""

    def __init__(self, settings: JdbcSourceSettings, splits: list[SourceSplit]) -> None:
        self._settings = settings
        self._database = Database(settings.connection)
        self._session = DatabaseSession(self._database, settings.max_retries)
        self._record = settings.record_maker()
        self._splits = [(split.split_id, RangePosition(*split.position)) for split in splits]
        self._pieces: Iterator[list[RowValues]] | None = None
        self._left: list[RowValues] = []
        self._to_skip = 0

    def poll(self, max_records: int) -> list[Any] | None:
        """Return the next rows of the split that is being read."""
        while self._splits:
            rows = self._next(max_records)
            if rows:
                return self._returned(rows)
            self._splits.pop(0)
            self._forget_query()
        return None

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Return the splits that are not at their end."""
        return [SourceSplit(name, position.plain()) for name, position in self._splits]

    def close(self) -> None:
        """End the query and close the connection."""
        self._forget_query()
        self._session.close()

    def _returned(self, rows: list[RowValues]) -> list[Any]:
        """Make the records of rows, and move the position behind them."""
        name, position = self._splits[0]
        record = self._record
        if self._settings.partition_column is None:
            self._splits[0] = name, position.after([None] * len(rows))
            return [record(row) for row in rows]
        self._splits[0] = name, position.after([row[0] for row in rows])
        return [record(row[1:]) for row in rows]

    def _next(self, max_records: int) -> list[RowValues]:
        """The next rows of the first split; none at its end. A lost connection is opened again, and its query."""
        tries = 0
        while True:
            try:
                return self._read(max_records)
            except DBAPIError as error:
                self._forget_query()
                self._session.close()
                fault = fault_of(error)
                if fault is Fault.REFUSED or tries >= self._settings.max_retries:
                    raise self._database.told(error, f"read table '{table_of(self._settings.sql)}'") from error
                tries += 1

    def _read(self, max_records: int) -> list[RowValues]:
        if self._pieces is None:
            self._begin_query()
        assert self._pieces is not None
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return []
            skipped = min(self._to_skip, len(piece))
            self._to_skip -= skipped
            self._left = piece[skipped:]
        rows, self._left = self._left[:max_records], self._left[max_records:]
        return rows

    def _begin_query(self) -> None:
        settings, (_, position) = self._settings, self._splits[0]
        sql, parameters = range_query(settings.sql, settings.partition_column, position, self._database.ordered)
        connection = self._session.open()
        self._pieces = self._database.stream(connection, sql, parameters, settings.fetch_size)
        self._to_skip = position.seen

    def _forget_query(self) -> None:
        self._pieces, self._left = None, []
