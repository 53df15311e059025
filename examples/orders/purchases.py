"""Branch 3: the purchases of each user per hour of event time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from examples.orders.records import EventType, Purchase, Step, UserPurchases
from rekindle.datastream import AggregateFunction, OutputTag, ProcessWindowFunction
from rekindle.datastream.window import TimeWindow

LATE_PURCHASES = OutputTag("late purchases", Purchase)


def purchases_of(step: Step) -> Iterator[Purchase]:
    """A payment is a purchase; a cancellation after it is a refund, in the window of its own time."""
    event = step.event
    paid = event.event_type is EventType.PAYMENT_COMPLETED
    if paid or (event.event_type is EventType.CANCELLED and step.was_paid):
        yield Purchase(
            event.user_id,
            event.order_id,
            event.amount_cents,
            event.item_count,
            event.category,
            is_refund=not paid,
            timestamp_ms=event.timestamp_ms,
        )


@dataclass(slots=True)
class PurchaseTotals:
    """The accumulator of a window: a few sums, for any number of purchases."""

    orders: int = 0
    total_cents: int = 0
    items: int = 0
    categories: dict[str, int] = field(default_factory=dict)
    refunds: int = 0
    refunded_cents: int = 0


class SumPurchases(AggregateFunction):
    """Adds up purchases as they arrive."""

    def create_accumulator(self) -> PurchaseTotals:
        return PurchaseTotals()

    def add(self, value: Purchase, accumulator: PurchaseTotals) -> PurchaseTotals:
        if value.is_refund:
            accumulator.refunds += 1
            accumulator.refunded_cents += value.amount_cents
            return accumulator
        accumulator.orders += 1
        accumulator.total_cents += value.amount_cents
        accumulator.items += value.item_count
        categories = accumulator.categories
        categories[value.category] = categories.get(value.category, 0) + 1
        return accumulator

    def get_result(self, accumulator: PurchaseTotals) -> PurchaseTotals:
        return accumulator

    def merge(self, acc_a: PurchaseTotals, acc_b: PurchaseTotals) -> PurchaseTotals:
        categories = dict(acc_a.categories)
        for category, orders in acc_b.categories.items():
            categories[category] = categories.get(category, 0) + orders
        return PurchaseTotals(
            acc_a.orders + acc_b.orders,
            acc_a.total_cents + acc_b.total_cents,
            acc_a.items + acc_b.items,
            categories,
            acc_a.refunds + acc_b.refunds,
            acc_a.refunded_cents + acc_b.refunded_cents,
        )


class DescribeWindow(ProcessWindowFunction[PurchaseTotals, UserPurchases, str, TimeWindow]):
    """Adds the user and the window to the sums."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[PurchaseTotals]
    ) -> Iterator[UserPurchases]:
        window = context.window()
        for totals in elements:
            yield UserPurchases(
                key,
                window.start,
                window.end,
                totals.orders,
                totals.total_cents,
                average_cents(totals.total_cents, totals.orders),
                totals.items,
                tuple(sorted(totals.categories.items())),
                totals.refunds,
                totals.refunded_cents,
            )


def average_cents(total_cents: int, orders: int) -> int:
    """The average order to the nearest cent, computed without floats.

    >>> average_cents(1001, 2), average_cents(100, 3), average_cents(0, 0)
    (501, 33, 0)
    """
    return (2 * total_cents + orders) // (2 * orders) if orders else 0
