"""The HBase sink and its builder."""

from __future__ import annotations

from typing import Any

from rekindle.common.time import as_millis
from rekindle.datastream.connectors.hbase.cell_timestamps import TimestampMode
from rekindle.datastream.connectors.hbase.mutations import converting
from rekindle.datastream.connectors.hbase.sink_settings import HBaseSinkSettings
from rekindle.datastream.connectors.hbase.thrift_settings import ThriftOptions, whole_number
from rekindle.datastream.connectors.hbase.writer import HBaseWriter
from rekindle.datastream.connectors.sink_api import Sink, SinkWriter, WriterInitContext
from rekindle.errors import GraphError


class HBaseSink(Sink[Any]):
    """Writes mutations into HBase's tables through Thrift servers. Make one with `HBaseSink.builder()`.

    Rows are in HBase when a checkpoint completes. In the mode `FENCED`, the default, a restart writes the same rows
    again with the same result: effectively once. The stream must be keyed by row, or have parallelism 1, and the
    program must be deterministic; see `docs/guide/hbase.md`.

    >>> from rekindle.datastream.connectors.hbase import Put
    >>> sink = (
    ...     HBaseSink.builder()
    ...     .set_thrift_servers("localhost:9090")
    ...     .set_table("orders")
    ...     .set_converter(lambda order: Put(order["id"].encode(), {b"f:state": order["state"].encode()}))
    ...     .build()
    ... )
    >>> sink
    HBaseSink(HBaseSinkSettings(localhost:9090, table='orders', FENCED))
    """

    def __init__(self, settings: HBaseSinkSettings) -> None:
        """Do not call directly: use `HBaseSink.builder()`."""
        self._settings = settings

    def __repr__(self) -> str:
        return f"HBaseSink({self._settings!r})"

    @staticmethod
    def builder() -> HBaseSinkBuilder:
        """Return a builder without settings."""
        return HBaseSinkBuilder()

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """Return a writer, after the table was found."""
        opened = getattr(self._settings.converter, "open", None)
        if callable(opened):
            opened()
        return HBaseWriter(self._settings, context)


class HBaseSinkBuilder(ThriftOptions):
    """Builds an `HBaseSink`: Thrift servers, a table and a converter are required.

    >>> HBaseSink.builder().set_table("orders").build()
    Traceback (most recent call last):
        ...
    rekindle.errors.GraphError: An HBase sink needs Thrift servers: call set_thrift_servers().
    """

    def __init__(self) -> None:
        """Begin without settings."""
        super().__init__()
        self._converter: Any = None
        self._set: dict[str, Any] = {}

    # -- what is written where ----------------------------------------------------------------------------------------

    def set_converter(self, converter: Any) -> HBaseSinkBuilder:
        """Set what turns a record into a `Put`, a `Delete`, a list of them, or None."""
        converting(converter)
        self._converter = converter
        return self

    def set_timestamp_mode(self, mode: TimestampMode) -> HBaseSinkBuilder:
        """Set which timestamps cells get; `FENCED` unless set."""
        if not isinstance(mode, TimestampMode):
            raise GraphError(f"set_timestamp_mode() takes a TimestampMode, not {mode!r}.")
        self._set["mode"] = mode
        return self

    # -- when it is written -------------------------------------------------------------------------------------------

    def set_buffer_flush_max_mutations(self, mutations: int) -> HBaseSinkBuilder:
        """Set how many mutations make a flush (1000)."""
        return self._number("set_buffer_flush_max_mutations", "max_mutations", mutations, 1)

    def set_buffer_flush_max_size_in_bytes(self, size: int) -> HBaseSinkBuilder:
        """Set how many bytes make a flush (2 MiB)."""
        return self._number("set_buffer_flush_max_size_in_bytes", "max_bytes", size, 1)

    def set_buffer_flush_interval(self, interval: Any) -> HBaseSinkBuilder:
        """Set how long a mutation waits at most, in milliseconds or as a `Duration` (1 second); 0: without a limit."""
        milliseconds = interval if isinstance(interval, int) else as_millis(interval)
        return self._number("set_buffer_flush_interval", "interval_ms", milliseconds, 0)

    def set_write_ahead_log(self, enabled: bool) -> HBaseSinkBuilder:
        """Set whether HBase writes its log first (True). Without it a crash of a region server loses rows."""
        self._set["write_ahead_log"] = bool(enabled)
        return self

    def build(self) -> HBaseSink:
        """Return the sink."""
        thrift = self._thrift_settings("sink")
        if self._converter is None:
            raise GraphError("An HBase sink needs a converter: call set_converter().")
        return HBaseSink(HBaseSinkSettings(thrift, self._table, self._converter, **self._set))

    def _number(self, method: str, name: str, value: Any, lowest: int) -> HBaseSinkBuilder:
        self._set[name] = whole_number(method, value, lowest)
        return self
