"""Sorts the records of each key by event time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Protocol

from examples.orders.records import EventType
from rekindle.datastream import KeyedProcessFunction, RuntimeContext
from rekindle.datastream.state import MapState, MapStateDescriptor

_RANK = {event_type: rank for rank, event_type in enumerate(EventType)}


class Timed(Protocol):
    """A record that belongs to a step of an order."""

    @property
    def order_id(self) -> str: ...

    @property
    def event_type(self) -> EventType: ...

    @property
    def timestamp_ms(self) -> int: ...


def in_order(record: Timed) -> tuple[int, str, int]:
    """Sort key: event time, order id and step."""
    return record.timestamp_ms, record.order_id, _RANK[record.event_type]


class InEventTimeOrder(KeyedProcessFunction):
    """Holds records back until the watermark reaches their time, then applies them in order.

    So the result depends on the records alone, not on how several streams happened to interleave. Records wait in
    keyed state, by their time, with one timer per time: both are part of every checkpoint. A record that comes after
    the watermark has passed its time is applied at the next watermark.
    """

    #: The type of the waiting records, set by subclasses.
    record_type: type

    def open(self, runtime_context: RuntimeContext) -> None:
        waiting = MapStateDescriptor("waiting", int, tuple[self.record_type, ...])  # type: ignore[name-defined]
        self._waiting: MapState[int, tuple[Any, ...]] = runtime_context.get_map_state(waiting)

    @abstractmethod
    def apply(self, record: Any, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        """Process the next record; returns the records to emit."""

    def process_element(self, value: Timed, ctx: KeyedProcessFunction.Context) -> None:
        time = value.timestamp_ms
        others = self._waiting.get(time)
        if others is None:
            self._waiting.put(time, (value,))
            ctx.timer_service().register_event_time_timer(time)
        else:
            self._waiting.put(time, (*others, value))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        due = self._waiting.get(timestamp)
        if due is None:
            return ()
        self._waiting.remove(timestamp)
        if len(due) == 1:
            return self.apply(due[0], ctx)
        return [out for record in sorted(due, key=in_order) for out in self.apply(record, ctx)]
