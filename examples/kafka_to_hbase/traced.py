"""The Kafka source and the HBase sink with a line in the log for each step of a checkpoint."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import Any

from rekindle.datastream.connectors.base import Batch, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.kafka import FlinkKafkaConsumer
from rekindle.datastream.connectors.sink_api import Sink, SinkWriter, WriterInitContext


def log(who: str, message: str) -> None:
    """Print a line with the time and the thread; lines of slots come to the driver's console."""
    now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    print(f"{now} L{threading.get_ident() % 1000:03} {who} {message}", flush=True)


class TracedConsumer(FlinkKafkaConsumer[Any]):
    """A Kafka source that logs."""

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[Any]:
        """Return a reader that logs."""
        log("KafkaSource", "initializeState")
        return _TracedReader(super().create_reader(context, splits))


class _TracedReader(SourceReader[Any]):
    def __init__(self, reader: SourceReader[Any]) -> None:
        self._reader = reader

    def poll(self, max_records: int) -> list[Any] | Batch[Any] | None:
        return self._reader.poll(max_records)

    def is_available(self) -> bool:
        return self._reader.is_available()

    def add_splits(self, splits: list[SourceSplit]) -> None:
        self._reader.add_splits(splits)

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        log("KafkaSource", "snapshotState begin")
        splits = self._reader.snapshot_state(checkpoint_id)
        log("KafkaSource", "snapshotState end")
        return splits

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        log("KafkaSource", f"notifyCheckpointComplete {checkpoint_id}")
        self._reader.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._reader.notify_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self._reader.close()


class TracedSink(Sink[Any]):
    """A sink that logs what its writer does at checkpoints, and takes its time for it, as the one in the text does."""

    def __init__(self, sink: Sink[Any], pause_s: float = 0.0) -> None:
        self._sink = sink
        self._pause_s = pause_s

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """Return a writer that logs."""
        log("HBaseSink", "initializeState")
        return _TracedWriter(self._sink.create_writer(context), self._pause_s)


class _TracedWriter(SinkWriter[Any]):
    def __init__(self, writer: SinkWriter[Any], pause_s: float) -> None:
        self._writer = writer
        self._pause_s = pause_s

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        self._writer.write(element, context)

    def flush(self, end_of_input: bool) -> None:
        log("HBaseSink", "snapshotState begin")
        time.sleep(self._pause_s)
        self._writer.flush(end_of_input)
        log("HBaseSink", "snapshotState end")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        log("HBaseSink", f"notifyCheckpointComplete {checkpoint_id}")
        self._writer.notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        self._writer.close()
