"""The records of the job. They are frozen, so that an emitted record cannot change.

Money is in cents and time in milliseconds since 1970, both whole numbers, so that sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventType(StrEnum):
    """The kinds of events of an order."""

    CREATED = "CREATED"
    PAYMENT_COMPLETED = "PAYMENT_COMPLETED"
    SHIPPED = "SHIPPED"
    DELIVERED = "DELIVERED"
    CANCELLED = "CANCELLED"


class Status(StrEnum):
    """The status of an order."""

    CREATED = "CREATED"
    PAID = "PAID"
    SHIPPED = "SHIPPED"
    DELIVERED = "DELIVERED"
    CANCELLED = "CANCELLED"


# -- input ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One line of an order."""

    product_id: str
    name: str
    quantity: int
    price_cents: int


@dataclass(frozen=True, slots=True)
class OrderEvent:
    """An event of an order at `timestamp_ms`. Every event carries the whole order."""

    order_id: str
    user_id: str
    event_type: EventType
    amount_cents: int
    item_count: int
    category: str
    items: tuple[OrderItem, ...]
    timestamp_ms: int


# -- deduplication ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dropped:
    """An event that was dropped, and the reason."""

    order_id: str
    event_type: EventType
    timestamp_ms: int
    reason: str


# -- tracking ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderStatus:
    """An order after one of its steps, with the time of each step so far."""

    order_id: str
    status: Status
    created_ms: int
    paid_ms: int | None = None
    shipped_ms: int | None = None
    delivered_ms: int | None = None
    cancelled_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that does not fit the status of its order, and the reason."""

    order_id: str
    event_type: EventType
    timestamp_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """An accepted event. Purchases and stock are computed from steps, not from events."""

    event: OrderEvent
    #: Whether the order had been paid before.
    was_paid: bool


# -- purchases --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Purchase:
    """An order that was paid, or one that was cancelled after it had been paid."""

    user_id: str
    order_id: str
    amount_cents: int
    item_count: int
    category: str
    is_refund: bool
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class UserPurchases:
    """A user's purchases and refunds within one window of event time."""

    user_id: str
    window_start_ms: int
    window_end_ms: int
    orders: int
    total_cents: int
    #: The average order, to the nearest cent; half a cent is rounded up.
    average_cents: int
    items: int
    #: (category, orders) by name.
    categories: tuple[tuple[str, int], ...]
    refunds: int
    refunded_cents: int


# -- stock ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StockMove:
    """An order takes `quantity` of a product from the stock, or gives it back."""

    product_id: str
    order_id: str
    event_type: EventType
    quantity: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class StockUpdate:
    """The level of a product has changed."""

    product_id: str
    order_id: str
    change: int
    level: int
    #: All changes since the beginning.
    cumulative_change: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LowStock:
    """A product has fallen below the low-stock level. It must recover before it can be reported again."""

    product_id: str
    level: int
    order_id: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class BackOrder:
    """The stock of a product was too low: this part of the order waits, and has taken nothing from the stock."""

    order_id: str
    product_id: str
    quantity: int
    level: int
    timestamp_ms: int


# -- batches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderBatch:
    """Events that are written together."""

    events: tuple[OrderEvent, ...]
