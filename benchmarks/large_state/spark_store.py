"""The same state in Spark's own RocksDB state store: `transformWithStateInPandas`.

    python -m benchmarks.large_state.spark_store --keys 10000000 --minutes 10

Every key is read and written once, batch by batch, until all are there or the time is over; it prints one line of JSON.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.keyed_count.peers.spark import start_session

TEXT_BYTES = 96


class ProfileInPandas(StatefulProcessor):
    """A number and a text per key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.profile = handle.getValueState("profile", "count LONG, text STRING")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        before = self.profile.get()
        count = (before[0] if before else 0) + sum(len(frame) for frame in rows)
        self.profile.update((count, f"{key[0]}/{count}".ljust(TEXT_BYTES, ".")))
        return iter(())

    def close(self) -> None:
        """Nothing to close."""


def start_query(session: Any, keys: int, batch: int, checkpoint: str) -> Any:
    """A stream that touches every key once, in order."""
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", batch).option("numPartitions", 2)
    key = f"concat('user-', lpad(cast(value % {keys} AS STRING), 10, '0')) AS key"
    grouped = source.load().selectExpr(key, "1 AS value").groupBy("key")
    profiles = grouped.transformWithStateInPandas(ProfileInPandas(), "key STRING", "Update", "None")
    writer = profiles.writeStream.format("noop").outputMode("update")
    return writer.option("checkpointLocation", checkpoint).start()


def filled(query: Any, keys: int, batch: int, seconds: float) -> dict[str, float]:
    """Wait until all keys are there or the time is over."""
    begun = time.monotonic()
    done, first_end = 0, begun
    while done < keys and time.monotonic() - begun < seconds:
        if query.exception() is not None:
            raise query.exception()
        progress = query.lastProgress
        reached = (progress["batchId"] + 1) * batch if progress else 0
        if reached > done:
            first_end = time.monotonic() if not done else first_end
            done = reached
        time.sleep(0.05)
    ended = time.monotonic()
    query.stop()
    after_first = max(0, done - batch)
    return {
        "keys_written": min(done, keys),
        "seconds": ended - begun,
        "records_per_second": after_first / (ended - first_end) if after_first else 0.0,
    }


def main() -> None:
    """Fill the state store and print how far it got."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_state.spark_store")
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--batch", type=int, default=50_000)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        session = start_session(directory)
        query = start_query(session, options.keys, options.batch, os.path.join(directory, "checkpoint"))
        found = filled(query, options.keys, options.batch, options.minutes * 60)
        session.stop()
    print(json.dumps({"keys": options.keys, **found}), flush=True)


if __name__ == "__main__":
    main()
