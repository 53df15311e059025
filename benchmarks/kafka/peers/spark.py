"""Spark's Kafka source, the decoder over Arrow batches in Python, and `transformWithStateInPandas` on RocksDB.

The clock's marks are the ends of the micro-batches as Spark's own progress reports give them; the first batch is
warm-up. The final counts are read back from the state store with Spark's state reader.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from benchmarks.kafka.peers.arguments import parser
from benchmarks.kafka.workload import pairs_decoder, report
from benchmarks.keyed_count.peers.spark import SETTINGS, Count, counted, end_of
from benchmarks.keyed_count.workload import Mark

PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
LEAST_BATCHES = 4


class CountAmounts(Count):
    """State read once and written once per key and batch."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        self.add(sum(int(frame["amount"].sum()) for frame in rows))
        return iter(())


def decoding(decoder: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the step that decodes Arrow batches."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pairs_of = pairs_decoder(decoder)
        for batch in batches:
            pairs = pairs_of(batch.column(0).to_pylist())
            keys, amounts = zip(*pairs, strict=True) if pairs else ((), ())
            yield pa.RecordBatch.from_arrays(
                [pa.array(keys, pa.string()), pa.array(amounts, pa.int64())], names=["key", "amount"]
            )

    return decode


def start_session(directory: str) -> SparkSession:
    builder = SparkSession.builder.appName("kafka").config("spark.jars.packages", PACKAGE)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.local.dir", directory).config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def start_query(session: SparkSession, options: Any, checkpoint: str) -> Any:
    source = session.readStream.format("kafka").option("kafka.bootstrap.servers", options.bootstrap)
    source = source.option("subscribe", options.topic).option("startingOffsets", "earliest")
    values = source.option("maxOffsetsPerTrigger", options.batch).load().select("value")
    pairs = values.mapInArrow(decoding(options.decoder), "key STRING, amount LONG")
    counts = pairs.groupBy("key").transformWithStateInPandas(CountAmounts(), "key STRING", "Update", "None")
    writer = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    return writer.option("checkpointLocation", checkpoint).start()


def main() -> None:
    """Do one run and print one JSON line."""
    arguments = parser(__doc__)
    arguments.add_argument("--batch", type=int, default=250_000)
    options = arguments.parse_args()
    options.batch = min(options.batch, options.records // LEAST_BATCHES)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        session = start_session(directory)
        checkpoint = os.path.join(directory, "checkpoint")
        query = start_query(session, options, checkpoint)
        query.awaitTermination()
        reports = [progress for progress in query.recentProgress if progress["numInputRows"]]
        total = counted(session, checkpoint, reports[-1]["batchId"])
        session.stop()
    marks, done = [], 0
    for progress in reports:
        done += progress["numInputRows"]
        marks.append(Mark(end_of(progress), done))
    settings = {"decoder": f"{options.decoder} in mapInArrow", "batch": options.batch, "package": PACKAGE, **SETTINGS}
    report("spark", [marks], total, options.records, settings)


if __name__ == "__main__":
    main()
