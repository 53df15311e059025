"""The splits of a query: ranges of a column's values, and the query that reads one from a position on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
        return f"SELECT * FROM ({query}) AS rekindle_rows {order}", []
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
    return f"SELECT {column}, rekindle_rows.* FROM ({query}) AS rekindle_rows {where}{order}", parameters


def bounds_query(sql: str, column: str) -> str:
    """Return the query for the least and the greatest value of a column."""
    return f"SELECT MIN({column}), MAX({column}) FROM ({bare_query(sql)}) AS rekindle_rows"


def bare_query(sql: str) -> str:
    """Return a query without the semicolon at its end.

    >>> bare_query("SELECT 1 ; ")
    'SELECT 1'
    """
    return sql.strip().rstrip(";").strip()
