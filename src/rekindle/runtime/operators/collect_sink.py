"""The sink of `execute_and_collect` and `to_dataframe`: its chunks travel to the driver as chunks of the Spark job."""

from __future__ import annotations

from typing import Any

from rekindle.datastream.operator_details import CollectDetails
from rekindle.graph.nodes import OperatorNode
from rekindle.protocol import TO_DRIVER
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.exchange.chunk import encode_body, encode_chunk
from rekindle.runtime.exchange.outbox import Outbox
from rekindle.runtime.operators.base import Operator
from rekindle.serde import ChunkCodec


class CollectOperator(Operator):
    """Encodes batches for the driver; a chunk's header holds the node's id in place of an edge's."""

    def __init__(self, node: OperatorNode, context: OperatorContext, codec: ChunkCodec, outbox: Outbox) -> None:
        super().__init__(node, context)
        self._codec = codec
        self._outbox = outbox
        self._sequence = 0
        self._with_timestamps = node.described_as(CollectDetails).with_timestamps

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        self.records_sunk += len(records)
        body = encode_body(records, timestamps if self._with_timestamps else None, [], self._codec)
        chunk = encode_chunk(self.node.id, self.context.subtask, 0, self._sequence, body)
        self._outbox.put(TO_DRIVER, chunk)
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
