"""The writer of an HBase sink: converts records, checks and buffers mutations, and drains the buffer at barriers."""

from __future__ import annotations

from typing import Any

from rekindle.clock import SystemClock
from rekindle.datastream.connectors.hbase.background_flush import BackgroundFlush
from rekindle.datastream.connectors.hbase.cell_timestamps import TimestampMode, base_of
from rekindle.datastream.connectors.hbase.flush_calls import FlushCalls
from rekindle.datastream.connectors.hbase.mutations import MutationCheck, converting, family_of
from rekindle.datastream.connectors.hbase.sink_settings import HBaseSinkSettings
from rekindle.datastream.connectors.hbase.thrift_calls import ThriftCalls
from rekindle.datastream.connectors.sink_api import SinkWriter, WriterInitContext
from rekindle.errors import ConnectorError


class HBaseWriter(SinkWriter[Any]):
    """Writes the records of one subtask. Everything before a barrier is in HBase when `flush` returns."""

    def __init__(self, settings: HBaseSinkSettings, context: WriterInitContext) -> None:
        self._settings = settings
        self._table = settings.table
        self._convert = converting(settings.converter)
        self._check = MutationCheck(self._check_family)
        self._event_time = settings.mode is TimestampMode.EVENT_TIME
        self._calls = ThriftCalls(settings.thrift)
        self._families: dict[str, frozenset[bytes]] = {}
        try:
            self._look_up(settings.table, starting=True)
        except BaseException:
            self._calls.close()
            raise
        # Outside a job there is no claim: then this machine's clock is all there is.
        base = base_of(context.claimed_ms or SystemClock().wall_ms())
        interval_s = settings.interval_ms / 1000 if settings.interval_ms else None
        sender = FlushCalls(settings, self._calls, base)
        self._flush = BackgroundFlush(sender.send, settings.max_mutations, settings.max_bytes, interval_s)
        if context.metric_group is not None:
            context.metric_group.gauge("numMutationsConfirmed", lambda: sender.confirmed)

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        """Buffer the record's mutations; an error of an earlier flush is raised here."""
        converted = self._convert(element)
        if converted is None:
            return
        timestamp = self._timestamp(context) if self._event_time else None
        for mutation in converted if isinstance(converted, list | tuple) else (converted,):
            self._check(mutation, self._table)
            self._flush.add(mutation, self._table, timestamp)

    def flush(self, end_of_input: bool) -> None:
        """Send what is buffered, until HBase has confirmed everything."""
        self._flush.drain()

    def close(self) -> None:
        """End the thread and the connections. A call that is under way is cut off."""
        self._calls.close()
        self._flush.close()

    def _timestamp(self, context: SinkWriter.Context) -> int:
        timestamp = context.timestamp()
        if timestamp is None:
            raise ConnectorError(
                f"A record for HBase table '{self._settings.table}' has no timestamp, but the sink writes cells with "
                "event time: assign timestamps with a WatermarkStrategy, or choose another TimestampMode."
            )
        if timestamp < 0:
            raise ConnectorError(
                f"A record for HBase table '{self._settings.table}' has the timestamp {timestamp}: HBase takes no "
                "cells from before 1970."
            )
        return timestamp

    def _check_family(self, table: str, column: bytes, row: bytes) -> None:
        """Refuse a column whose family the table does not have, with the record at hand."""
        family = family_of(column)
        # A family that is not there is asked for again: somebody may have added it meanwhile.
        if family not in self._families.get(table, ()) and family not in self._look_up(table):
            has = ", ".join(sorted(f"'{each.decode(errors='replace')}'" for each in self._families[table]))
            raise ConnectorError(
                f"Column {column!r} of row {row!r} has no place in HBase: table '{table}' at "
                f"{self._settings.thrift.place} has the column families {has}; add the family, or correct the "
                "converter."
            )

    def _look_up(self, table: str, *, starting: bool = False) -> frozenset[bytes]:
        self._families[table] = found = self._calls.families(table, starting=starting)
        return found
