"""``python -m benchmarks.sinks.hbase``: a job into HBase beside a bare happybase loop with the same rows and batches.

Both write the same rows of two cells through one Thrift server, one process each, in turns: bare, Rekindle, bare, ….
The job runs on Spark with checkpoints; its time is that from the sink's first record to its last confirmed flush, so
that the start of Spark does not count. The loop's time is that from its first row to its last confirmed batch.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.connectors.hbase import HBaseSink, Put
from rekindle.datastream.connectors.hbase.sink_settings import HBaseSinkSettings
from rekindle.datastream.connectors.hbase.thrift_settings import ThriftSettings
from rekindle.datastream.connectors.sink_api import Sink, SinkWriter, WriterInitContext
from tools.servers.hbase import HBaseServer

TARGET = 0.8
QUICK_ROWS = 20_000


def cells_of(number: int) -> dict[bytes, bytes]:
    """The cells of a row."""
    return {b"f:number": b"%d" % number, b"f:text": b"the row with number %012d" % number}


def as_put(number: int) -> Put:
    """The mutation of a record."""
    return Put(b"%012d" % number, cells_of(number))


class TimedSink(Sink[Any]):
    """The sink, which writes into a file how long it took from its first record to its last confirmed flush."""

    def __init__(self, sink: HBaseSink, file: str) -> None:
        self._sink, self._file = sink, file

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        """Return the sink's writer with a watch."""
        return _TimedWriter(self._sink.create_writer(context), Path(self._file))


class _TimedWriter(SinkWriter[Any]):
    def __init__(self, writer: SinkWriter[Any], file: Path) -> None:
        self._writer, self._file = writer, file
        self._began: float | None = None

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        """Write, and note the time of the first record."""
        if self._began is None:
            self._began = time.perf_counter()
        self._writer.write(element, context)

    def flush(self, end_of_input: bool) -> None:
        """Flush, and note the time at the end."""
        self._writer.flush(end_of_input)
        if end_of_input and self._began is not None:
            self._file.write_text(str(time.perf_counter() - self._began))

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()


def bare(server: HBaseServer, rows: int, batch_size: int) -> float:
    """Rows per second of a loop over happybase's own batches."""
    connection, table = server.connection(), _new_table(server)
    began = time.perf_counter()
    # happybase counts cells, of which each row has two.
    with connection.table(table).batch(batch_size=2 * batch_size) as batch:
        for number in range(rows):
            batch.put(b"%012d" % number, cells_of(number))
    took_s = time.perf_counter() - began
    connection.close()
    server.delete_table(table)
    return rows / took_s


def rekindle(server: HBaseServer, rows: int, batch_size: int) -> float:
    """Rows per second of a job with one subtask."""
    table = _new_table(server)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"master": "local[2]", "rekindle.progress": "off", "execution.checkpointing.dir": f"{folder}/chk"}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(1).enable_checkpointing(1000)
        source = DataGeneratorSource(lambda number: number, rows)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        thrift = ThriftSettings(((server.host, server.port),))
        sink = HBaseSink(HBaseSinkSettings(thrift, table, as_put, max_mutations=batch_size))
        numbers.sink_to(TimedSink(sink, f"{folder}/took"))
        env.execute("numbers into hbase")
        took_s = float(Path(folder, "took").read_text())
    found = sum(1 for _ in server.connection().table(table).scan(batch_size=1000, columns=[b"f:number"]))
    assert found == rows, f"{found} of {rows} rows are in HBase"
    server.delete_table(table)
    return rows / took_s


def _new_table(server: HBaseServer) -> str:
    return server.create_table(f"bench-{uuid.uuid4().hex[:8]}", "f", max_versions=1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both in turns, and print rows per second and the ratio of neighbours."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sinks.hbase", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each run (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=1000, help="rows of each call (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of Rekindle (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few rows, one run: shows that it works")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rows, options.runs = min(options.rows, QUICK_ROWS), 1
    with HBaseServer() as server:
        bare(server, options.rows // 4, options.batch_size)  # warms the servers up
        before, ratios = bare(server, options.rows, options.batch_size), []
        print(f"bare happybase  {before:10,.0f} rows/s", flush=True)
        for _ in range(options.runs):
            own = rekindle(server, options.rows, options.batch_size)
            after = bare(server, options.rows, options.batch_size)
            ratios.append(own / ((before + after) / 2))
            print(f"Rekindle        {own:10,.0f} rows/s  ({ratios[-1]:.0%} of the loops before and after)")
            print(f"bare happybase  {after:10,.0f} rows/s", flush=True)
            before = after
    median = statistics.median(ratios)
    reached = "reached" if median >= TARGET else "not reached"
    print(f"Rekindle writes {median:.0%} of a bare loop (median of {len(ratios)}); target {TARGET:.0%}: {reached}.")


if __name__ == "__main__":
    main()
