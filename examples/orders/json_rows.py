"""Results as rows of tables: the JSON of a result, and a name that is the same whenever the result is made again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from examples.orders.records import OrderBatch
from rekindle.datastream.connectors import (
    Committer,
    CommitterInitContext,
    Sink,
    SinkWriter,
    SupportsCommitter,
    WriterInitContext,
)

_encode = msgspec.json.Encoder(order="deterministic").encode


def json_of(result: Any) -> bytes:
    """The JSON of a result.

    >>> from examples.orders.records import LowStock
    >>> json_of(LowStock("product-1", 9, "order-7", 1000))
    b'{"product_id":"product-1","level":9,"order_id":"order-7","timestamp_ms":1000}'
    """
    return _encode(result)


def name_of(stream: str, json: bytes) -> bytes:
    """The name of a result in a table of all streams: equal results have equal names.

    >>> name_of("stock", b"{}")
    b'stock/44136fa355b3678a'
    """
    return f"{stream}/{hashlib.sha256(json).hexdigest()[:16]}".encode()


def single_results(result: Any) -> Iterator[Any]:
    """The result itself, or the events of a batch: after a restart the same events are in other batches."""
    if isinstance(result, OrderBatch):
        yield from result.events
    else:
        yield result


class ConvertingSink(Sink[Any], SupportsCommitter[Any]):
    """Passes converted records to another sink, which commits."""

    def __init__(self, sink: Any, convert: Callable[[Any], Any]) -> None:
        self._sink = sink
        self._convert = convert

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """The other sink's writer, before which records are converted."""
        writer, convert = self._sink.create_writer(context), self._convert
        write = writer.write
        writer.write = lambda element, context: write(convert(element), context)
        return writer  # type: ignore[no-any-return]

    def create_committer(self, context: CommitterInitContext) -> Committer[Any]:
        """The other sink's committer."""
        return self._sink.create_committer(context)  # type: ignore[no-any-return]
