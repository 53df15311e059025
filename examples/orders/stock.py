"""Branch 4: the stock of each product, warnings when it runs low, and orders that have to wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from examples.orders.ordering import InEventTimeOrder
from examples.orders.records import BackOrder, EventType, LowStock, Step, StockMove, StockUpdate
from rekindle.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from rekindle.datastream.state import MapState, MapStateDescriptor, ValueState, ValueStateDescriptor

LOW_STOCK = OutputTag("low stock", LowStock)
BACK_ORDERS = OutputTag("back-orders", BackOrder)
#: How often, in event time, expired back-orders are removed.
_TIDY_MS = 86_400_000


def moves_of(step: Step) -> Iterator[StockMove]:
    """An order takes its products when it is created and gives them back when it is cancelled."""
    event = step.event
    if event.event_type not in (EventType.CREATED, EventType.CANCELLED):
        return
    wanted: dict[str, int] = {}
    for item in event.items:
        wanted[item.product_id] = wanted.get(item.product_id, 0) + item.quantity
    for product_id, quantity in wanted.items():
        yield StockMove(product_id, event.order_id, event.event_type, quantity, event.timestamp_ms)


@dataclass(frozen=True, slots=True)
class Shelf:
    """The stock of a product, and the sum of its changes."""

    level: int
    cumulative_change: int = 0


class KeepStock(InEventTimeOrder):
    """Keyed by product. Emits each change, warnings to LOW_STOCK, and orders that the stock cannot fill to BACK_ORDERS.

    Stock never goes below zero: an order for more than the stock is back-ordered for this product. It takes nothing,
    and so gives nothing back when it is cancelled; for that it is remembered for `lifetime_ms`, the longest life of an
    order.
    """

    record_type = StockMove

    def __init__(self, initial_stock: int, low_stock: int, lifetime_ms: int) -> None:
        self._initial_stock = initial_stock
        self._low_stock = low_stock
        self._lifetime_ms = lifetime_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self._shelf: ValueState[Shelf] = runtime_context.get_state(ValueStateDescriptor("shelf", Shelf))
        back_orders = MapStateDescriptor("back-orders", str, int)
        self._back_orders: MapState[str, int] = runtime_context.get_map_state(back_orders)

    def apply(self, record: StockMove, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        shelf = self._shelf.value() or Shelf(self._initial_stock)
        product, order, time = record.product_id, record.order_id, record.timestamp_ms
        if record.event_type is EventType.CANCELLED:
            if self._back_orders.contains(order):
                self._back_orders.remove(order)
                return ()
            change = record.quantity
        elif record.quantity > shelf.level:
            self._remember_back_order(record, ctx)
            return [(BACK_ORDERS, BackOrder(order, product, record.quantity, shelf.level, time))]
        else:
            change = -record.quantity
        level, cumulative = shelf.level + change, shelf.cumulative_change + change
        self._shelf.update(Shelf(level, cumulative))
        update = StockUpdate(product, order, change, level, cumulative, time)
        if level < self._low_stock <= shelf.level:
            return [update, (LOW_STOCK, LowStock(product, level, order, time))]
        return [update]

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        results = super().on_timer(timestamp, ctx)
        if timestamp % _TIDY_MS == 0:
            for order_id, until_ms in list(self._back_orders.items()):
                if until_ms <= timestamp:
                    self._back_orders.remove(order_id)
        return results

    def _remember_back_order(self, move: StockMove, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        until_ms = move.timestamp_ms + self._lifetime_ms
        self._back_orders.put(move.order_id, until_ms)
        ctx.timer_service().register_event_time_timer(-(-until_ms // _TIDY_MS) * _TIDY_MS)
