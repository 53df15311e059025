"""The generated orders as a source that can be read again from any position, also by another number of readers.

The feed has a fixed number of splits. Order n belongs to split n mod splits, with all its events. A split's position is
its last emitted arrival; later ones are computed again, because the events of an order depend on its number alone. A
reader merges its splits by time of arrival: a split that is behind catches up before the others continue, so that no
event comes later than the watermarks' bound allows, whichever splits a reader got.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from examples.orders.feed import OrderLives
from examples.orders.records import OrderEvent
from examples.orders.settings import Feed
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.datagen import RateLimiter, RateLimiterStrategy

#: (arrival, order, place) of the last emitted event.
Position = tuple[int, int, int]
#: The position before all events.
BEGINNING: Position = (-1, -1, -1)
#: The place of an order's birth: before its first event.
_BIRTH = -1


class OrderSource(Source[OrderEvent]):
    """The source of a feed.

    >>> source = OrderSource(Feed(orders=10, rate=None), out_of_orderness_ms=5000)
    >>> reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    >>> reader.poll(1)[0].event_type
    <EventType.CREATED: 'CREATED'>
    """

    def __init__(self, feed: Feed, out_of_orderness_ms: int) -> None:
        self._lives = OrderLives(feed, out_of_orderness_ms)

    def boundedness(self) -> Boundedness:
        """Bounded if the feed has a number of orders."""
        unbounded = self._lives.feed.orders is None
        return Boundedness.CONTINUOUS_UNBOUNDED if unbounded else Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """The feed's number of splits, independent of the parallelism, so that the parallelism can change."""
        return [SourceSplit(str(split), BEGINNING) for split in range(self._lives.feed.splits)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[OrderEvent]:
        """A reader of these splits, each from its position."""
        rate = self._lives.feed.rate
        strategy = RateLimiterStrategy.no_op() if rate is None else RateLimiterStrategy.per_second(rate)
        return OrderReader(self._lives, splits, strategy.create_rate_limiter(context.parallelism))


class _Entry(NamedTuple):
    """An entry of the queue: an arrival, or the birth of an order (without an event), which adds its arrivals."""

    arrival_ms: int
    order: int
    place: int
    event: Any = None


class OrderReader(SourceReader[OrderEvent]):
    """Merges some splits of a feed by time of arrival."""

    def __init__(self, lives: OrderLives, splits: list[SourceSplit], limiter: RateLimiter | None = None) -> None:
        self._lives = lives
        self._limiter = limiter
        self._splits = lives.feed.splits
        self._positions: dict[int, Position] = {int(each.split_id): tuple(each.position) for each in splits}
        self._coming: list[_Entry] = []
        for split, position in self._positions.items():
            self._seek(split, position)
        heapify(self._coming)

    def is_available(self) -> bool:
        """Whether the rate limit allows an event; the end of the feed is always available."""
        return self._limiter is None or not self._coming or self._limiter.available() > 0

    def poll(self, max_records: int) -> list[OrderEvent] | None:
        """The next events."""
        if not self._coming:
            return None
        if self._limiter is None:
            return self._next(max_records)
        events = self._next(min(max_records, self._limiter.available()))
        self._limiter.take(len(events))
        return events

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """The position of each split."""
        return [SourceSplit(str(split), position) for split, position in self._positions.items()]

    def _next(self, count: int) -> list[OrderEvent]:
        events: list[OrderEvent] = []
        coming, positions, splits = self._coming, self._positions, self._splits
        while coming and len(events) < count:
            arrival_ms, order, place, event = heappop(coming)
            if place == _BIRTH:
                for arrival in self._lives.arrivals(order):
                    heappush(coming, _Entry(*arrival))
                self._expect(order + splits)
            else:
                events.append(event)
                positions[order % splits] = (arrival_ms, order, place)
        return events

    def _seek(self, split: int, position: Position) -> None:
        """Queue the arrivals after a position of orders created before it, and the birth of the next order."""
        order = self._first_alive(split, position[0])
        while (self._lives.created_ms(order), order, _BIRTH) <= position and self._exists(order):
            later = [arrival for arrival in self._lives.arrivals(order) if arrival[:3] > position]
            self._coming.extend(_Entry(*arrival) for arrival in later)
            order += self._splits
        if self._exists(order):
            self._coming.append(_Entry(self._lives.created_ms(order), order, _BIRTH))

    def _first_alive(self, split: int, arrival_ms: int) -> int:
        since_ms = self._lives.first_alive_ms(arrival_ms) - self._lives.created_ms(0)
        before = since_ms * self._lives.feed.orders_per_hour // 3_600_000 - 1  # rounded down to be safe
        return split + max(0, before) // self._splits * self._splits

    def _expect(self, order: int) -> None:
        if self._exists(order):
            heappush(self._coming, _Entry(self._lives.created_ms(order), order, _BIRTH))

    def _exists(self, order: int) -> bool:
        orders = self._lives.feed.orders
        return orders is None or order < orders


def whole_feed(feed: Feed, out_of_orderness_ms: int) -> OrderReader:
    """A single reader of all splits, without a rate limit."""
    source = OrderSource(feed, out_of_orderness_ms)
    return OrderReader(OrderLives(feed, out_of_orderness_ms), source.create_splits(1))


def all_events(feed: Feed, out_of_orderness_ms: int) -> list[OrderEvent]:
    """Every event of a bounded feed, duplicates included, in the order of a single reader.

    >>> len(all_events(Feed(orders=5, duplicates=0, cancellations=0, misfits=0), 5000))
    20
    """
    reader = whole_feed(feed, out_of_orderness_ms)
    return [event for polled in iter(lambda: reader.poll(10_000), None) for event in polled]
