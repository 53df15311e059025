"""Generates the orders of a shop from a seed: the events of order number n depend on the feed and n alone."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from examples.orders.records import EventType, OrderEvent, OrderItem
from examples.orders.settings import Feed

#: The first order is created at this time: 2024-01-01 00:00 UTC.
START_MS = 1_704_067_200_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
#: The longest time from an order's creation to the last arrival of its events, without the out-of-orderness.
LONGEST_LIFE_MS = 140 * MINUTE_MS

_PAY_MS, _SHIP_MS, _DELIVER_MS = 10 * MINUTE_MS, 30 * MINUTE_MS, 60 * MINUTE_MS
_CANCEL_MS, _MISFIT_MS, _REPEAT_MS = 10 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS
_NAMES = ("Phone", "Laptop", "Book", "Chair", "Ball", "Lamp", "Kettle", "Tent")
_CATEGORIES = ("Electronics", "Clothing", "Books", "Home", "Sports", "Garden", "Music", "Toys")
_HAPPY = (EventType.CREATED, EventType.PAYMENT_COMPLETED, EventType.SHIPPED, EventType.DELIVERED)

_Steps = list[tuple[EventType, int]]


class Arrival(NamedTuple):
    """An event and its time of arrival. The first three fields are unique in a feed, and sort its arrivals."""

    arrival_ms: int
    order: int
    place: int
    event: OrderEvent


@dataclass(frozen=True)
class OrderLives:
    """Computes the events of each order of a feed."""

    feed: Feed
    out_of_orderness_ms: int

    def created_ms(self, order: int) -> int:
        """The time at which an order is created: orders are evenly spaced.

        >>> OrderLives(Feed(orders_per_hour=60), 0).created_ms(2) - START_MS
        120000
        """
        return START_MS + order * HOUR_MS // self.feed.orders_per_hour

    def first_alive_ms(self, arrival_ms: int) -> int:
        """A time such that orders created before it have no arrivals after `arrival_ms`."""
        return arrival_ms - LONGEST_LIFE_MS - self.out_of_orderness_ms

    def arrivals(self, order: int) -> list[Arrival]:
        """All arrivals of an order, duplicates included, unsorted."""
        feed, bound_ms = self.feed, self.out_of_orderness_ms
        draw = Random(feed.seed * 1_000_000_007 + order)
        chance = draw.random
        order_id, user_id = f"order-{order:08d}", f"user-{int(chance() * feed.users):05d}"
        category = _category(int(chance() * chance() * feed.categories))
        items = self._items(draw)
        amount = sum(item.quantity * item.price_cents for item in items)
        found: list[Arrival] = []
        for event_type, at_ms in self._steps(order, draw):
            event = OrderEvent(order_id, user_id, event_type, amount, len(items), category, items, at_ms)
            late = chance() < feed.out_of_order
            arrival_ms = at_ms + (int(chance() * (bound_ms + 1)) if late else 0)
            found.append(Arrival(arrival_ms, order, len(found), event))
            if chance() < feed.duplicates:
                found.append(Arrival(arrival_ms + int(chance() * _REPEAT_MS), order, len(found), event))
        return found

    def _items(self, draw: Random) -> tuple[OrderItem, ...]:
        chance, products = draw.random, self.feed.products
        # The chance is squared, so that the first products sell best and run out.
        chosen = {int(chance() ** 2 * products): None for _ in range(1 + int(chance() * 3))}
        return tuple(_item(product, 1 + int(chance() * 3)) for product in chosen)

    def _steps(self, order: int, draw: Random) -> _Steps:
        chance = draw.random
        created_ms = self.created_ms(order)
        paid_ms = created_ms + 1 + int(chance() * _PAY_MS)
        shipped_ms = paid_ms + 1 + int(chance() * _SHIP_MS)
        delivered_ms = shipped_ms + 1 + int(chance() * _DELIVER_MS)
        steps = list(zip(_HAPPY, (created_ms, paid_ms, shipped_ms, delivered_ms), strict=True))
        if chance() < self.feed.cancellations:
            del steps[1 + int(chance() * 3) :]
            steps.append((EventType.CANCELLED, steps[-1][1] + 1 + int(chance() * _CANCEL_MS)))
        if chance() < self.feed.misfits:
            _spoil(steps, draw)
        return steps


def _spoil(steps: _Steps, draw: Random) -> None:
    """Make one event invalid: add one after the end, leave one out, or swap two."""
    kind = int(draw.random() * 3)
    last_ms = steps[-1][1] + 1 + int(draw.random() * _MISFIT_MS)
    if kind == 0:
        steps.append((EventType.SHIPPED, last_ms))
    elif kind == 1:
        del steps[0]
    elif len(steps) > 2:
        (first, first_ms), (second, second_ms) = steps[1:3]
        steps[1:3] = [(second, first_ms), (first, second_ms)]
    else:
        steps.append((EventType.CREATED, last_ms))


def _item(product: int, quantity: int) -> OrderItem:
    price_cents = 199 + product * 7919 % 50_000
    return OrderItem(f"product-{product:04d}", f"{_NAMES[product % len(_NAMES)]} {product}", quantity, price_cents)


def _category(number: int) -> str:
    name = _CATEGORIES[number % len(_CATEGORIES)]
    return name if number < len(_CATEGORIES) else f"{name} {number // len(_CATEGORIES) + 1}"
