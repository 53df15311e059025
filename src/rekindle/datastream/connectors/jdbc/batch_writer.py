"""The at-least-once writer: rows are written in batches, and none is pending when a checkpoint counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from rekindle.datastream.connectors.jdbc.bulk_insert import BulkInsert
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.datastream.connectors.jdbc.database_session import DatabaseSession
from rekindle.datastream.connectors.jdbc.refused_value import refused_value
from rekindle.datastream.connectors.jdbc.settings import JdbcSinkSettings
from rekindle.datastream.connectors.sink_api import SinkWriter


class BatchWriter(SinkWriter[Any]):
    """Writes a batch when it is full, when it is old, and at every barrier; each batch is one transaction."""

    def __init__(self, settings: JdbcSinkSettings, session: DatabaseSession, bulk: BulkInsert | None = None) -> None:
        self._settings = settings
        self._session = session
        self._bulk = bulk
        self._values = settings.reader()
        self._batch_size = settings.execution.batch_size
        self._pending: list[RowValues] = []
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        interval_ms = settings.execution.batch_interval_ms
        self._clockwork = Clockwork(interval_ms / 1000, self._flush_in_background) if interval_ms else None

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        """Add a row to the batch."""
        row = self._values(element)
        with self._lock:
            self._raise_failure()
            self._pending.append(row)
            if len(self._pending) >= self._batch_size:
                self._write_pending()

    def flush(self, end_of_input: bool) -> None:
        """Write all rows: one that the database refuses fails here, before the checkpoint counts."""
        with self._lock:
            self._raise_failure()
            self._write_pending()

    def _write_pending(self) -> None:
        rows, settings, database = self._pending, self._settings, self._session.database
        if rows:
            self._session.transaction(
                lambda connection: self._write(connection, rows),
                f"write {len(rows)} rows into {settings.target}",
                lambda connection: refused_value(database, connection, settings.sql, rows),
            )
            self._pending = []

    def _write(self, connection: Connection, rows: list[RowValues]) -> None:
        if self._bulk is None or not self._bulk.ready:
            self._session.database.execute_many(connection, self._settings.sql, rows)
            return
        self._bulk.clear(connection)
        self._bulk.load(connection, rows)
        self._bulk.insert(connection)

    def _flush_in_background(self) -> None:
        """Write what waits; an error is kept, and the next call raises it."""
        with self._lock:
            if self._failure is None:
                try:
                    self._write_pending()
                except Exception as error:
                    self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Stop the clockwork and close the connection; rows since the last barrier will come again."""
        if self._clockwork is not None:
            self._clockwork.stop()
        self._session.close()


class Clockwork:
    """Calls a function again and again, on a thread of its own."""

    def __init__(self, interval_s: float, call: Callable[[], None]) -> None:
        self._stopped = threading.Event()
        self._interval_s = interval_s
        self._call = call
        self._thread = threading.Thread(target=self._run, name="rekindle-jdbc-flush", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            self._call()

    def stop(self) -> None:
        """Stop; returns when no call is under way."""
        self._stopped.set()
        self._thread.join()
