"""The model by itself, with orders that are easy to follow by hand."""

from __future__ import annotations

from typing import Any

from examples.orders.model import expected, purchased, stocked, tracked, without_duplicates
from examples.orders.settings import Settings
from tests.examples.orders.order_samples import LIVELY

SETTINGS = Settings(initial_stock=10, low_stock=5)


def row(order: str, kind: str, at_ms: int, quantity: int = 1, user: str = "ann") -> dict[str, Any]:
    item = {"product_id": "nail", "name": "Nail", "quantity": quantity, "price_cents": 100}
    return {
        "order_id": order,
        "user_id": user,
        "event_type": kind,
        "amount_cents": 100 * quantity,
        "item_count": 1,
        "category": "Home",
        "items": [item],
        "timestamp_ms": at_ms,
    }


def test_duplicates():
    events = [row("a", "CREATED", 1), row("a", "CREATED", 2), row("a", "CREATED", 1)]
    unique, dropped = without_duplicates(events)
    assert unique == events[:2]
    assert [(each["timestamp_ms"], each["reason"]) for each in dropped] == [(1, "duplicate")]


def test_tracking():
    kinds = [("SHIPPED", 3), ("CANCELLED", 4), ("CREATED", 1), ("PAYMENT_COMPLETED", 4)]
    events = [row("a", kind, at_ms) for kind, at_ms in kinds]
    statuses, rejected, accepted = tracked(events, SETTINGS)
    assert [each["status"] for each in statuses] == ["CREATED", "PAID", "CANCELLED"]
    assert statuses[-1]["paid_ms"] == statuses[-1]["cancelled_ms"] == 4
    assert [each["reason"] for each in rejected] == ["SHIPPED does not follow CREATED"]
    assert [each["paid"] for each in accepted] == [False, False, True]


def test_purchases():
    events = [
        row("a", "PAYMENT_COMPLETED", 1, 3) | {"paid": False},
        row("b", "PAYMENT_COMPLETED", 2, 4) | {"paid": False},
        row("a", "CANCELLED", 3700, 3) | {"paid": True},
        row("c", "CANCELLED", 3701, 3) | {"paid": False},
    ]
    first, second = purchased(events, 3600)
    assert (first["orders"], first["total_cents"], first["average_cents"], first["refunds"]) == (2, 700, 350, 0)
    assert (second["orders"], second["average_cents"], second["refunds"], second["refunded_cents"]) == (0, 0, 1, 300)
    assert (second["window_start_ms"], second["window_end_ms"]) == (3600, 7200)


def test_stock():
    created = [row("a", "CREATED", 1, 6), row("b", "CREATED", 2, 5)]
    events = [*created, row("a", "CANCELLED", 3, 6), row("b", "CANCELLED", 4, 5)]
    changes, warnings, back_orders = stocked(events, SETTINGS)
    assert [(each["change"], each["level"], each["cumulative_change"]) for each in changes] == [(-6, 4, -6), (6, 10, 0)]
    assert [each["level"] for each in warnings] == [4]
    assert [(each["order_id"], each["level"]) for each in back_orders] == [("b", 4)]


def test_a_lively_feed_has_something_of_everything():
    """Otherwise the comparisons with the model would prove little."""
    rows = expected(Settings(initial_stock=40), LIVELY)
    assert [name for name, found in rows.items() if len(found) <= 5] == ["late-purchases"]
    assert any(each["refunds"] for each in rows["purchases"])
    assert any(each["orders"] > 1 for each in rows["purchases"])
    assert len({each["reason"] for each in rows["rejected"]}) > 4
    twice = [each["product_id"] for each in rows["low-stock"]]
    assert len(twice) > len(set(twice)), "some product falls below the level, recovers and falls again"
