"""Makes the events of a run, and the example model's results for them, once; both stay in the benchmarks' cache.

A folder has the events as tuples (for Rekindle and PyFlink), as Parquet files in the order of arrival (for Spark), and
the expected rows and sums of every stream of results.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.keyed_count.environments import CACHE
from benchmarks.orders.workload import (
    BLOCK_EVENTS,
    DIGESTS,
    END,
    FEED,
    SHOP,
    TIMESTAMP,
    EventTuple,
    Tallies,
    events_path,
    parquet_path,
)
from examples.orders.feed import HOUR_MS, OrderLives
from examples.orders.model import Row, purchased, stocked, tracked, without_duplicates
from examples.orders.records import OrderEvent
from examples.orders.settings import Feed, Settings, millis
from examples.orders.source import OrderReader, OrderSource

FORMAT = 1
"""Part of the folder's name: folders of another format are not read."""

_FIRST_FILE_S = 1_700_000_000
EVENT_FIELDS = (
    "order_id",
    "user_id",
    "event_type",
    "amount_cents",
    "item_count",
    "category",
    "items",
    "timestamp_ms",
)
ITEM_FIELDS = ("product_id", "name", "quantity", "price_cents")
_ITEM = pa.struct(
    [("product_id", pa.string()), ("name", pa.string()), ("quantity", pa.int32()), ("price_cents", pa.int64())]
)
SCHEMA = pa.schema(
    [
        ("order_id", pa.string()),
        ("user_id", pa.string()),
        ("event_type", pa.string()),
        ("amount_cents", pa.int64()),
        ("item_count", pa.int32()),
        ("category", pa.string()),
        ("items", pa.list_(_ITEM)),
        ("timestamp_ms", pa.int64()),
    ]
)


def prepared(events: int) -> Path:
    """Return the folder of this number of events; make it if it does not exist."""
    name = hashlib.sha256(repr((FORMAT, FEED, SHOP)).encode()).hexdigest()[:8]
    folder = CACHE / "orders" / f"{events}-{name}"
    if folder.exists():
        return folder
    print(f"Making {events:,} events in {os.path.relpath(folder)} …", file=sys.stderr, flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        _fill(unfinished, events)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _fill(folder: Path, count: int) -> None:
    gc.disable()  # millions of objects, and all of them stay
    made = first_events(FEED, SHOP, count)
    with events_path(folder).open("wb") as file:
        for block in _blocks(made):
            pickle.dump(block, file, pickle.HIGHEST_PROTOCOL)
    _write_parquet(parquet_path(folder), made)
    (folder / "expected.json").write_text(json.dumps(expected_tallies(made, SHOP), indent=1))
    gc.enable()


def first_events(feed: Feed, shop: Settings, count: int) -> list[EventTuple]:
    """Return the first events of an endless feed, in the order of their arrival.

    >>> [event[2] for event in first_events(Feed(), Settings(), 2)]
    ['CREATED', 'CREATED']
    """
    bound_ms = millis(shop.out_of_orderness_s)
    reader = OrderReader(OrderLives(feed, bound_ms), OrderSource(feed, bound_ms).create_splits(1))
    events = reader.poll(count)
    assert events is not None, "an endless feed has ended"
    items: dict[int, Any] = {}
    return [_plain(event, items) for event in events]


def _plain(event: OrderEvent, known: dict[int, Any]) -> EventTuple:
    """The event as a tuple; events of one order share their items, as the feed's do."""
    items = known.get(id(event.items))
    if items is None:
        items = known[id(event.items)] = tuple(map(astuple, event.items))
    return (
        event.order_id,
        event.user_id,
        event.event_type.value,
        event.amount_cents,
        event.item_count,
        event.category,
        items,
        event.timestamp_ms,
    )


def _write_parquet(folder: Path, events: Sequence[EventTuple]) -> None:
    folder.mkdir()
    latest = max(event[TIMESTAMP] for event in events)
    end: EventTuple = ("order-end", "", END, 0, 0, "", (), latest + 3 * HOUR_MS)
    for number, block in enumerate([*_blocks(events), [end]]):
        path = folder / f"{number:05d}.parquet"
        pq.write_table(pa.Table.from_pylist([_row(event) for event in block], SCHEMA), path)
        os.utime(path, (_FIRST_FILE_S + number,) * 2)  # Spark reads files in the order of their times


def expected_tallies(events: Sequence[EventTuple], shop: Settings) -> Tallies:
    """Return the results of the example's model for the events."""
    unique, dropped = without_duplicates([_row(event) for event in events])
    statuses, rejected, accepted = tracked(unique, shop)
    stock, low_stock, back_orders = stocked(accepted, shop)
    rows = {
        "dropped": dropped,
        "statuses": statuses,
        "rejected": rejected,
        "purchases": purchased(accepted, millis(shop.window_s)),
        "late-purchases": [],
        "stock": stock,
        "low-stock": low_stock,
        "back-orders": back_orders,
        "batches": unique,
    }
    return {stream: tally(rows[stream], fields) for stream, fields in DIGESTS.items()}


def tally(rows: Iterable[Row], fields: Sequence[str]) -> tuple[int, int]:
    """Return the number of rows and the sum of their fields; a missing value counts as 0.

    >>> tally([{"level": 5}, {"level": None}], ["level"])
    (2, 5)
    """
    count = total = 0
    for row in rows:
        count += 1
        total += sum(row[field] or 0 for field in fields)
    return count, total


def _row(event: EventTuple) -> Row:
    row = dict(zip(EVENT_FIELDS, event, strict=True))
    row["items"] = [dict(zip(ITEM_FIELDS, item, strict=True)) for item in event[6]]
    return row


def _blocks(events: Sequence[EventTuple]) -> Iterable[Sequence[EventTuple]]:
    return (events[start : start + BLOCK_EVENTS] for start in range(0, len(events), BLOCK_EVENTS))


def main() -> None:
    """Make the events and print the expected results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orders.prepare", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    folder = prepared(parser.parse_args().events)
    print(folder)
    print((folder / "expected.json").read_text())


if __name__ == "__main__":
    main()
