"""PyFlink's functions for the five branches: the example's, over tuples of declared types.

They are in a module of their own, so that PyFlink's workers import them: no Java object may be pickled with them.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Types
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.functions import FlatMapFunction
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

from benchmarks.orders.ledger import Ledger
from benchmarks.orders.workload import (
    AMOUNT,
    CATEGORY,
    EVENT_TYPE,
    ITEM_COUNT,
    ITEMS,
    ORDER_ID,
    TIMESTAMP,
    USER_ID,
    read_events,
)

TIDY_MS = 86_400_000
RANK = {"CREATED": 0, "PAYMENT_COMPLETED": 1, "SHIPPED": 2, "DELIVERED": 3, "CANCELLED": 4}

STRING, INT, LONG = Types.STRING(), Types.INT(), Types.LONG()
# Items are JSON: in thread mode a list of tuples arrives as copies of one tuple. Few functions read them.
EVENT = Types.TUPLE([STRING, STRING, STRING, LONG, INT, STRING, STRING, LONG])
#: order id, event type, time, reason
SET_ASIDE = Types.TUPLE([STRING, STRING, LONG, STRING])
#: order id, status, and the times of its five steps, 0 if there is none
STATUS = Types.TUPLE([STRING, STRING, LONG, LONG, LONG, LONG, LONG])
#: user id, order id, amount, items, category, is refund, time
PURCHASE = Types.TUPLE([STRING, STRING, LONG, INT, STRING, Types.BOOLEAN(), LONG])
#: user id, window's start and end, orders, total, average, items, categories, refunds, refunded
USER_PURCHASES = Types.TUPLE([STRING, LONG, LONG, LONG, LONG, LONG, LONG, Types.MAP(STRING, LONG), LONG, LONG])
#: product id, order id, event type, quantity, time
MOVE = Types.TUPLE([STRING, STRING, STRING, LONG, LONG])
#: product id, order id, change, level, all changes, time
STOCK = Types.TUPLE([STRING, STRING, LONG, LONG, LONG, LONG])
LOW = Types.TUPLE([STRING, LONG, STRING, LONG])
BACK_ORDER = Types.TUPLE([STRING, STRING, LONG, LONG, LONG])

DROPPED = OutputTag("dropped", SET_ASIDE)
REJECTED = OutputTag("rejected", SET_ASIDE)
STATUSES = OutputTag("statuses", STATUS)
MOVES = OutputTag("moves", MOVE)
LOW_STOCK = OutputTag("low-stock", LOW)
BACK_ORDERS = OutputTag("back-orders", BACK_ORDER)


def late_purchases() -> OutputTag:
    """The tag of late purchases, made anew each time: a window is pickled with its types, without Java objects."""
    text, number = Types.STRING, Types.LONG
    purchase = [text(), text(), number(), Types.INT(), text(), Types.BOOLEAN(), number()]
    return OutputTag("late-purchases", Types.TUPLE(purchase))


class HandOut(FlatMapFunction):
    """Emits prepared event number n. All shares have equally many numbers; those beyond a share's end emit nothing."""

    def __init__(self, folder: str, shares: int, numbers_per_share: int) -> None:
        self.folder, self.shares, self.numbers_per_share = folder, shares, numbers_per_share

    def open(self, runtime_context: RuntimeContext) -> None:
        self.loaded: dict[int, list[Any]] = {}

    def flat_map(self, value: int) -> Iterable[Any]:
        share, place = divmod(value, self.numbers_per_share)
        events = self.loaded.get(share)
        if events is None:
            prepared = read_events(Path(self.folder), share, self.shares)
            events = [(*event[:ITEMS], json.dumps(event[ITEMS]), event[TIMESTAMP]) for event in prepared]
            self.loaded[share] = events
            gc.freeze()
        return (events[place],) if place < len(events) else ()


class EventTime(TimestampAssigner):
    """The last field."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[TIMESTAMP])


def first(record: Any) -> str:
    """The key: order, user and product stand first in what is keyed by them."""
    key: str = record[0]
    return key


class Deduplicate(KeyedProcessFunction):
    """Branch 1."""

    def __init__(self, directory: str, horizon_ms: int) -> None:
        self.directory, self.horizon_ms = directory, horizon_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY()))
        self.ledger = Ledger(self.directory)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.ledger.mark()
        timers = ctx.timer_service()
        kind, time_ms = value[EVENT_TYPE], value[TIMESTAMP]
        if time_ms <= timers.current_watermark() - self.horizon_ms:
            self.ledger.add("dropped", time_ms)
            yield DROPPED, (value[ORDER_ID], kind, time_ms, "older than the horizon")
            return
        until_ms = time_ms + self.horizon_ms
        seen = self.seen.value()
        if seen is None:
            self.seen.update(([(kind, time_ms)], until_ms))
            timers.register_event_time_timer(until_ms)
        elif (kind, time_ms) in seen[0]:
            self.ledger.add("dropped", time_ms)
            yield DROPPED, (value[ORDER_ID], kind, time_ms, "duplicate")
            return
        else:
            self.seen.update(([*seen[0], (kind, time_ms)], max(seen[1], until_ms)))
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        self.ledger.worked()
        seen = self.seen.value()
        if seen is not None:
            if seen[1] <= timestamp:
                self.seen.clear()
            else:
                ctx.timer_service().register_event_time_timer(seen[1])
        return iter(())


class WriteBatches(FlatMapFunction):
    """Branch 5. PyFlink has no operator state and no sinks in Python: the partial batch is a list of the function."""

    def __init__(self, directory: str, size: int) -> None:
        self.directory, self.size = directory, size

    def open(self, runtime_context: RuntimeContext) -> None:
        self.batch: list[Any] = []
        self.ledger = Ledger(self.directory)

    def flat_map(self, value: Any) -> Iterable[int]:
        self.ledger.add("batches", value[AMOUNT])
        self.batch.append(value)
        if len(self.batch) == self.size:
            self.batch = []
        return ()


class InEventTimeOrder(KeyedProcessFunction):
    """Holds records back until the watermark has passed their time.

    The waiting records and the memory of a subclass are one value of state: each value that is not cached is a call to
    the JVM and back, and so is each key of a map.
    """

    time_field: int
    order_field: int
    type_field: int

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.PICKLED_BYTE_ARRAY()))
        self.ledger = Ledger(self.directory)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        time_ms = value[self.time_field]
        memory, waiting = self.state.value() or (None, [])
        if all(other[self.time_field] != time_ms for other in waiting):
            ctx.timer_service().register_event_time_timer(time_ms)
        self.state.update((memory, [*waiting, value]))
        return iter(())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        self.ledger.worked()
        memory, waiting = self.state.value() or (None, [])
        due = [record for record in waiting if record[self.time_field] == timestamp]
        later = [record for record in waiting if record[self.time_field] != timestamp] if due else waiting
        results: list[Any] = []
        for record in sorted(due, key=self.in_order):
            memory = self.apply(memory, record, ctx, results)
        memory = self.tidied(memory, timestamp)
        if memory is None and not later:
            self.state.clear()
        else:
            self.state.update((memory, later))
        return iter(results)

    def in_order(self, record: Any) -> tuple[int, str, int]:
        return record[self.time_field], record[self.order_field], RANK[record[self.type_field]]

    def apply(self, memory: Any, record: Any, ctx: Any, results: list[Any]) -> Any:
        """Process the next record; return the memory after it."""
        raise NotImplementedError

    def tidied(self, memory: Any, timestamp: int) -> Any:
        """Return the memory that is still needed."""
        raise NotImplementedError


#: For each event: the statuses in which it fits, the status after it, and the place of its time.
TRANSITIONS = {
    "PAYMENT_COMPLETED": (("CREATED",), "PAID", 3),
    "SHIPPED": (("PAID",), "SHIPPED", 4),
    "DELIVERED": (("SHIPPED",), "DELIVERED", 5),
    "CANCELLED": (("CREATED", "PAID", "SHIPPED"), "CANCELLED", 6),
}
CREATED_MS, PAID_MS, DELIVERED_MS, CANCELLED_MS = 2, 3, 5, 6


def after(order: Any, event: Any) -> tuple[Any, ...] | str:
    """The order after an event, or the reason why the event does not fit."""
    step = event[EVENT_TYPE]
    if step == "CREATED":
        if order is None:
            return (event[ORDER_ID], "CREATED", event[TIMESTAMP], 0, 0, 0, 0)
        return f"{step} does not follow {order[1]}"
    if order is None:
        return f"{step} of an order that was not created"
    fits, status, place = TRANSITIONS[step]
    if order[1] not in fits:
        return f"{step} does not follow {order[1]}"
    changed = list(order)
    changed[1], changed[place] = status, event[TIMESTAMP]
    return tuple(changed)


class TrackOrders(InEventTimeOrder):
    """Branch 2. Emits one stream for each later branch, of the records that follow from the steps.

    Purchases are the main stream: in thread mode, side outputs have no timestamp, and the windows need one.
    """

    time_field, order_field, type_field = TIMESTAMP, ORDER_ID, EVENT_TYPE

    def __init__(self, directory: str, retention_ms: int, lifetime_ms: int) -> None:
        super().__init__(directory)
        self.retention_ms, self.lifetime_ms = retention_ms, lifetime_ms

    def apply(self, memory: Any, record: Any, ctx: Any, results: list[Any]) -> Any:
        order = after(memory, record)
        if isinstance(order, str):
            self.ledger.add("rejected", record[TIMESTAMP])
            results.append((REJECTED, (record[ORDER_ID], record[EVENT_TYPE], record[TIMESTAMP], order)))
            return memory
        if memory is None or order[1] in ("DELIVERED", "CANCELLED"):
            ctx.timer_service().register_event_time_timer(self.forgotten_ms(order))
        self.ledger.add("statuses", sum(order[CREATED_MS:]))
        results.append((STATUSES, order))
        results.extend(purchases_of(record, memory is not None and memory[PAID_MS] > 0))
        results.extend((MOVES, move) for move in moves_of(record))
        return order

    def tidied(self, memory: Any, timestamp: int) -> Any:
        return None if memory is not None and self.forgotten_ms(memory) <= timestamp else memory

    def forgotten_ms(self, order: Any) -> int:
        ended_ms = order[CANCELLED_MS] or order[DELIVERED_MS]
        forgotten_ms = int(order[CREATED_MS] + self.lifetime_ms)
        return min(forgotten_ms, ended_ms + self.retention_ms) if ended_ms else forgotten_ms


def purchases_of(event: Any, was_paid: bool) -> Iterator[Any]:
    paid = event[EVENT_TYPE] == "PAYMENT_COMPLETED"
    if paid or (event[EVENT_TYPE] == "CANCELLED" and was_paid):
        about = event[USER_ID], event[ORDER_ID], event[AMOUNT], event[ITEM_COUNT], event[CATEGORY]
        yield (*about, not paid, event[TIMESTAMP])


def moves_of(event: Any) -> Iterator[Any]:
    if event[EVENT_TYPE] not in ("CREATED", "CANCELLED"):
        return
    wanted: dict[str, int] = {}
    for product_id, _, quantity, _ in json.loads(event[ITEMS]):
        wanted[product_id] = wanted.get(product_id, 0) + quantity
    for product_id, quantity in wanted.items():
        yield product_id, event[ORDER_ID], event[EVENT_TYPE], quantity, event[TIMESTAMP]


class SumPurchases(AggregateFunction):
    """Branch 3."""

    def create_accumulator(self) -> Any:
        return 0, 0, 0, {}, 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        orders, total, items, categories, refunds, refunded = accumulator
        _, _, amount, count, category, is_refund, _ = value
        if is_refund:
            return orders, total, items, categories, refunds + 1, refunded + amount
        categories[category] = categories.get(category, 0) + 1
        return orders + 1, total + amount, items + count, categories, refunds, refunded

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError("tumbling windows are never merged")


class DescribeWindow(ProcessWindowFunction):
    """Adds the user and the window to the sums."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self.ledger = Ledger(self.directory)

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        for orders, total, items, categories, refunds, refunded in elements:
            average = (2 * total + orders) // (2 * orders) if orders else 0
            self.ledger.add("purchases", total + average + items + refunded)
            sums = orders, total, average, items, dict(sorted(categories.items())), refunds, refunded
            yield (key, window.start, window.end, *sums)


class CountLate(FlatMapFunction):
    """Counts purchases that come too late; there should be none."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self.ledger = Ledger(self.directory)

    def flat_map(self, value: Any) -> Iterable[int]:
        self.ledger.add("late-purchases", value[2])
        return ()


class KeepStock(InEventTimeOrder):
    """Branch 4."""

    time_field, order_field, type_field = 4, 1, 2

    def __init__(self, directory: str, initial_stock: int, low_stock: int, lifetime_ms: int) -> None:
        super().__init__(directory)
        self.initial_stock, self.low_stock, self.lifetime_ms = initial_stock, low_stock, lifetime_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        back_orders = MapStateDescriptor("back-orders", Types.STRING(), Types.LONG())
        self.back_orders = runtime_context.get_map_state(back_orders)

    def apply(self, memory: Any, record: Any, ctx: Any, results: list[Any]) -> Any:
        product_id, order_id, kind, quantity, time_ms = record
        before, cumulative = memory or (self.initial_stock, 0)
        if kind == "CANCELLED":
            if self.back_orders.contains(order_id):
                self.back_orders.remove(order_id)
                return memory
            change = quantity
        elif quantity > before:
            until_ms = time_ms + self.lifetime_ms
            self.back_orders.put(order_id, until_ms)
            ctx.timer_service().register_event_time_timer(-(-until_ms // TIDY_MS) * TIDY_MS)
            self.ledger.add("back-orders", quantity + before)
            results.append((BACK_ORDERS, (order_id, product_id, quantity, before, time_ms)))
            return memory
        else:
            change = -quantity
        level, cumulative = before + change, cumulative + change
        self.ledger.add("stock", level)
        results.append((product_id, order_id, change, level, cumulative, time_ms))
        if level < self.low_stock <= before:
            self.ledger.add("low-stock", level + time_ms)
            results.append((LOW_STOCK, (product_id, level, order_id, time_ms)))
        return level, cumulative

    def tidied(self, memory: Any, timestamp: int) -> Any:
        if timestamp % TIDY_MS == 0:
            for order_id, until_ms in list(self.back_orders.items()):
                if until_ms <= timestamp:
                    self.back_orders.remove(order_id)
        return memory
