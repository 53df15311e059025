"""Branch 2: the status of each order, CREATED → PAID → SHIPPED → DELIVERED or CANCELLED, with the time of each step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from examples.orders.ordering import InEventTimeOrder
from examples.orders.records import EventType, OrderEvent, OrderStatus, Rejected, Status, Step
from rekindle.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from rekindle.datastream.state import ValueState, ValueStateDescriptor

REJECTED = OutputTag("rejected", Rejected)
STEPS = OutputTag("steps", Step)

#: For each event: the statuses in which it fits, the status after it, and the field for its time.
TRANSITIONS: dict[EventType, tuple[frozenset[Status], Status, str]] = {
    EventType.PAYMENT_COMPLETED: (frozenset({Status.CREATED}), Status.PAID, "paid_ms"),
    EventType.SHIPPED: (frozenset({Status.PAID}), Status.SHIPPED, "shipped_ms"),
    EventType.DELIVERED: (frozenset({Status.SHIPPED}), Status.DELIVERED, "delivered_ms"),
    # An order can be cancelled until it is delivered; returns after that are not part of this system.
    EventType.CANCELLED: (frozenset({Status.CREATED, Status.PAID, Status.SHIPPED}), Status.CANCELLED, "cancelled_ms"),
}


def after(order: OrderStatus | None, event: OrderEvent, kind: type[OrderStatus] = OrderStatus) -> OrderStatus | str:
    """The order after an event, or the reason why the event does not fit; a new order is of `kind`.

    >>> from examples.orders.records import EventType, OrderEvent
    >>> shipped = OrderEvent("o1", "u1", EventType.SHIPPED, 100, 0, "Books", (), 5)
    >>> after(None, shipped)
    'SHIPPED of an order that was not created'
    >>> after(OrderStatus("o1", Status.CREATED, 1), shipped)
    'SHIPPED does not follow CREATED'
    >>> after(OrderStatus("o1", Status.PAID, 1, paid_ms=3), shipped).status
    <Status.SHIPPED: 'SHIPPED'>
    """
    step = event.event_type
    if step is EventType.CREATED:
        if order is None:
            return kind(event.order_id, Status.CREATED, event.timestamp_ms)
        return f"{step} does not follow {order.status}"
    if order is None:
        return f"{step} of an order that was not created"
    fits, status, field = TRANSITIONS[step]
    if order.status not in fits:
        return f"{step} does not follow {order.status}"
    return replace(order, status=status, **{field: event.timestamp_ms})  # type: ignore[arg-type]


class TrackOrders(InEventTimeOrder):
    """Keyed by order. Emits the order after each step, accepted events to STEPS, and the others to REJECTED.

    An order is forgotten `retention_ms` after its end, or `lifetime_ms` after its creation if it never ends.
    """

    record_type = OrderEvent
    #: The type of an order in state and in the results; a later version of the shop may have more fields.
    status_type: type[OrderStatus] = OrderStatus

    def __init__(self, retention_ms: int, lifetime_ms: int) -> None:
        self._retention_ms = retention_ms
        self._lifetime_ms = lifetime_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        order = ValueStateDescriptor("order", self.status_type)
        self._order: ValueState[OrderStatus] = runtime_context.get_state(order)

    def apply(self, record: OrderEvent, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        before = self._order.value()
        order = after(before, record, self.status_type)
        if isinstance(order, str):
            return [(REJECTED, Rejected(record.order_id, record.event_type, record.timestamp_ms, order))]
        self._order.update(order)
        if before is None or order.status in (Status.DELIVERED, Status.CANCELLED):
            ctx.timer_service().register_event_time_timer(self._forgotten_ms(order))
        return [order, (STEPS, Step(record, before is not None and before.paid_ms is not None))]

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        results = super().on_timer(timestamp, ctx)
        order = self._order.value()
        if order is not None and self._forgotten_ms(order) <= timestamp:
            self._order.clear()
        return results

    def _forgotten_ms(self, order: OrderStatus) -> int:
        ended_ms = order.delivered_ms if order.cancelled_ms is None else order.cancelled_ms
        forgotten_ms = order.created_ms + self._lifetime_ms
        return forgotten_ms if ended_ms is None else min(forgotten_ms, ended_ms + self._retention_ms)
