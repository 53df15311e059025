"""Spark's stateful processors for the order system: orders and stock, over rows or over pandas' frames.

State is read once and written once per key and micro-batch, as one pickled value: every call of Spark's state API goes
through a socket to the JVM, whatever its size. The logic for orders and stock is the example's.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.orders.workload import END, SHOP
from examples.orders.feed import HOUR_MS
from examples.orders.settings import millis

if TYPE_CHECKING:
    import pandas as pd

#: How often, in event time, expired back-orders are removed.
TIDY_MS = 86_400_000
RANK = {"CREATED": 0, "PAYMENT_COMPLETED": 1, "SHIPPED": 2, "DELIVERED": 3, "CANCELLED": 4, END: 5}

#: The columns of an event. `about` has the fields that the queries do not read: user, amount, items, as JSON.
Event = tuple[str, int, str]
EVENT_COLUMNS = ("event_type", "timestamp_ms", "about")
TRACKED = (
    "kind STRING, order_id STRING, event_type STRING, timestamp_ms LONG, about STRING, was_paid BOOLEAN, reason STRING,"
    " status STRING, created_ms LONG, paid_ms LONG, shipped_ms LONG, delivered_ms LONG, cancelled_ms LONG"
)
MOVE_COLUMNS = ("order_id", "event_type", "quantity", "timestamp_ms")
STOCKED = (
    "kind STRING, product_id STRING, order_id STRING, change LONG, level LONG, cumulative_change LONG,"
    " quantity LONG, timestamp_ms LONG"
)


def names_of(schema: str) -> list[str]:
    """Return the names of the columns of a schema.

    >>> names_of("kind STRING, level LONG")
    ['kind', 'level']
    """
    return [column.split()[0] for column in schema.split(",")]


TrackedRow = Row(*names_of(TRACKED))
StockedRow = Row(*names_of(STOCKED))

#: (status, event) -> (status after it, the place of its time). All other events do not fit.
FLOW = {
    (None, "CREATED"): ("CREATED", 0),
    ("CREATED", "PAYMENT_COMPLETED"): ("PAID", 1),
    ("PAID", "SHIPPED"): ("SHIPPED", 2),
    ("SHIPPED", "DELIVERED"): ("DELIVERED", 3),
    ("CREATED", "CANCELLED"): ("CANCELLED", 4),
    ("PAID", "CANCELLED"): ("CANCELLED", 4),
    ("SHIPPED", "CANCELLED"): ("CANCELLED", 4),
}
NO_TIMES = (None,) * 5
#: Status, times of its steps, events that were seen, events that wait, the next timer.
NEW_ORDER: tuple[Any, ...] = (None, NO_TIMES, (), (), None)


class TrackOrders(StatefulProcessor):
    """Branches 1 and 2 in one: both are keyed by the order, so that they can share one value of state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.state = handle.getValueState("order", "value BINARY")
        self.retention_ms, self.lifetime_ms = millis(SHOP.order_retention_s), millis(SHOP.order_lifetime_s)
        self.horizon_ms = millis(SHOP.duplicate_horizon_s)

    def load(self) -> tuple[Any, ...]:
        found = self.state.get()
        return pickle.loads(found[0]) if found else NEW_ORDER

    def take(self, order_id: str, events: Iterable[Event]) -> list[Any]:
        """Keep new events until the watermark has passed them, and drop duplicates."""
        status, times, seen, waiting, timer_ms = self.load()
        known, waits, dropped = list(seen), list(waiting), []
        for event in events:
            identity = event[:2]
            if identity in known:
                dropped.append(_set_aside("dropped", order_id, event, "duplicate"))
            else:
                known.append(identity)
                waits.append(event)
        next_ms = min((_due_ms(event) for event in waits), default=None)
        if next_ms is not None and (timer_ms is None or next_ms < timer_ms):
            if timer_ms is not None:
                self.handle.deleteTimer(timer_ms)
            self.handle.registerTimer(next_ms)
            timer_ms = next_ms
        self.state.update((pickle.dumps((status, times, tuple(known), tuple(waits), timer_ms)),))
        return dropped

    def expire(self, order_id: str, watermark_ms: int) -> list[Any]:
        """Apply waiting events up to the watermark, in order; then set a timer for the rest, or to forget the order."""
        status, times, seen, waiting, _ = self.load()
        if not waiting and self.forgotten_ms(times, seen) <= watermark_ms:
            self.state.clear()
            return []
        rows = []
        later = [event for event in waiting if _due_ms(event) > watermark_ms]
        for event in sorted((event for event in waiting if _due_ms(event) <= watermark_ms), key=_in_order):
            kind, at_ms, about = event
            if kind == END:
                rows.append(TrackedRow("end", order_id, kind, at_ms - HOUR_MS, about, *(None,) * 8))
                continue
            step = FLOW.get((status, kind))
            if step is None:
                because = f"does not follow {status}" if status else "of an order that was not created"
                rows.append(_set_aside("rejected", order_id, event, f"{kind} {because}"))
                continue
            was_paid = times[1] is not None
            status, place = step
            times = (*times[:place], at_ms, *times[place + 1 :])
            rows.append(TrackedRow("step", order_id, kind, at_ms, about, was_paid, None, status, *times))
        timer_ms = min(map(_due_ms, later)) if later else self.forgotten_ms(times, seen)
        self.handle.registerTimer(timer_ms)
        self.state.update((pickle.dumps((status, times, seen, tuple(later), timer_ms)),))
        return rows

    def forgotten_ms(self, times: Any, seen: Any) -> int:
        """The time at which neither duplicates nor steps of the order are expected any more."""
        last_ms = max((at_ms for _, at_ms in seen), default=0) + self.horizon_ms
        if times[0] is None:
            return int(last_ms)
        ended_ms = times[4] or times[3]
        return int(max(last_ms, ended_ms + self.retention_ms if ended_ms else times[0] + self.lifetime_ms))

    def close(self) -> None:
        pass


def _due_ms(event: Event) -> int:
    """The time at which an event is due; the end of the input counts as earlier, so that it passes after all others."""
    return event[1] - HOUR_MS if event[0] == END else event[1]


def _in_order(event: Event) -> tuple[int, int]:
    return event[1], RANK[event[0]]


def _set_aside(kind: str, order_id: str, event: Event, reason: str) -> Any:
    return TrackedRow(kind, order_id, *event, None, reason, *(None,) * 6)


class TrackOrdersInRows(TrackOrders):
    """Rows in, rows out."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        events = [(row.event_type, row.timestamp_ms, row.about) for row in rows]
        return iter(self.take(key[0], events))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        return iter(self.expire(key[0], timerValues.getCurrentWatermarkInMs()))


class TrackOrdersInPandas(TrackOrders):
    """Frames in, frames out."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        events = [event for frame in rows for event in frame[list(EVENT_COLUMNS)].itertuples(index=False, name=None)]
        return as_frames(self.take(key[0], events), TRACKED)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        return as_frames(self.expire(key[0], timerValues.getCurrentWatermarkInMs()), TRACKED)


class KeepStock(StatefulProcessor):
    """Branch 4. A micro-batch has all moves of a stretch of event time: the tracker's sink shows whole batches."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.shelf = handle.getValueState("shelf", "level LONG, cumulative_change LONG, tidy_ms LONG")
        self.back_orders = handle.getMapState("back-orders", "order_id STRING", "until_ms LONG")
        self.lifetime_ms = millis(SHOP.order_lifetime_s)

    def move(self, product_id: str, moves: Iterable[tuple[str, str, int, int]]) -> list[Any]:
        level, cumulative, tidy_ms = self.shelf.get() or (SHOP.initial_stock, 0, 0)
        rows = []
        for order_id, kind, quantity, at_ms in sorted(moves, key=lambda move: (move[3], move[0], RANK[move[1]])):
            if kind == "CANCELLED":
                if self.back_orders.containsKey((order_id,)):
                    self.back_orders.removeKey((order_id,))
                    continue
                change = quantity
            elif quantity > level:
                until_ms = at_ms + self.lifetime_ms
                self.back_orders.updateValue((order_id,), (until_ms,))
                if until_ms > tidy_ms:
                    tidy_ms = -(-until_ms // TIDY_MS) * TIDY_MS
                    self.handle.registerTimer(tidy_ms)
                rows.append(StockedRow("back-order", product_id, order_id, None, level, None, quantity, at_ms))
                continue
            else:
                change = -quantity
            before, level, cumulative = level, level + change, cumulative + change
            rows.append(StockedRow("stock", product_id, order_id, change, level, cumulative, None, at_ms))
            if level < SHOP.low_stock <= before:
                rows.append(StockedRow("low-stock", product_id, order_id, None, level, None, None, at_ms))
        self.shelf.update((level, cumulative, tidy_ms))
        return rows

    def tidy(self, now_ms: int) -> None:
        """Remove expired back-orders."""
        for (order_id,), (until_ms,) in list(self.back_orders.iterator()):
            if until_ms <= now_ms:
                self.back_orders.removeKey((order_id,))

    def close(self) -> None:
        pass


class KeepStockInRows(KeepStock):
    """Rows in, rows out."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        moves = [(row.order_id, row.event_type, row.quantity, row.timestamp_ms) for row in rows]
        return iter(self.move(key[0], moves))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        self.tidy(expiredTimerInfo.getExpiryTimeInMs())
        return iter(())


class KeepStockInPandas(KeepStock):
    """Frames in, frames out."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        moves = [move for frame in rows for move in frame[list(MOVE_COLUMNS)].itertuples(index=False, name=None)]
        return as_frames(self.move(key[0], moves), STOCKED)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        self.tidy(expiredTimerInfo.getExpiryTimeInMs())
        return iter(())


def as_frames(rows: list[Any], schema: str) -> Iterator[pd.DataFrame]:
    """Yield one frame of all rows, or none without rows."""
    import pandas as pd

    return iter([pd.DataFrame(rows, columns=names_of(schema))] if rows else [])
