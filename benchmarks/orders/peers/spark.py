"""Spark: four streaming queries, with `transformWithState` for orders and stock, over rows or over pandas' frames.

A streaming query has one result, and so the branches are queries of their own:

    events ─ drop duplicates ─ batches of 100                                    (built in)
    events ─ transformWithState by order ─ files of tracked steps ─┬─ sums per user and hour   (built in)
                                                                   └─ transformWithState by product

The first runs alone, the other three at the same time. The clock's marks are the ends of micro-batches, as Spark's own
progress reports give them; the first batch is warm-up. The seconds of both parts are added.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.keyed_count.peers.spark import SETTINGS, end_of
from benchmarks.keyed_count.workload import Mark, Steady, steady
from benchmarks.orders.peers import spark_processors as processors
from benchmarks.orders.workload import BLOCK_EVENTS, SHOP, Tallies, parquet_path, report
from examples.orders.settings import millis

BOUND = f"{millis(SHOP.out_of_orderness_s) + 1} milliseconds"
"""Spark counts an event at the watermark as late; the job's events may be exactly so late."""

ABOUT = (
    "user_id STRING, amount_cents LONG, item_count INT, category STRING,"
    " items ARRAY<STRUCT<product_id: STRING, quantity: INT>>"
)
ABOUT_JSON = (
    "to_json(struct(user_id, amount_cents, item_count, category,"
    " transform(items, item -> struct(item.product_id, item.quantity)) AS items)) AS about"
)


def start_session(directory: str) -> SparkSession:
    builder = SparkSession.builder.appName("orders")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.local.dir", directory).config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.scheduler.mode", "FAIR")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Shop:
    """The queries of one run and the folders they write to."""

    def __init__(self, session: SparkSession, options: argparse.Namespace, directory: str) -> None:
        self.session, self.options, self.directory = session, options, Path(directory)
        files = len(list(parquet_path(options.folder).glob("*.parquet")))
        # A fifth of the input at most: the first batch is warm-up.
        self.files_per_batch = max(1, min(options.batch // BLOCK_EVENTS, files // 5))

    def events(self) -> DataFrame:
        folder = str(parquet_path(self.options.folder))
        source = self.session.readStream.schema(self.session.read.parquet(folder).schema)
        events = source.option("maxFilesPerTrigger", self.files_per_batch).parquet(folder)
        return events.withColumn("at", F.timestamp_millis("timestamp_ms")).withWatermark("at", BOUND)

    def start(self, results: DataFrame, name: str, *, ends: bool) -> Any:
        """Start a query that appends to files; with `ends` it stops after the input that exists now."""
        writer = results.writeStream.queryName(name).outputMode("append").format("parquet")
        writer = writer.option("path", str(self.directory / name)).option("checkpointLocation", self.checkpoint(name))
        return (writer.trigger(availableNow=True) if ends else writer).start()

    def checkpoint(self, name: str) -> str:
        return str(self.directory / "checkpoints" / name)

    def batches(self) -> tuple[Any, list[tuple[int, int]]]:
        """Branch 5. There is no operator state: a batch ends with its micro-batch at the latest."""
        noted: list[tuple[int, int]] = []

        def write(rows: DataFrame, number: int) -> None:
            place = F.monotonically_increasing_id()
            numbered = rows.where("event_type != 'END'").withColumn(
                "batch", F.struct(F.shiftright(place, 33), F.floor(place % 2**33 / SHOP.batch_size))
            )
            event = F.struct(*(name for name in rows.columns if name != "at"))
            batches = numbered.groupBy("batch").agg(F.collect_list(event).alias("events"))
            amounts = F.aggregate("events", F.lit(0).cast("long"), lambda total, each: total + each.amount_cents)
            found = batches.agg(F.sum(F.size("events")), F.sum(amounts)).collect()[0]
            noted.append((found[0] or 0, found[1] or 0))

        unique = self.events().dropDuplicatesWithinWatermark(["order_id", "event_type", "timestamp_ms"])
        writer = unique.writeStream.queryName("batches").foreachBatch(write).trigger(availableNow=True)
        return writer.option("checkpointLocation", self.checkpoint("batches")).start(), noted

    def track(self) -> Any:
        """Branches 1 and 2."""
        orders = (
            self.events().selectExpr("order_id", "event_type", "timestamp_ms", "at", ABOUT_JSON).groupBy("order_id")
        )
        if self.options.form == "rows":
            tracked = orders.transformWithState(
                processors.TrackOrdersInRows(), processors.TRACKED, "Append", "EventTime"
            )
        else:
            tracked = orders.transformWithStateInPandas(
                processors.TrackOrdersInPandas(), processors.TRACKED, "Append", "EventTime"
            )
        return self.start(tracked, "track", ends=True)

    def steps(self) -> DataFrame:
        source = self.session.readStream.schema(processors.TRACKED).parquet(str(self.directory / "track"))
        steps = source.where("kind IN ('step', 'end')").withColumn("about", F.from_json("about", ABOUT))
        timed = steps.selectExpr("*", "about.*", "timestamp_millis(timestamp_ms) AS at").drop("about")
        return timed.withWatermark("at", "0 seconds")

    def purchases(self) -> Any:
        """Branch 3: the built-in windows. The tracker's output is in order from one micro-batch to the next."""
        bought = "event_type = 'PAYMENT_COMPLETED'"
        paid_or_back = self.steps().where(f"{bought} OR (event_type = 'CANCELLED' AND was_paid) OR kind = 'end'")
        window = F.window("at", f"{millis(SHOP.window_s)} milliseconds")
        sums = paid_or_back.groupBy(window, "user_id").agg(
            F.expr(f"count_if({bought})").alias("orders"),
            F.expr(f"sum(if({bought}, amount_cents, 0))").alias("total_cents"),
            F.expr(f"sum(if({bought}, item_count, 0))").alias("items"),
            F.expr(f"collect_list(if({bought}, category, null))").alias("names"),
            F.expr(f"count_if(NOT {bought})").alias("refunds"),
            F.expr(f"sum(if({bought}, 0, amount_cents))").alias("refunded_cents"),
        )
        described = sums.selectExpr(
            "user_id",
            "unix_millis(window.start) AS window_start_ms",
            "unix_millis(window.end) AS window_end_ms",
            "orders",
            "total_cents",
            "if(orders > 0, (2 * total_cents + orders) div (2 * orders), 0) AS average_cents",
            "items",
            "transform(array_sort(array_distinct(names)), name ->"
            " struct(name, size(filter(names, each -> each = name)))) AS categories",
            "refunds",
            "refunded_cents",
        )
        return self.start(described, "purchases", ends=False)

    def stock(self) -> Any:
        """Branch 4."""
        taken = self.steps().where("event_type IN ('CREATED', 'CANCELLED')")
        moves = taken.selectExpr("order_id", "event_type", "timestamp_ms", "at", "explode(items) AS item")
        products = moves.selectExpr(
            "item.product_id AS product_id", "order_id", "event_type", "item.quantity AS quantity", "timestamp_ms", "at"
        ).groupBy("product_id")
        if self.options.form == "rows":
            stocked = products.transformWithState(
                processors.KeepStockInRows(), processors.STOCKED, "Append", "EventTime"
            )
        else:
            stocked = products.transformWithStateInPandas(
                processors.KeepStockInPandas(), processors.STOCKED, "Append", "EventTime"
            )
        return self.start(stocked, "stock", ends=False)

    def read(self, name: str, condition: str, value: str) -> tuple[int, int]:
        """The number of rows of a result, and their sum."""
        rows = self.session.read.parquet(str(self.directory / name)).where(condition)
        found = rows.selectExpr("count(*)", f"coalesce(sum({value}), 0)").collect()[0]
        return int(found[0]), int(found[1])


def marks_of(query: Any) -> list[Mark]:
    """The ends of a query's micro-batches."""
    marks, records = [], 0
    for progress in query.recentProgress:
        if progress["durationMs"].get("addBatch") is not None:
            records += progress["numInputRows"]
            marks.append(Mark(end_of(progress), records))
    return marks


def finish(query: Any) -> list[Mark]:
    query.awaitTermination()
    if query.exception() is not None:
        raise query.exception()
    return marks_of(query)


def timed(queries: Sequence[list[Mark]]) -> Steady:
    """From the end of the first query's warm-up until all queries have ended."""
    events = queries[0][-1].records - 1  # the one that ends the input is none
    return steady([*queries[0], Mark(max(marks[-1].seconds for marks in queries), events)])


def dropped_late(query: Any) -> int:
    return sum(
        operator["numRowsDroppedByWatermark"]
        for progress in query.recentProgress
        for operator in progress["stateOperators"]
    )


def run(shop: Shop) -> tuple[Steady, Tallies, dict[str, Any]]:
    batches, noted = shop.batches()
    alone = timed([finish(batches)])
    track = shop.track()
    followers = [shop.purchases(), shop.stock()]
    marks = finish(track)
    for query in followers:
        query.processAllAvailable()
        query.stop()
    together = timed([marks, *map(marks_of, followers)])
    times = " + ".join(f"coalesce({step}_ms, 0)" for step in ("created", "paid", "shipped", "delivered", "cancelled"))
    seen, _ = shop.read("track", "kind = 'dropped'", "timestamp_ms")
    found: dict[str, Any] = {
        "dropped": (seen + dropped_late(track), None),
        "statuses": shop.read("track", "kind = 'step'", times),
        "rejected": shop.read("track", "kind = 'rejected'", "timestamp_ms"),
        "purchases": shop.read("purchases", "true", "total_cents + average_cents + items + refunded_cents"),
        "late-purchases": (dropped_late(followers[0]), 0),
        "stock": shop.read("stock", "kind = 'stock'", "level"),
        "low-stock": shop.read("stock", "kind = 'low-stock'", "level + timestamp_ms"),
        "back-orders": shop.read("stock", "kind = 'back-order'", "quantity + level"),
        "batches": (sum(rows for rows, _ in noted), sum(total for _, total in noted)),
    }
    said = {
        "events per micro-batch": shop.files_per_batch * BLOCK_EVENTS,
        "batches alone": f"{alone.seconds:.1f} s of {alone.seconds + together.seconds:.1f} s",
    }
    return Steady(together.records, alone.seconds + together.seconds), found, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="the prepared events")
    parser.add_argument("--form", choices=["rows", "pandas"], default="rows")
    parser.add_argument("--batch", type=int, default=200_000)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        session = start_session(directory)
        clock, found, said = run(Shop(session, options, directory))
        session.stop()
    report("spark", options.folder, clock, found, {"form": options.form, **said, **SETTINGS})


if __name__ == "__main__":
    main()
