"""Scans a range of a table in calls of limited size. No scanner stays open between calls, so none can time out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rekindle.datastream.connectors.hbase.key_ranges import following
from rekindle.datastream.connectors.hbase.thrift_calls import ThriftCalls

Row = tuple[bytes, dict[bytes, bytes]]


@dataclass(frozen=True)
class TableScan:
    """The scan of a table: the columns that are read of each row, and the number of rows at a time."""

    table: str
    columns: tuple[bytes, ...] | None = None
    filter: str | None = None
    rows_per_call: int = 1000

    def chunks(self, calls: ThriftCalls, start: bytes, stop: bytes) -> Iterator[list[Row]]:
        """Return the rows from `start` to before `stop`, a call's worth at a time."""
        while True:
            rows = calls.call(
                lambda connection, start=start: self._once(connection, start, stop),  # type: ignore[misc]
                f"scan table '{self.table}'",
                self.table,
            )
            if rows:
                yield rows
            if len(rows) < self.rows_per_call:
                return
            start = following(rows[-1][0])

    def _once(self, connection: Any, start: bytes, stop: bytes) -> list[Row]:
        return list(
            connection.table(self.table).scan(
                row_start=start or None,
                row_stop=stop or None,
                columns=self.columns,
                filter=self.filter,
                limit=self.rows_per_call,
                batch_size=self.rows_per_call,
            )
        )
