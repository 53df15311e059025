"""`HBaseSource`: a bounded source over the rows of a table, split by ranges of row keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.hbase.key_ranges import KeyRange, prefix_range
from rekindle.datastream.connectors.hbase.reader import HBaseReader
from rekindle.datastream.connectors.hbase.table_scan import TableScan
from rekindle.datastream.connectors.hbase.thrift_calls import ThriftCalls
from rekindle.datastream.connectors.hbase.thrift_settings import (
    ThriftOptions,
    ThriftSettings,
    column_names,
    whole_number,
)
from rekindle.errors import GraphError

T = TypeVar("T")


def _pair(row: bytes, cells: dict[bytes, bytes]) -> Any:
    return (row, cells)


@dataclass(frozen=True)
class HBaseSourceSettings:
    """The settings of an HBase source, as its builder collects them."""

    thrift: ThriftSettings
    scan: TableScan
    rows: KeyRange
    #: Where the range is split; None: where the table's regions begin.
    split_keys: tuple[bytes, ...] | None = None
    decoder: Callable[[bytes, dict[bytes, bytes]], Any] = _pair


class HBaseSource(Source[T], Generic[T]):
    """Reads a table once, in ranges of row keys. Make one with `HBaseSource.builder()`; see `docs/guide/hbase.md`.

    >>> source = (
    ...     HBaseSource.builder()
    ...     .set_thrift_servers("localhost:9090")
    ...     .set_table("orders")
    ...     .set_columns([b"f:state"])
    ...     .set_decoder(lambda row, cells: (row.decode(), cells[b"f:state"].decode()))
    ...     .build()
    ... )
    >>> source, source.boundedness().name
    (<HBaseSource of orders at localhost:9090>, 'BOUNDED')
    """

    returns_fresh_records = True

    def __init__(self, settings: HBaseSourceSettings) -> None:
        """Do not call directly: use `HBaseSource.builder()`."""
        self._settings = settings

    def __repr__(self) -> str:
        return f"<HBaseSource of {self._settings.scan.table} at {self._settings.thrift.place}>"

    @staticmethod
    def builder() -> HBaseSourceBuilder:
        """Return a builder of a source."""
        return HBaseSourceBuilder()

    def boundedness(self) -> Boundedness:
        """Return BOUNDED: the source ends with the table's last row."""
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return the ranges between the split keys, or between the boundaries of regions, as they are now."""
        settings, calls = self._settings, ThriftCalls(self._settings.thrift)
        table = settings.scan.table
        try:
            calls.families(table, starting=True)
            keys = settings.split_keys
            if keys is None:
                regions = calls.call(lambda each: each.table(table).regions(), f"list the regions of '{table}'", table)
                keys = tuple(region["start_key"] for region in regions)
        finally:
            calls.close()
        ranges = settings.rows.cut(keys)
        return [SourceSplit(f"{table}-{each.start.hex()}", (each.start, each.stop, None)) for each in ranges]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader of these ranges."""
        settings = self._settings
        return HBaseReader(ThriftCalls(settings.thrift), settings.scan, settings.decoder, splits, context.wake_up)


class HBaseSourceBuilder(ThriftOptions):
    """Builds an `HBaseSource`: Thrift servers and a table are required.

    >>> HBaseSource.builder().set_table("orders").build()
    Traceback (most recent call last):
        ...
    rekindle.errors.GraphError: An HBase source needs Thrift servers: call set_thrift_servers().
    """

    def __init__(self) -> None:
        """Begin without settings."""
        super().__init__()
        self._rows = KeyRange()
        self._scan: dict[str, Any] = {}
        self._set: dict[str, Any] = {}

    # -- what is read -------------------------------------------------------------------------------------------------

    def set_row_range(self, start: bytes = b"", stop: bytes = b"") -> HBaseSourceBuilder:
        """Read the rows from `start` to before `stop`; without one of them, from the first or to the last."""
        if not isinstance(start, bytes) or not isinstance(stop, bytes) or (stop and stop <= start):
            raise GraphError(f"set_row_range() takes two row keys in order, as bytes, not {start!r} and {stop!r}.")
        self._rows = KeyRange(start, stop)
        return self

    def set_row_prefix(self, prefix: bytes) -> HBaseSourceBuilder:
        """Read the rows whose keys begin with these bytes."""
        if not isinstance(prefix, bytes) or not prefix:
            raise GraphError(f"set_row_prefix() takes the beginning of row keys, as bytes, not {prefix!r}.")
        self._rows = prefix_range(prefix)
        return self

    def set_columns(self, columns: Iterable[bytes]) -> HBaseSourceBuilder:
        """Set the columns, such as b"f:name", or families, such as b"f", that are read; without it, all."""
        self._scan["columns"] = column_names(columns)
        return self

    def set_filter(self, expression: str) -> HBaseSourceBuilder:
        """Set a filter in HBase's filter language, such as "PrefixFilter('2026')"."""
        if not isinstance(expression, str) or not expression:
            raise GraphError(f"set_filter() takes an expression in HBase's filter language, not {expression!r}.")
        self._scan["filter"] = expression
        return self

    def set_split_keys(self, keys: Iterable[bytes]) -> HBaseSourceBuilder:
        """Set the row keys at which the table is split; without it, the boundaries of its regions."""
        wanted = tuple(keys)
        if not all(isinstance(each, bytes) and each for each in wanted):
            raise GraphError(f"set_split_keys() takes row keys, as bytes, not {wanted!r}.")
        self._set["split_keys"] = wanted
        return self

    def set_decoder(self, decoder: Callable[[bytes, dict[bytes, bytes]], Any]) -> HBaseSourceBuilder:
        """Set the function of (row key, cells) that returns a record; without it, records are such pairs."""
        if not callable(decoder):
            raise GraphError(f"set_decoder() takes a function of row key and cells, not {decoder!r}.")
        self._set["decoder"] = decoder
        return self

    # -- how it is read -----------------------------------------------------------------------------------------------

    def set_rows_per_call(self, rows: int) -> HBaseSourceBuilder:
        """Set how many rows come with one call (1000)."""
        self._scan["rows_per_call"] = whole_number("set_rows_per_call", rows, 1)
        return self

    def build(self) -> HBaseSource[Any]:
        """Return the source."""
        thrift = self._thrift_settings("source")
        scan = TableScan(self._table, **self._scan)
        return HBaseSource(HBaseSourceSettings(thrift, scan, self._rows, **self._set))
