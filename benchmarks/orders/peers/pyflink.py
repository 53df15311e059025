"""PyFlink: the same five branches with its Python functions, tuned; process mode, loopback or thread mode.

The function behind the source loads the events before it emits the first. Every stream of results goes to Flink's own
discarding sink; the function that emits a stream also counts it, so that no record has to go back to Python for that.
The deduplication takes the clock's marks, every 500 events of a subtask; the clock stops at the last work of the last
function.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from pathlib import Path

from pyflink.common import Duration, Time, WatermarkStrategy
from pyflink.datastream import DataStream
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.window import TumblingEventTimeWindows
from pyflink.java_gateway import get_gateway

from benchmarks.keyed_count.peers.pyflink import MODES, SUBTASKS, WORKERS, configuration, environment_with
from benchmarks.keyed_count.workload import steady
from benchmarks.orders.ledger import progress, read, tallies
from benchmarks.orders.peers import pyflink_functions as f
from benchmarks.orders.workload import ORDER_ID, SHOP, read_events, report, share_of
from examples.orders.settings import millis


def discard(stream: DataStream) -> None:
    """Send a stream to Flink's discarding sink."""
    stream.sink_to(Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()))


def run(options: argparse.Namespace, settings: dict[str, str], directory: str) -> None:
    environment = environment_with(settings)
    # The numbers are split in the middle: a reader must not begin with the end of another's share.
    in_share = Counter(share_of(event[ORDER_ID], SUBTASKS) for event in read_events(options.folder))
    numbers_per_share = max(in_share.values())
    horizon_ms, retention_ms = millis(SHOP.duplicate_horizon_s), millis(SHOP.order_retention_s)
    lifetime_ms, window_ms = millis(SHOP.order_lifetime_s), millis(SHOP.window_s)
    numbers = environment.from_source(
        NumberSequenceSource(0, SUBTASKS * numbers_per_share - 1), WatermarkStrategy.no_watermarks(), "numbers", f.LONG
    )
    bound = Duration.of_millis(millis(SHOP.out_of_orderness_s))
    timestamps = WatermarkStrategy.for_bounded_out_of_orderness(bound).with_timestamp_assigner(f.EventTime())
    hand_out = f.HandOut(str(options.folder.resolve()), SUBTASKS, numbers_per_share)
    events = numbers.flat_map(hand_out, f.EVENT).assign_timestamps_and_watermarks(timestamps)
    deduplicate = f.Deduplicate(directory, horizon_ms)
    unique = events.key_by(f.first, f.STRING).process(deduplicate, f.EVENT)
    discard(unique.get_side_output(f.DROPPED))
    discard(unique.flat_map(f.WriteBatches(directory, SHOP.batch_size), f.LONG))
    track = f.TrackOrders(directory, retention_ms, lifetime_ms)
    purchases = unique.key_by(f.first, f.STRING).process(track, f.PURCHASE)
    discard(purchases.get_side_output(f.STATUSES))
    discard(purchases.get_side_output(f.REJECTED))
    late = f.late_purchases()
    windows = (
        purchases.key_by(f.first, f.STRING)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(window_ms)))
        .side_output_late_data(late)
    )
    sums = windows.aggregate(f.SumPurchases(), f.DescribeWindow(directory), output_type=f.USER_PURCHASES)
    discard(sums)
    discard(sums.get_side_output(late).flat_map(f.CountLate(directory), f.LONG))
    keep = f.KeepStock(directory, SHOP.initial_stock, SHOP.low_stock, lifetime_ms)
    updates = purchases.get_side_output(f.MOVES).key_by(f.first, f.STRING).process(keep, f.STOCK)
    discard(updates)
    discard(updates.get_side_output(f.LOW_STOCK))
    discard(updates.get_side_output(f.BACK_ORDERS))
    environment.execute("orders")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="the prepared events")
    parser.add_argument("--mode", choices=MODES, default="process")
    parser.add_argument("--bundle", type=int, default=250_000)
    parser.add_argument("--bundle-time-ms", type=int, default=10_000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a configuration key")
    options = parser.parse_args()
    options.events = sum(1 for _ in read_events(options.folder))
    settings = configuration(options) | dict(pair.split("=", 1) for pair in options.set)
    with tempfile.TemporaryDirectory() as directory:
        run(options, settings, directory)
        marks = progress(directory, options.events)
        found = tallies(map(read, Path(directory).glob("*.ledger")))
    report("pyflink", options.folder, steady(marks), found, {"workers": os.environ[WORKERS], **settings})


if __name__ == "__main__":
    main()
