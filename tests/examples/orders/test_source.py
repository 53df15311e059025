"""The generated orders: always the same, readable from any position, in any number of parts."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from examples.orders.feed import LONGEST_LIFE_MS, OrderLives
from examples.orders.records import OrderEvent
from examples.orders.settings import Feed
from examples.orders.source import OrderReader, OrderSource, all_events
from rekindle.datastream.connectors.base import Boundedness, SourceReaderContext, SourceSplit, assign_splits
from rekindle.datastream.connectors.datagen import RateLimiter
from rekindle.testing.manual_clock import ManualClock
from tests.examples.orders.order_samples import CANCELLED, CREATED, DELIVERED, LIVELY

BOUND_MS = 5000


def readers(feed: Feed, parallelism: int, splits: list[SourceSplit] | None = None) -> list[OrderReader]:
    source = OrderSource(feed, BOUND_MS)
    assigned = assign_splits(splits or source.create_splits(parallelism), parallelism)
    made = [source.create_reader(SourceReaderContext(i, parallelism), own) for i, own in enumerate(assigned)]
    return [reader for reader in made if isinstance(reader, OrderReader)]


def drain(reader: OrderReader) -> list[OrderEvent]:
    return [event for polled in iter(lambda: reader.poll(37), None) for event in polled]


def keys(events: list[OrderEvent]) -> list[tuple[str, str, int]]:
    return sorted((event.order_id, event.event_type, event.timestamp_ms) for event in events)


def test_a_feed_is_the_same_every_time_and_another_seed_is_another_feed():
    assert all_events(LIVELY, BOUND_MS) == all_events(LIVELY, BOUND_MS)
    assert all_events(LIVELY, BOUND_MS) != all_events(replace(LIVELY, seed=8), BOUND_MS)


@pytest.mark.parametrize("seed", range(3))
def test_replayed_from_any_position_at_any_parallelism_nothing_is_missing_and_nothing_is_twice(seed):
    feed, chance = replace(LIVELY, seed=seed), random.Random(seed)
    everything = keys(all_events(feed, BOUND_MS))
    splits: list[SourceSplit] | None = None
    read: list[OrderEvent] = []
    for parallelism in (2, 3, 1, 5, 7, 2):
        current = readers(feed, parallelism, splits)
        for reader in current:
            read.extend(reader.poll(chance.randrange(120)) or [])
        splits = [split for reader in current for split in reader.snapshot_state(1)]
    for reader in readers(feed, 4, splits):
        read.extend(drain(reader))
    assert keys(read) == everything


def test_an_order_stays_on_one_split():
    feed = LIVELY
    where: dict[str, set[int]] = {}
    for number, reader in enumerate(readers(feed, feed.splits)):
        for event in drain(reader):
            where.setdefault(event.order_id, set()).add(number)
    assert len(where) == feed.orders
    assert all(len(splits) == 1 for splits in where.values())


def test_events_come_late_but_never_later_than_the_bound():
    """Duplicates may come later than the bound: the job drops them anyway."""
    for reader in readers(LIVELY, 2):
        latest, late, seen = 0, 0, set()
        for event in drain(reader):
            if event in seen:
                continue
            seen.add(event)
            late += event.timestamp_ms < latest
            latest = max(latest, event.timestamp_ms)
            assert latest - event.timestamp_ms <= BOUND_MS
        assert late > 20


def test_a_reader_with_splits_that_are_far_apart_lets_the_one_behind_catch_up():
    source = OrderSource(LIVELY, BOUND_MS)
    ahead, *behind = readers(LIVELY, LIVELY.splits)
    seen = set(ahead.poll(150) or [])
    moved = ahead.snapshot_state(1) + [split for reader in behind for split in reader.snapshot_state(1)]
    merged = source.create_reader(SourceReaderContext(0, 1), moved)
    assert isinstance(merged, OrderReader)
    latest = 0
    for event in drain(merged):
        if event not in seen:
            seen.add(event)
            latest = max(latest, event.timestamp_ms)
            assert latest - event.timestamp_ms <= BOUND_MS


def test_no_life_is_longer_than_the_source_looks_back():
    lives = OrderLives(replace(LIVELY, misfits=0.5, duplicates=0.9), BOUND_MS)
    longest = max(
        arrival.arrival_ms - lives.created_ms(order) for order in range(2000) for arrival in lives.arrivals(order)
    )
    assert longest <= LONGEST_LIFE_MS + BOUND_MS


def test_the_shares_are_options():
    plain = Feed(orders=300, rate=None, duplicates=0, out_of_order=0, cancellations=0, misfits=0)
    events = all_events(plain, BOUND_MS)
    assert len(set(events)) == len(events) == 4 * 300
    assert [event.timestamp_ms for event in events] == sorted(event.timestamp_ms for event in events)
    assert {event.order_id for event in events if event.event_type is DELIVERED} == {
        event.order_id for event in events if event.event_type is CREATED
    }
    doubled = all_events(replace(plain, duplicates=1), BOUND_MS)
    assert len(doubled) == 2 * len(events)
    assert set(doubled) == set(events)
    cancelled = all_events(replace(plain, cancellations=1), BOUND_MS)
    assert sum(event.event_type is CANCELLED for event in cancelled) == 300
    few = all_events(replace(plain, users=3, products=2, categories=1), BOUND_MS)
    assert len({event.user_id for event in few}) == 3
    assert len({item.product_id for event in few for item in event.items}) == 2
    assert len({event.category for event in few}) == 1


def test_amounts_add_up():
    for event in all_events(LIVELY, BOUND_MS):
        assert event.amount_cents == sum(item.quantity * item.price_cents for item in event.items)
        assert event.item_count == len(event.items) == len({item.product_id for item in event.items})


def test_the_rate_is_kept():
    clock = ManualClock()
    lives = OrderLives(LIVELY, BOUND_MS)
    splits = OrderSource(LIVELY, BOUND_MS).create_splits(1)
    reader = OrderReader(lives, splits, RateLimiter(100, clock))
    assert not reader.is_available()
    assert reader.poll(1000) == []
    clock.advance(500)
    assert reader.is_available()
    assert len(reader.poll(1000) or []) == 50


def test_a_feed_without_an_end_goes_on():
    source = OrderSource(replace(LIVELY, orders=None), BOUND_MS)
    assert source.boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    (reader,) = readers(replace(LIVELY, orders=None), 1)
    assert len(reader.poll(5000) or []) == 5000


def test_more_readers_than_splits_have_nothing_to_read():
    assert [reader.poll(10) is None for reader in readers(LIVELY, 7)] == [False] * 5 + [True] * 2
