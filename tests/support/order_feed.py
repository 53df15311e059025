"""Orders for tests of the order system with servers: few, with many duplicates, late events and misfits."""

from __future__ import annotations

from examples.orders.settings import Feed

FEED = Feed(
    orders=600,
    rate=400.0,
    splits=4,
    users=20,
    products=12,
    orders_per_hour=300,
    duplicates=0.15,
    out_of_order=0.4,
    cancellations=0.3,
    misfits=0.1,
)
