"""Spark's own JDBC writer: it cannot update, so it appends the same number of rows to an empty table. One JSON line."""

from __future__ import annotations

import argparse
import os
import time

from pyspark.sql import SparkSession

from benchmarks.sinks.workload import BATCH, PASSWORD, Run


def main() -> None:
    """Do one run and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "user", "table", "jar"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--records", type=int, required=True)
    options = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").config("spark.jars", options.jar)  # type: ignore[attr-defined]
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    columns = ("id", "concat('customer ', id) name", "id / 2 amount", "id updated")
    properties = {"user": options.user, "password": os.environ[PASSWORD], "batchsize": str(BATCH)}
    properties |= {"driver": "org.postgresql.Driver", "reWriteBatchedInserts": "true"}
    spark.range(1).count()
    began = time.perf_counter()
    rows = spark.range(0, options.records, numPartitions=1).selectExpr(*columns)
    rows.write.jdbc(options.url, options.table, mode="append", properties=properties)
    print(Run("Spark's JDBC writer (appends)", options.records, time.perf_counter() - began).line(), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
