"""Branch 5: events are written in batches, by any sink; a partial batch survives a restart.

The partial batch is the state of the sink's writer. The engine keeps it as operator list state, one event per element:
it belongs to no key, is part of every checkpoint, and is redistributed over the writers at another parallelism.
"""

from __future__ import annotations

from typing import Any

from examples.orders.records import OrderBatch, OrderEvent
from rekindle.datastream.connectors import (
    Committer,
    CommitterInitContext,
    CommittingSinkWriter,
    Sink,
    SinkWriter,
    StatefulSinkWriter,
    SupportsCommitter,
    SupportsWriterState,
    TypedSerializer,
    WriterInitContext,
)


class BatchSink(Sink[OrderEvent], SupportsWriterState[OrderEvent, OrderEvent], SupportsCommitter[Any]):
    """Passes `size` events at a time to another sink, as one `OrderBatch`. The last batch may be smaller.

    The guarantees of the other sink hold for batches: if it commits, each event is in exactly one visible batch.
    """

    def __init__(self, sink: Sink[OrderBatch], size: int) -> None:
        if size < 1:
            raise ValueError(f"A batch has 1 event or more, not {size}.")
        self._sink = sink
        self._size = size

    def create_writer(self, context: WriterInitContext) -> BatchWriter:
        """A writer with an empty batch."""
        return self.restore_writer(context, [])

    def restore_writer(self, context: WriterInitContext, recovered_state: list[OrderEvent]) -> BatchWriter:
        """A writer that continues with restored events: those of one partial batch, or of parts of several."""
        return BatchWriter(self._sink.create_writer(context), self._size, recovered_state)

    def get_writer_state_serializer(self) -> TypedSerializer:
        """Events are typed: nothing is pickled."""
        return TypedSerializer(OrderEvent)

    def create_committer(self, context: CommitterInitContext) -> Committer[Any]:
        """The other sink's committer; if it has none, one that commits nothing."""
        return self._sink.create_committer(context) if isinstance(self._sink, SupportsCommitter) else NoCommitter()


class BatchWriter(StatefulSinkWriter[OrderEvent, OrderEvent], CommittingSinkWriter[OrderEvent, Any]):
    """Collects one subtask's events."""

    def __init__(self, writer: SinkWriter[OrderBatch], size: int, events: list[OrderEvent]) -> None:
        self._writer = writer
        self._size = size
        self._batch = list(events)

    def write(self, element: OrderEvent, context: SinkWriter.Context) -> None:
        """Add an event; write the batch when it is full."""
        self._batch.append(element)
        # A restored writer may hold events of several partial batches, more than one full batch.
        while len(self._batch) >= self._size:
            self._write_batch(self._size, context)

    def flush(self, end_of_input: bool) -> None:
        """At a checkpoint the partial batch stays; at the end of the input it is written as it is."""
        while end_of_input and self._batch:
            self._write_batch(self._size, _NoContext())
        self._writer.flush(end_of_input)

    def prepare_commit(self) -> list[Any]:
        """The committables of the other writer."""
        return self._writer.prepare_commit() if isinstance(self._writer, CommittingSinkWriter) else []

    def snapshot_state(self, checkpoint_id: int) -> list[OrderEvent]:
        """The partial batch."""
        return list(self._batch)

    def close(self) -> None:
        """Close the other writer."""
        self._writer.close()

    def _write_batch(self, size: int, context: SinkWriter.Context) -> None:
        self._writer.write(OrderBatch(tuple(self._batch[:size])), context)
        del self._batch[:size]


class _NoContext(SinkWriter.Context):
    """The context after the last event, without a current event."""

    def timestamp(self) -> int | None:
        return None

    def current_watermark(self) -> int:
        return 2**63 - 1


class NoCommitter(Committer[Any]):
    """For a sink whose output is visible at once."""

    def commit(self, requests: list[Any]) -> None:
        """Check that there is nothing to commit."""
        assert not requests, "a writer without commits has committables"
