"""The sinks of the job: each stream of results goes to the sink of its name. A new kind of sink is a new function."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from examples.orders.kafka_ends import kafka_sink
from examples.orders.settings import Settings
from rekindle.common import Encoder
from rekindle.datastream.connectors import Sink, SinkWriter, WriterInitContext
from rekindle.datastream.connectors.file_system import BucketAssigner, FileSink
from rekindle.datastream.functions import PrintSinkFunction

#: Gives the sink of a stream of results by its name.
Ends = Callable[[str], Sink[Any]]

#: The streams of results, in the order of the branches.
STREAMS = (
    "dropped",
    "statuses",
    "rejected",
    "purchases",
    "late-purchases",
    "stock",
    "low-stock",
    "back-orders",
    "batches",
)


def ends(settings: Settings) -> Ends:
    """The sinks of the kind that `--sink` names.

    >>> ends(Settings(sink="print"))("stock")
    PrintSink('stock')
    """
    if settings.sink == "print":
        return PrintSink
    if settings.sink == "files":
        output = os.path.join(os.path.abspath(settings.directory), "output")
        return lambda stream: file_sink(os.path.join(output, stream))
    if settings.sink in _SERVER_ENDS:
        end = _SERVER_ENDS[settings.sink]
        return lambda stream: end(settings, stream)
    names = ", ".join(("print", "files", *_SERVER_ENDS))
    raise ValueError(f"There is no sink called {settings.sink!r}: use one of {names}.")


def create_tables(settings: Settings) -> None:
    """Make the table that the sink writes to, unless it is there."""
    if "hbase" in settings.sink:
        from examples.orders import hbase_ends

        hbase_ends.create_table(settings)
    elif settings.sink == "postgres":
        from examples.orders import postgres_ends

        postgres_ends.create_table(settings)


def _hbase(settings: Settings, stream: str) -> Sink[Any]:
    from examples.orders.hbase_ends import hbase_sink  # needs happybase only if it is asked for

    return hbase_sink(settings, stream)


def _postgres(settings: Settings, stream: str) -> Sink[Any]:
    from examples.orders.postgres_ends import postgres_sink

    return postgres_sink(settings, stream)


def _kafka_and_hbase(settings: Settings, stream: str) -> Sink[Any]:
    return _hbase(settings, stream) if stream in IN_TABLES else kafka_sink(settings, stream)


#: The streams that go to HBase, and not to Kafka, if the job has both.
IN_TABLES = ("statuses", "purchases", "stock")
_SERVER_ENDS: dict[str, Callable[[Settings, str], Sink[Any]]] = {
    "kafka": kafka_sink,
    "hbase": _hbase,
    "postgres": _postgres,
    "kafka+hbase": _kafka_and_hbase,
}


def file_sink(directory: str) -> FileSink[Any]:
    """A sink of JSON lines, each exactly once: a file is hidden until its checkpoint is complete."""
    return (
        FileSink.for_row_format(directory, Encoder.json_lines_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


class PrintSink(Sink[Any]):
    """Prints each record after the stream's name. After a failure, records since the last checkpoint are repeated."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """A writer that prints one subtask's records."""
        return _Printer(PrintSinkFunction.prefix(self._stream, context.subtask, context.parallelism))

    def __repr__(self) -> str:
        return f"PrintSink({self._stream!r})"


class _Printer(SinkWriter[Any]):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        # In a slot, standard output puts the task's name before each line; these lines have a prefix of their own.
        write = getattr(sys.stdout, "write_unlabelled", sys.stdout.write)
        write(f"{self._prefix}{element}\n")

    def flush(self, end_of_input: bool) -> None:
        pass
