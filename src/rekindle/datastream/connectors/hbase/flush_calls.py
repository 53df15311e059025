"""Sends the changes of one flush: per table the deletes, then the puts, each with a timestamp of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rekindle.datastream.connectors.hbase.cell_timestamps import TimestampMode, flush_timestamps
from rekindle.datastream.connectors.hbase.row_buffer import RowBuffer, RowChange
from rekindle.datastream.connectors.hbase.sink_settings import HBaseSinkSettings
from rekindle.datastream.connectors.hbase.thrift_calls import ThriftCalls

Rows = dict[bytes, RowChange]
#: The server's clock counts milliseconds, and a delete hides the puts of its own one.
_SERVER_TICK_S = 0.002


class FlushCalls:
    """Sends flushes one after the other. A flush that is sent again has the same timestamps."""

    def __init__(self, settings: HBaseSinkSettings, calls: ThriftCalls, base: int) -> None:
        self._settings = settings
        self._calls = calls
        self._base = base
        self._number = 0
        #: The number of mutations that HBase has confirmed, before they were coalesced.
        self.confirmed = 0
        self._last_delete = 0.0
        self._pause = threading.Event()

    def send(self, buffer: RowBuffer) -> None:
        """Send all changes of a buffer, and return when HBase has confirmed them."""
        fenced = flush_timestamps(self._base, self._number)
        self._number += 1
        for timestamp, tables in buffer.changes.items():
            deletes_at, puts_at = fenced if self._is_fenced else (timestamp, timestamp)
            for table, rows in tables.items():
                self._send_deletes(table, rows, deletes_at)
                self._send_puts(table, rows, puts_at)
        self.confirmed += len(buffer)

    @property
    def _is_fenced(self) -> bool:
        return self._settings.mode is TimestampMode.FENCED

    def _send_deletes(self, table: str, rows: Rows, timestamp: int | None) -> None:
        deleted = {row: change for row, change in rows.items() if change.has_deletes}
        if not deleted:
            return

        def fill(batch: Any) -> None:
            for row, change in deleted.items():
                batch.delete(row, None if change.deletes_row else list(change.deleted_columns))

        self._send(table, fill, timestamp, f"delete from {len(deleted)} rows of table '{table}'")
        self._last_delete = time.monotonic()

    def _send_puts(self, table: str, rows: Rows, timestamp: int | None) -> None:
        put = {row: change.puts for row, change in rows.items() if change.puts}
        if not put:
            return
        if self._settings.mode is TimestampMode.SERVER_TIME:
            self._pause.wait(max(0.0, self._last_delete + _SERVER_TICK_S - time.monotonic()))

        def fill(batch: Any) -> None:
            for row, columns in put.items():
                batch.put(row, columns)

        self._send(table, fill, timestamp, f"write {len(put)} rows of table '{table}'")

    def _send(self, table: str, fill: Callable[[Any], None], timestamp: int | None, doing: str) -> None:
        tries = 0

        def work(connection: Any) -> None:
            nonlocal tries
            target = connection.table(table)
            if tries:
                # The error of a batch into a table that is gone does not say so; this one does.
                target.families()
            tries += 1
            batch = target.batch(timestamp=timestamp, wal=self._settings.write_ahead_log)
            fill(batch)
            batch.send()

        self._calls.call(work, doing, table)
