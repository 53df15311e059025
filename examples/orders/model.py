"""The expected results for a feed, in plain Python: no streams, no state, no checkpoints, no code of the job.

The model ignores when events arrived; it sorts and folds them, branch by branch. Results are plain dicts, as in the
job's files. The model shares only the events with the job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from examples.orders.settings import Feed, Settings
from examples.orders.source import all_events

Row = dict[str, Any]
_STEPS = ["CREATED", "PAYMENT_COMPLETED", "SHIPPED", "DELIVERED", "CANCELLED"]
#: (status, event) -> (status after it, name of its time). All other events do not fit.
_FLOW = {
    (None, "CREATED"): ("CREATED", "created_ms"),
    ("CREATED", "PAYMENT_COMPLETED"): ("PAID", "paid_ms"),
    ("PAID", "SHIPPED"): ("SHIPPED", "shipped_ms"),
    ("SHIPPED", "DELIVERED"): ("DELIVERED", "delivered_ms"),
    ("CREATED", "CANCELLED"): ("CANCELLED", "cancelled_ms"),
    ("PAID", "CANCELLED"): ("CANCELLED", "cancelled_ms"),
    ("SHIPPED", "CANCELLED"): ("CANCELLED", "cancelled_ms"),
}
_TIMES = ("created_ms", "paid_ms", "shipped_ms", "delivered_ms", "cancelled_ms")


def expected(settings: Settings, feed: Feed) -> dict[str, list[Row]]:
    """The expected rows of every stream of results; for batches, all their events."""
    events = [_plain(event) for event in all_events(feed, round(settings.out_of_orderness_s * 1000))]
    unique, dropped = without_duplicates(events)
    statuses, rejected, accepted = tracked(unique, settings)
    stock, low_stock, back_orders = stocked(accepted, settings)
    return {
        "dropped": dropped,
        "statuses": statuses,
        "rejected": rejected,
        "purchases": purchased(accepted, round(settings.window_s * 1000)),
        "late-purchases": [],
        "stock": stock,
        "low-stock": low_stock,
        "back-orders": back_orders,
        "batches": unique,
    }


def _plain(event: Any) -> Row:
    row = asdict(event)
    row["event_type"] = str(row["event_type"])
    row["items"] = list(row["items"])
    return row


def without_duplicates(events: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The first event of each (order, type, time), and all others."""
    known: set[tuple[str, str, int]] = set()
    unique, dropped = [], []
    for event in events:
        identity = event["order_id"], event["event_type"], event["timestamp_ms"]
        if identity in known:
            dropped.append(_short(event, "duplicate"))
        else:
            known.add(identity)
            unique.append(event)
    return unique, dropped


def _short(event: Row, reason: str) -> Row:
    return {name: event[name] for name in ("order_id", "event_type", "timestamp_ms")} | {"reason": reason}


def _in_time(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["timestamp_ms"], row["order_id"], _STEPS.index(row["event_type"])))


def tracked(events: Iterable[Row], settings: Settings) -> tuple[list[Row], list[Row], list[Row]]:
    """Statuses, rejected events, and accepted events with `paid`: whether the order was paid before."""
    by_order: dict[str, list[Row]] = defaultdict(list)
    for event in events:
        by_order[event["order_id"]].append(event)
    statuses: list[Row] = []
    rejected: list[Row] = []
    accepted: list[Row] = []
    for order_id, history in by_order.items():
        times: Row = {}
        status = None
        for event in _in_time(history):
            kind, at_ms = event["event_type"], event["timestamp_ms"]
            if status is not None and at_ms > _forgotten_ms(times, settings):
                times, status = {}, None
            if (status, kind) not in _FLOW:
                because = f"does not follow {status}" if status else "of an order that was not created"
                rejected.append(_short(event, f"{kind} {because}"))
                continue
            accepted.append(event | {"paid": "paid_ms" in times})
            status, name = _FLOW[status, kind]
            times[name] = at_ms
            row = {"order_id": order_id, "status": status} | {each: times.get(each) for each in _TIMES}
            statuses.append(row)
    return statuses, rejected, accepted


def _forgotten_ms(times: Row, settings: Settings) -> float:
    ends = [times[end] for end in ("delivered_ms", "cancelled_ms") if end in times]
    lifetime_ms, retention_ms = settings.order_lifetime_s * 1000, settings.order_retention_s * 1000
    return float(min([times["created_ms"] + lifetime_ms, *(end + retention_ms for end in ends)]))


def purchased(accepted: Iterable[Row], window_ms: int) -> list[Row]:
    """Sums per user and window."""
    windows: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for event in accepted:
        refund = event["event_type"] == "CANCELLED" and event["paid"]
        if event["event_type"] == "PAYMENT_COMPLETED" or refund:
            windows[event["user_id"], event["timestamp_ms"] // window_ms].append(event)
    rows = []
    for (user, number), inside in windows.items():
        paid = [event for event in inside if event["event_type"] == "PAYMENT_COMPLETED"]
        back = [event for event in inside if event["event_type"] == "CANCELLED"]
        total = sum(event["amount_cents"] for event in paid)
        names = sorted({event["category"] for event in paid})
        whole, rest = divmod(total, len(paid)) if paid else (0, 0)
        rows.append(
            {
                "user_id": user,
                "window_start_ms": number * window_ms,
                "window_end_ms": (number + 1) * window_ms,
                "orders": len(paid),
                "total_cents": total,
                "average_cents": whole + (1 if paid and 2 * rest >= len(paid) else 0),
                "items": sum(event["item_count"] for event in paid),
                "categories": [[name, sum(event["category"] == name for event in paid)] for name in names],
                "refunds": len(back),
                "refunded_cents": sum(event["amount_cents"] for event in back),
            }
        )
    return rows


def stocked(accepted: Iterable[Row], settings: Settings) -> tuple[list[Row], list[Row], list[Row]]:
    """Changes of the stock, warnings, and orders that found too little."""
    level: dict[str, int] = defaultdict(lambda: settings.initial_stock)
    waiting: set[tuple[str, str]] = set()
    changes, warnings, back_orders = [], [], []
    for event in _in_time(accepted):
        kind, order_id, at_ms = event["event_type"], event["order_id"], event["timestamp_ms"]
        if kind not in ("CREATED", "CANCELLED"):
            continue
        for product in {item["product_id"] for item in event["items"]}:
            quantity = sum(item["quantity"] for item in event["items"] if item["product_id"] == product)
            before = level[product]
            if kind == "CANCELLED" and (order_id, product) in waiting:
                waiting.remove((order_id, product))
                continue
            if kind == "CREATED" and before < quantity:
                waiting.add((order_id, product))
                wish = {"order_id": order_id, "product_id": product, "quantity": quantity}
                back_orders.append(wish | {"level": before, "timestamp_ms": at_ms})
                continue
            level[product] = now = before + (quantity if kind == "CANCELLED" else -quantity)
            changes.append(
                {
                    "product_id": product,
                    "order_id": order_id,
                    "change": now - before,
                    "level": now,
                    "cumulative_change": now - settings.initial_stock,
                    "timestamp_ms": at_ms,
                }
            )
            if before >= settings.low_stock > now:
                crossing = {"product_id": product, "level": now, "order_id": order_id, "timestamp_ms": at_ms}
                warnings.append(crossing)
    return changes, warnings, back_orders
