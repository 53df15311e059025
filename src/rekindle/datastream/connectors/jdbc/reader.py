"""The reader of a JDBC source: it reads its ranges one after the other, each with an ordered query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rekindle.datastream.connectors.base import SourceReader, SourceSplit
from rekindle.datastream.connectors.jdbc.column_ranges import RangePosition, range_query
from rekindle.datastream.connectors.jdbc.database import Fault, RowValues, database_of
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.jdbc.insert_shape import table_of
from rekindle.datastream.connectors.jdbc.source_settings import JdbcSourceSettings


class JdbcReader(SourceReader[Any]):
    """Reads splits, and knows after each batch which rows were returned."""

    def __init__(self, settings: JdbcSourceSettings, splits: list[SourceSplit]) -> None:
        self._settings = settings
        self._database = database_of(settings.connection)
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
            except self._database.errors as error:
                self._forget_query()
                self._session.close()
                fault = self._database.fault_of(error)
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
