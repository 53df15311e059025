"""The input of the order benchmark, and the results that every engine must have.

Plain Python without dependencies: each peer imports this module in an environment of its own. The events are those of
the example's feed; `prepare.py` writes them into a folder once, so that no engine is measured while it makes orders.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.keyed_count.workload import LEAST_SECONDS, Steady
from examples.orders.settings import Feed, Settings

FEED = Feed(rate=None, users=2_000, products=2_000)
"""Five percent duplicates, a fifth out of order, a tenth of the orders cancelled: as the example's. More variety."""

SHOP = Settings(initial_stock=500)
"""A million events use up the stock of the best-selling products: there are warnings and back-orders all the time."""

BLOCK_EVENTS = 10_000
"""The number of events in a stored block."""

END = "END"
"""The event that ends Spark's input: a query has no end, and this one's time lets the watermark pass all others."""

EventTuple = tuple[str, str, str, int, int, str, tuple[tuple[str, str, int, int], ...], int]
"""An event without its classes: the fields of `OrderEvent` in order, items as tuples."""

ORDER_ID: Final = 0
USER_ID: Final = 1
EVENT_TYPE: Final = 2
AMOUNT: Final = 3
ITEM_COUNT: Final = 4
CATEGORY: Final = 5
ITEMS: Final = 6
TIMESTAMP: Final = 7

DIGESTS: dict[str, tuple[str, ...]] = {
    "dropped": ("timestamp_ms",),
    "statuses": ("created_ms", "paid_ms", "shipped_ms", "delivered_ms", "cancelled_ms"),
    "rejected": ("timestamp_ms",),
    "purchases": ("total_cents", "average_cents", "items", "refunded_cents"),
    "late-purchases": ("amount_cents",),
    "stock": ("level",),
    "low-stock": ("level", "timestamp_ms"),
    "back-orders": ("quantity", "level"),
    "batches": ("amount_cents",),
}
"""For each stream of results: the fields that are added up, beside counting rows; for batches, those of the events."""

Tallies = dict[str, tuple[int, int | None]]
"""Per stream of results: how many rows, and the sum of their fields; None if an engine only counts the rows."""


def events_path(folder: Path) -> Path:
    return folder / "events.pickle"


def parquet_path(folder: Path) -> Path:
    return folder / "parquet"


def read_events(folder: Path, share: int = 0, shares: int = 1) -> Iterator[EventTuple]:
    """Yield the events of one share in the order of their arrival; an order is in one share with all its events."""
    with events_path(folder).open("rb") as file:
        while True:
            try:
                block = pickle.load(file)
            except EOFError:
                return
            yield from (event for event in block if shares == 1 or share_of(event[ORDER_ID], shares) == share)


def share_of(order_id: str, shares: int) -> int:
    """Return the share of the input to which an order belongs.

    >>> share_of("order-00000013", 2)
    1
    """
    return int(order_id.rpartition("-")[2]) % shares


def expected(folder: Path) -> Tallies:
    """Return the results of the example's model, which `prepare.py` wrote."""
    return as_tallies(json.loads((folder / "expected.json").read_text()))


def as_tallies(noted: Mapping[str, Iterable[Any]]) -> Tallies:
    """Return tallies read from JSON with their types.

    >>> as_tallies({"stock": [2, 17]})
    {'stock': (2, 17)}
    """
    return {stream: tuple(map(int, numbers)) for stream, numbers in noted.items()}  # type: ignore[misc]


def added(tallies: Iterable[Tallies]) -> Tallies:
    """Return the sum of the tallies of several subtasks; streams in none of them are empty.

    >>> added([{"stock": (2, 17)}, {"stock": (1, 3)}])["stock"]
    (3, 20)
    """
    sums: Tallies = dict.fromkeys(DIGESTS, (0, 0))
    for each in tallies:
        for stream, (rows, total) in each.items():
            before_rows, before_total = sums[stream]
            sums[stream] = before_rows + rows, _plus(before_total, total)
    return sums


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def differences(found: Tallies, wanted: Tallies) -> list[str]:
    """Return a sentence for each stream that differs from the model's.

    >>> differences({"stock": (3, 20)}, {"stock": (3, 21)})
    ['stock has 3 rows that add up to 20, not 3 that add up to 21']
    """
    return [
        f"{stream} has {rows} rows that add up to {total}, not {wanted[stream][0]} that add up to {wanted[stream][1]}"
        for stream, (rows, total) in found.items()
        if rows != wanted[stream][0] or total not in (None, wanted[stream][1])
    ]


def report(engine: str, folder: Path, timed: Steady, found: Tallies, settings: Mapping[str, Any]) -> None:
    """Print a run's JSON line, or fail if its results are not the model's."""
    wrong = differences(added([found]), expected(folder))
    if wrong:
        raise SystemExit(f"{engine}: {'; '.join(wrong)}.")
    if timed.seconds < LEAST_SECONDS:
        raise SystemExit(f"{engine}: {timed.seconds:.3f} s are too short to say anything; give it more events.")
    line = {
        "engine": engine,
        "records": timed.records,
        "seconds": timed.seconds,
        "records_per_second": timed.records_per_second,
        "settings": settings,
    }
    print(json.dumps(line), flush=True)
