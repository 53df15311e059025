"""Branch 1: drops events that an order has had before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from examples.orders.records import Dropped, EventType, OrderEvent
from rekindle.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from rekindle.datastream.state import ValueState, ValueStateDescriptor

DROPPED = OutputTag("dropped", Dropped)


@dataclass(frozen=True, slots=True)
class Seen:
    """The events of an order so far, and the time until which they are remembered."""

    events: tuple[tuple[EventType, int], ...]
    until_ms: int


class Deduplicate(KeyedProcessFunction):
    """Keyed by order. Type and time identify an event: a second payment at another time is another event.

    State is bounded. An order is remembered until `horizon_ms` after its last event, in event time, so that a job that
    was down for a day has forgotten nothing meanwhile. An event older than the horizon may be a duplicate of a
    forgotten one, and is dropped with that reason.
    """

    def __init__(self, horizon_ms: int) -> None:
        self._horizon_ms = horizon_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen: ValueState[Seen] = runtime_context.get_state(ValueStateDescriptor("seen", Seen))

    def process_element(self, value: OrderEvent, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        time = value.timestamp_ms
        if time <= timers.current_watermark() - self._horizon_ms:
            yield DROPPED, _dropped(value, "older than the horizon")
            return
        event, until_ms = (value.event_type, time), time + self._horizon_ms
        seen = self._seen.value()
        if seen is None:
            self._seen.update(Seen((event,), until_ms))
            timers.register_event_time_timer(until_ms)
        elif event in seen.events:
            yield DROPPED, _dropped(value, "duplicate")
            return
        else:
            self._seen.update(Seen((*seen.events, event), max(seen.until_ms, until_ms)))
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        seen = self._seen.value()
        if seen is None:
            return
        if seen.until_ms <= timestamp:
            self._seen.clear()
        else:
            ctx.timer_service().register_event_time_timer(seen.until_ms)


def _dropped(event: OrderEvent, reason: str) -> Dropped:
    return Dropped(event.order_id, event.event_type, event.timestamp_ms, reason)
