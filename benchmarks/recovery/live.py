"""The generated orders as a live source: events become available by the wall clock, whether a reader runs or not.

A backlog, which fills the state, is available from the beginning; later events become available one by one. A reader
that was away finds the events that came meanwhile, as it would in Kafka; with the demo's rate limiter it would have to
wait for its own replay.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from examples.orders.feed import START_MS, OrderLives
from examples.orders.records import OrderEvent
from examples.orders.settings import Feed
from examples.orders.source import OrderReader, OrderSource
from rekindle.datastream.connectors.base import SourceReader, SourceReaderContext, SourceSplit

EVENTS_PER_ORDER = 4.2


@dataclass(frozen=True)
class LiveClock:
    """The last available arrival: all of the first `backlog_orders`, then `events_per_second`."""

    backlog_orders: int
    orders_per_hour: int
    events_per_second: float
    #: Holds the wall clock's seconds at which the live part begins; before it exists, only the backlog is there.
    since: Path

    def begin(self) -> None:
        """Start the live part; after a pause, continue it where it was."""
        since = time.time()
        if self._paused.exists():
            since -= float(self._paused.read_text())
            self._paused.unlink()
        unfinished = self.since.with_suffix(".new")
        unfinished.write_text(str(since))
        unfinished.rename(self.since)

    def pause(self) -> None:
        """Stop the clock: the time from here to the next `begin` does not count."""
        if self.since.exists():
            self._paused.write_text(str(time.time() - float(self.since.read_text())))

    @property
    def _paused(self) -> Path:
        return self.since.with_suffix(".paused")

    def arrival_ms(self, since: float | None) -> int:
        """The last arrival that is available now."""
        arrived_ms = START_MS + self.backlog_orders * 3_600_000 // self.orders_per_hour
        if since is None:
            return arrived_ms
        orders = (time.time() - since) * self.events_per_second / EVENTS_PER_ORDER
        return arrived_ms + int(orders * 3_600_000 / self.orders_per_hour)


class LiveOrderSource(OrderSource):
    """The source of a feed, up to the clock's time."""

    def __init__(self, feed: Feed, out_of_orderness_ms: int, clock: LiveClock) -> None:
        super().__init__(feed, out_of_orderness_ms)
        self._clock = clock

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[OrderEvent]:
        return LiveOrderReader(self._lives, splits, self._clock)


class LiveOrderReader(OrderReader):
    """Merges splits by time of arrival, up to now."""

    def __init__(self, lives: OrderLives, splits: list[SourceSplit], clock: LiveClock) -> None:
        super().__init__(lives, splits)
        self._clock = clock
        self._since: float | None = None

    def is_available(self) -> bool:
        return self._coming[0].arrival_ms <= self._now_ms()

    def poll(self, max_records: int) -> list[OrderEvent]:
        now_ms, events = self._now_ms(), []
        while len(events) < max_records and self._coming[0].arrival_ms <= now_ms:
            events += self._next(1)
        return events

    def _now_ms(self) -> int:
        if self._since is None and self._clock.since.exists():
            self._since = float(self._clock.since.read_text())
        return self._clock.arrival_ms(self._since)
