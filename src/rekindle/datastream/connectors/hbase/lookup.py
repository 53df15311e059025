"""`HBaseLookup`: an async function that enriches elements with rows of a table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rekindle.common.time import as_millis
from rekindle.datastream.connectors.hbase.batched_lookups import BatchedLookups, Cells
from rekindle.datastream.connectors.hbase.lookup_cache import LookupCache
from rekindle.datastream.connectors.hbase.mutations import family_of
from rekindle.datastream.connectors.hbase.thrift_calls import ThriftCalls
from rekindle.datastream.connectors.hbase.thrift_settings import (
    ThriftOptions,
    ThriftSettings,
    column_names,
    whole_number,
)
from rekindle.datastream.functions.async_function import AsyncFunction
from rekindle.errors import ConnectorError, GraphError


def _pair(value: Any, cells: Cells) -> list[Any]:
    return [(value, cells)]


@dataclass(frozen=True)
class LookupSettings:
    """The settings of an HBase lookup, as its builder collects them."""

    thrift: ThriftSettings
    table: str
    row_key: Callable[[Any], bytes]
    columns: tuple[bytes, ...] | None = None
    result: Callable[[Any, Cells], Iterable[Any]] = _pair
    max_cached_rows: int = 10_000
    #: None: without an end.
    cache_ttl_s: float | None = 60.0
    connections: int = 4
    max_rows_per_call: int = 200


class HBaseLookup(AsyncFunction[Any, Any]):
    """Looks up a row for each element; use it with `AsyncDataStream`. Make one with `HBaseLookup.builder()`.

    Rows are cached, and those that are asked for at the same time come with one call. A row that HBase does not have
    is an empty dict, and is cached too.

    >>> lookup = (
    ...     HBaseLookup.builder()
    ...     .set_thrift_servers("localhost:9090")
    ...     .set_table("customers")
    ...     .set_row_key(lambda order: order["customer"].encode())
    ...     .set_columns([b"f:name"])
    ...     .set_result(lambda order, cells: [(order["id"], cells.get(b"f:name", b"?").decode())])
    ...     .build()
    ... )
    >>> lookup
    HBaseLookup(localhost:9090, table='customers')
    """

    def __init__(self, settings: LookupSettings) -> None:
        """Do not call directly: use `HBaseLookup.builder()`."""
        self._settings = settings

    def __repr__(self) -> str:
        return f"HBaseLookup({self._settings.thrift.place}, table={self._settings.table!r})"

    @staticmethod
    def builder() -> HBaseLookupBuilder:
        """Return a builder without settings."""
        return HBaseLookupBuilder()

    async def open(self, runtime_context: Any) -> None:
        """Find the table, and begin with an empty cache."""
        settings = self._settings
        self._calls = ThriftCalls(settings.thrift)
        await asyncio.to_thread(self._check_table)
        cache = LookupCache(settings.max_cached_rows, settings.cache_ttl_s)
        self._lookups = BatchedLookups(self._fetch, cache, settings.connections, settings.max_rows_per_call)
        metrics = runtime_context.get_metrics_group() if runtime_context is not None else None
        if metrics is not None:
            for name, read in (
                ("hitCount", lambda: self._lookups.hits),
                ("missCount", lambda: self._lookups.misses),
                ("loadCount", lambda: self._lookups.calls),
                ("numCachedRecord", lambda: len(cache)),
            ):
                metrics.gauge(name, read)

    async def async_invoke(self, value: Any) -> list[Any]:
        """Return the results for an element."""
        row = self._settings.row_key(value)
        if type(row) is not bytes or not row:
            raise ConnectorError(
                f"The row key for a lookup in HBase table '{self._settings.table}' is {row!r}: return bytes, at least "
                "one, from the function of set_row_key()."
            )
        return list(self._settings.result(value, await self._lookups.get(row)))

    async def close(self) -> None:
        """End the connections."""
        if hasattr(self, "_lookups"):
            self._lookups.close()
        if hasattr(self, "_calls"):
            self._calls.close()

    def _check_table(self) -> None:
        settings = self._settings
        families = self._calls.families(settings.table, starting=True)
        for column in settings.columns or ():
            if family_of(column) not in families:
                has = ", ".join(sorted(f"'{each.decode(errors='replace')}'" for each in families))
                raise ConnectorError(
                    f"HBase table '{settings.table}' at {settings.thrift.place} has no family for column {column!r}: "
                    f"its column families are {has}; correct set_columns()."
                )

    def _fetch(self, rows: list[bytes]) -> dict[bytes, Cells]:
        settings = self._settings
        found = self._calls.call(
            lambda connection: connection.table(settings.table).rows(rows, settings.columns),
            f"look up {len(rows)} rows of table '{settings.table}'",
            settings.table,
        )
        return dict(found)


class HBaseLookupBuilder(ThriftOptions):
    """Builds an `HBaseLookup`: Thrift servers, a table and a function for the row's key are required.

    >>> HBaseLookup.builder().set_cache(max_rows=-1)
    Traceback (most recent call last):
        ...
    rekindle.errors.GraphError: set_cache() takes a whole number of 0 or more, not -1.
    """

    def __init__(self) -> None:
        """Begin without settings."""
        super().__init__()
        self._row_key: Callable[[Any], bytes] | None = None
        self._set: dict[str, Any] = {}

    def set_row_key(self, row_key: Callable[[Any], bytes]) -> HBaseLookupBuilder:
        """Set the function that returns the row's key for an element."""
        if not callable(row_key):
            raise GraphError(f"set_row_key() takes a function of the element, not {row_key!r}.")
        self._row_key = row_key
        return self

    def set_columns(self, columns: Iterable[bytes]) -> HBaseLookupBuilder:
        """Set the columns, such as b"f:name", or families, such as b"f", that are read; without it, all."""
        self._set["columns"] = column_names(columns)
        return self

    def set_result(self, result: Callable[[Any, Cells], Iterable[Any]]) -> HBaseLookupBuilder:
        """Set the function of (element, cells) that returns a list of results; without it, one such pair."""
        if not callable(result):
            raise GraphError(f"set_result() takes a function of element and cells, not {result!r}.")
        self._set["result"] = result
        return self

    def set_cache(self, max_rows: int = 10_000, ttl: Any = None) -> HBaseLookupBuilder:
        """Set how many rows of a subtask are kept (0: none), and for how long (a `Duration`; None: no limit).

        Without this method, 10,000 rows for a minute.
        """
        self._set["max_cached_rows"] = whole_number("set_cache", max_rows, 0)
        self._set["cache_ttl_s"] = None if ttl is None else as_millis(ttl) / 1000
        return self

    def set_connections(self, connections: int) -> HBaseLookupBuilder:
        """Set how many calls of a subtask may be under way at a time, each on its own connection (4)."""
        self._set["connections"] = whole_number("set_connections", connections, 1)
        return self

    def build(self) -> HBaseLookup:
        """Return the function."""
        thrift = self._thrift_settings("lookup")
        if self._row_key is None:
            raise GraphError("An HBase lookup needs the row's key: call set_row_key().")
        return HBaseLookup(LookupSettings(thrift, self._table, self._row_key, **self._set))
