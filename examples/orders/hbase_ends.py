"""HBase as the sink of the job: one table for all streams, a row per result.

A result that is made again after a failure has the same row, so that the table is as if nothing had failed. Batches are
written event by event: which events are in a batch depends on when it was full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from examples.orders.json_rows import json_of, name_of, single_results
from examples.orders.settings import Settings
from rekindle.datastream.connectors import Sink
from rekindle.datastream.connectors.hbase import HBaseSink, Put

FAMILY = "r"
_COLUMN = b"r:result"
_SCAN_BATCH = 1000


def hbase_sink(settings: Settings, stream: str) -> Sink[Any]:
    """A sink that writes a stream's results, each effectively once."""
    return (
        HBaseSink.builder()
        .set_thrift_servers(settings.thrift)
        .set_table(settings.table)
        .set_converter(_puts(stream))
        .build()
    )


def _puts(stream: str) -> Callable[[Any], list[Put]]:
    def puts(result: Any) -> list[Put]:
        rows = map(json_of, single_results(result))
        return [Put(name_of(stream, json), {_COLUMN: json}) for json in rows]

    return puts


def create_table(settings: Settings) -> None:
    """Make the table, unless it is there. A server that does not answer is the job's business: it says so."""
    from thriftpy2.transport import TTransportException

    try:
        connection = _connection(settings)
    except TTransportException:
        return
    try:
        if settings.table.encode() not in connection.tables():
            connection.create_table(settings.table, {FAMILY: {"max_versions": 1}})
    finally:
        connection.close()


def hbase_rows(settings: Settings, stream: str) -> Iterator[Any]:
    """Every result of a stream that is in the table; an event of a batch comes as a batch of one."""
    connection = _connection(settings)
    try:
        rows = connection.table(settings.table).scan(row_prefix=f"{stream}/".encode(), batch_size=_SCAN_BATCH)
        for _, cells in rows:
            result = msgspec.json.decode(cells[_COLUMN])
            yield {"events": [result]} if stream == "batches" else result
    finally:
        connection.close()


def _connection(settings: Settings) -> Any:
    import happybase

    host, _, port = settings.thrift.partition(",")[0].partition(":")
    return happybase.Connection(host, int(port or 9090))
