"""Spark's ``transformWithState`` in Python on RocksDB: state once per key and batch, or a call per record.

The records are made inside the JVM by Spark's ``rate-micro-batch`` source and an SQL expression. The clock's marks are
the ends of the micro-batches as Spark's own progress reports give them; the first batch is warm-up. Nothing is emitted;
the final counts are read back from the state store with Spark's state reader.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pandas as pd
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.keyed_count.workload import Mark, Steady, key_sql, report

SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Count(StatefulProcessor):
    """Base of the three forms: one value of state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "count LONG")

    def add(self, records: int) -> None:
        before = self.count.get()
        self.count.update(((before[0] if before else 0) + records,))

    def close(self) -> None:
        pass


class CountInPandas(Count):
    """State read once and written once per key and batch."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        self.add(sum(len(frame) for frame in rows))
        return iter(())


class CountInRows(Count):
    """The same over rows."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        self.add(sum(1 for _ in rows))
        return iter(())


class CountPerRecord(Count):
    """State read and written for each record."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for _ in rows:
            self.add(1)
        return iter(())


def start_session(checkpoints: str) -> SparkSession:
    builder = SparkSession.builder.appName("keyed_count")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.local.dir", checkpoints).config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def start_query(session: SparkSession, options: argparse.Namespace, checkpoint: str) -> Any:
    source = session.readStream.format("rate-micro-batch")
    source = source.option("rowsPerBatch", options.batch).option("numPartitions", 2)
    grouped = source.load().selectExpr(f"{key_sql('value', options.keys)} AS key", "1 AS value").groupBy("key")
    form = {
        "pandas": lambda: grouped.transformWithStateInPandas(CountInPandas(), "key STRING", "Update", "None"),
        "rows": lambda: grouped.transformWithState(CountInRows(), "key STRING", "Update", "None"),
        "per-record": lambda: grouped.transformWithState(CountPerRecord(), "key STRING", "Update", "None"),
    }
    writer = form[options.form]().writeStream.format("noop").outputMode("update")
    return writer.option("checkpointLocation", checkpoint).start()


def run_batches(query: Any, batches: int) -> list[Any]:
    """Wait until ``batches`` batches are done; return their progress reports."""
    while not (query.lastProgress and query.lastProgress["batchId"] >= batches - 1):
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.02)
    reports = {progress["batchId"]: progress for progress in query.recentProgress}
    query.stop()
    return [reports[number] for number in range(batches)]


def end_of(progress: Any) -> float:
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    return float(began + progress["durationMs"]["triggerExecution"] / 1000)


def counted(session: SparkSession, checkpoint: str, last_batch: int) -> int:
    """Return the sum of all counts in the state store after ``last_batch``."""
    reader = session.read.format("statestore").option("stateVarName", "count").option("batchId", last_batch)
    return int(reader.load(checkpoint).selectExpr("sum(value.count)").collect()[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--form", choices=["pandas", "rows", "per-record"], default="pandas")
    parser.add_argument("--batch", type=int, default=250_000)
    options = parser.parse_args()
    options.batch = min(options.batch, options.records // 2)
    batches = max(2, round(options.records / options.batch))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        session = start_session(directory)
        checkpoint = os.path.join(directory, "checkpoint")
        query = start_query(session, options, checkpoint)
        reports = run_batches(query, batches)
        total = counted(session, checkpoint, batches - 1)
        session.stop()
    first, last = Mark(end_of(reports[0]), options.batch), Mark(end_of(reports[-1]), options.batch * batches)
    timed = Steady(last.records - first.records, last.seconds - first.seconds)
    settings = {"form": options.form, "batch": options.batch, "records made": "in the JVM", **SETTINGS}
    report("spark", options.keys, timed, total, options.batch * batches, settings)


if __name__ == "__main__":
    main()
