"""Each branch by itself, with orders written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from examples.orders.deduplication import DROPPED, Deduplicate
from examples.orders.purchases import LATE_PURCHASES, DescribeWindow, PurchaseTotals, SumPurchases, purchases_of
from examples.orders.records import (
    BackOrder,
    Dropped,
    LowStock,
    OrderEvent,
    OrderStatus,
    Purchase,
    Rejected,
    Status,
    Step,
    StockMove,
    StockUpdate,
    UserPurchases,
)
from examples.orders.stock import BACK_ORDERS, LOW_STOCK, KeepStock, moves_of
from examples.orders.tracking import REJECTED, STEPS, TrackOrders
from rekindle.common import Time, Types
from rekindle.datastream import DataStream, OutputTag, ProcessFunction, StreamExecutionEnvironment
from rekindle.datastream.window import TumblingEventTimeWindows
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.survival import assert_survives
from tests.examples.orders.order_samples import CANCELLED, CREATED, DELIVERED, PAID, SHIPPED, event, timed
from tests.support.environments import environment

HOUR_MS = 3_600_000


def run(stream: DataStream, per_epoch: int = 1) -> list[Any]:
    return InProcessJob.of(stream, max_records=per_epoch).run()


# -- deduplication ----------------------------------------------------------------------------------------------------


def deduplicated(events: list[OrderEvent], horizon_ms: int = 60_000, tag: OutputTag | None = None) -> list[Any]:
    stream = timed(environment(2), events, OrderEvent).key_by(lambda each: each.order_id, Types.STRING())
    unique = stream.process(Deduplicate(horizon_ms), OrderEvent)
    return run(unique if tag is None else unique.get_side_output(tag))


def test_the_same_event_of_the_same_order_again_is_dropped():
    first, paid = event("a", CREATED, 1000, nail=1), event("a", PAID, 2000, nail=1)
    other = event("b", CREATED, 1000, nail=1)
    events = [first, paid, first, other, paid, paid]
    assert sorted(map(repr, deduplicated(events))) == sorted(map(repr, [first, paid, other]))
    dropped = deduplicated(events, tag=DROPPED)
    assert sorted(each.event_type for each in dropped) == [CREATED, PAID, PAID]
    assert {each.reason for each in dropped} == {"duplicate"}


def test_the_same_step_at_another_time_is_another_event():
    events = [event("a", PAID, 2000), event("a", PAID, 2001)]
    assert deduplicated(events) == events


def test_an_event_older_than_the_horizon_is_dropped_with_that_reason():
    old, new = event("a", CREATED, 1000), event("b", CREATED, 1_000_000)
    nudge = event("c", CREATED, 1_000_001)
    assert deduplicated([new, nudge, old]) == [new, nudge]
    assert deduplicated([new, nudge, old], tag=DROPPED) == [Dropped("a", CREATED, 1000, "older than the horizon")]


def test_what_deduplication_remembers_is_bounded():
    """An order is forgotten a horizon after its last event: with 200 orders far apart, one is remembered at a time."""
    events = [event(f"{number:03d}", CREATED, number * 100_000) for number in range(200)]
    stream = timed(environment(1), events, OrderEvent).key_by(lambda each: each.order_id, Types.STRING())
    job = InProcessJob.of(stream.process(Deduplicate(60_000), OrderEvent), max_records=1)
    sizes = []
    while not job.finished:
        (deduplicate,) = (each for each in job.checkpoint().manifest.operators if each.name == "KEYED PROCESS")
        sizes.append(sum(state.full_bytes for state in deduplicate.subtasks))
    job.close()
    assert len(sizes) >= 200
    assert max(sizes) < 3 * max(sizes[:3])


def test_an_order_with_new_events_is_remembered_longer():
    """The horizon counts from its last event."""
    events = [event("a", CREATED, 0), event("a", PAID, 50_000)]
    clock = [event("z", CREATED, time) for time in (70_000, 90_000, 100_000)]
    again = [event("a", PAID, 50_000)]
    assert len(deduplicated([*events, *clock, *again])) == 5


# -- tracking ---------------------------------------------------------------------------------------------------------


def tracked(
    events: list[OrderEvent],
    tag: OutputTag | None = None,
    retention_ms: int = 10**9,
    lifetime_ms: int = 10**10,
    per_epoch: int = 1,
) -> list[Any]:
    stream = timed(environment(2), events, OrderEvent).key_by(lambda each: each.order_id, Types.STRING())
    statuses = stream.process(TrackOrders(retention_ms, lifetime_ms), OrderStatus)
    return run(statuses if tag is None else statuses.get_side_output(tag), per_epoch)


LIFE = [event("a", CREATED, 1), event("a", PAID, 2), event("a", SHIPPED, 3), event("a", DELIVERED, 4)]


def test_an_order_goes_from_created_to_delivered_with_the_time_of_each_step():
    assert tracked(LIFE) == [
        OrderStatus("a", Status.CREATED, 1),
        OrderStatus("a", Status.PAID, 1, 2),
        OrderStatus("a", Status.SHIPPED, 1, 2, 3),
        OrderStatus("a", Status.DELIVERED, 1, 2, 3, 4),
    ]


@pytest.mark.parametrize("per_epoch", [1, 3, 100])
def test_events_are_applied_in_event_time_whatever_order_they_come_in(per_epoch):
    assert tracked(LIFE[::-1], per_epoch=per_epoch) == tracked(LIFE)
    assert tracked(LIFE[::-1], REJECTED, per_epoch=per_epoch) == []


def test_events_of_one_time_are_applied_in_the_order_of_steps():
    together = [event("a", kind, 1) for kind in (DELIVERED, SHIPPED, PAID, CREATED)]
    assert tracked(together)[-1] == OrderStatus("a", Status.DELIVERED, 1, 1, 1, 1)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_order_can_be_cancelled_until_it_is_delivered(after):
    cancelled = event("a", CANCELLED, 9)
    last = tracked([*LIFE[: after + 1], cancelled])[-1]
    assert (last.status, last.cancelled_ms) == (Status.CANCELLED, 9)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([LIFE[0], LIFE[2]], "SHIPPED does not follow CREATED"),
        ([LIFE[1]], "PAYMENT_COMPLETED of an order that was not created"),
        ([LIFE[0], event("a", CANCELLED, 2), event("a", SHIPPED, 3)], "SHIPPED does not follow CANCELLED"),
        ([*LIFE, event("a", CANCELLED, 9)], "CANCELLED does not follow DELIVERED"),
        ([LIFE[0], event("a", CREATED, 5)], "CREATED does not follow CREATED"),
        ([*LIFE[:2], event("a", PAID, 5)], "PAYMENT_COMPLETED does not follow PAID"),
    ],
)
def test_an_event_that_does_not_fit_goes_aside_with_the_reason_and_changes_nothing(events, reason):
    misfit = events[-1]
    assert tracked(events, REJECTED) == [Rejected("a", misfit.event_type, misfit.timestamp_ms, reason)]
    assert tracked(events) == tracked(events[:-1])
    assert misfit not in [step.event for step in tracked(events, STEPS)]


def test_steps_say_whether_the_order_was_paid():
    unpaid = [LIFE[0], event("a", CANCELLED, 9)]
    paid = [LIFE[0], LIFE[1], event("a", CANCELLED, 9)]
    assert tracked(unpaid, STEPS)[-1] == Step(unpaid[-1], was_paid=False)
    assert tracked(paid, STEPS)[-1] == Step(paid[-1], was_paid=True)


def test_an_order_is_forgotten_some_time_after_its_end_and_some_time_after_its_creation_if_it_has_none():
    later = [event("a", CREATED, 20_000)]
    assert tracked([*LIFE, *later], REJECTED)[0].reason == "CREATED does not follow DELIVERED"
    assert tracked([*LIFE, *later], REJECTED, retention_ms=10_000) == []
    assert tracked([LIFE[0], *later], REJECTED, retention_ms=10_000) != []
    assert tracked([LIFE[0], *later], REJECTED, lifetime_ms=15_000) == []


# -- purchases --------------------------------------------------------------------------------------------------------


def test_a_purchase_is_a_payment_and_a_refund_a_cancellation_after_it():
    def made(kind, was_paid):
        return [each.is_refund for each in purchases_of(Step(event("a", kind, 5, nail=2), was_paid))]

    assert made(PAID, was_paid=False) == [False]
    assert made(CANCELLED, was_paid=True) == [True]
    assert made(CANCELLED, was_paid=False) == made(CREATED, False) == made(SHIPPED, True) == made(DELIVERED, True) == []


def purchase(user: str, at_ms: int, cents: int, category: str = "Books", refund: bool = False) -> Purchase:
    return Purchase(user, f"order-{at_ms}", cents, 2, category, refund, at_ms)


def summed(env: StreamExecutionEnvironment, purchases: list[Purchase]) -> DataStream:
    keyed = timed(env, purchases, Purchase).key_by(lambda each: each.user_id, Types.STRING())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.hours(1))).side_output_late_data(LATE_PURCHASES)
    return windows.aggregate(SumPurchases(), DescribeWindow(), PurchaseTotals, UserPurchases)


PURCHASES = [
    purchase("ann", 10, 1001),
    purchase("bob", 20, 500),
    purchase("ann", HOUR_MS - 1, 1000, "Home"),
    purchase("ann", HOUR_MS, 700),
    purchase("ann", HOUR_MS + 1, 1001, refund=True),
    purchase("bob", HOUR_MS + 2, 500, refund=True),
]


def test_purchases_are_summed_per_user_and_hour_and_a_refund_counts_in_its_own_hour():
    assert sorted(run(summed(environment(2), PURCHASES)), key=repr) == [
        UserPurchases("ann", 0, HOUR_MS, 2, 2001, 1001, 4, (("Books", 1), ("Home", 1)), 0, 0),
        UserPurchases("ann", HOUR_MS, 2 * HOUR_MS, 1, 700, 700, 2, (("Books", 1),), 1, 1001),
        UserPurchases("bob", 0, HOUR_MS, 1, 500, 500, 2, (("Books", 1),), 0, 0),
        UserPurchases("bob", HOUR_MS, 2 * HOUR_MS, 0, 0, 0, 0, (), 1, 500),
    ]


def test_a_purchase_that_comes_after_its_window_goes_aside():
    late = purchase("ann", 30, 900)
    stream = summed(
        environment(2), [*PURCHASES, purchase("ann", 3 * HOUR_MS, 1), purchase("ann", 3 * HOUR_MS, 1), late]
    )
    assert run(stream.get_side_output(LATE_PURCHASES)) == [late]


def test_merging_two_accumulators_is_adding_both():
    adder = SumPurchases()
    parts = adder.create_accumulator(), adder.create_accumulator()
    whole = adder.create_accumulator()
    for number, each in enumerate(PURCHASES):
        whole = adder.add(each, whole)
        adder.add(each, parts[number % 2])
    assert adder.get_result(adder.merge(*parts)) == whole


# -- stock ------------------------------------------------------------------------------------------------------------


def test_stock_moves_when_an_order_is_created_and_when_it_is_cancelled():
    order = event("a", CREATED, 5, nail=2, saw=1)
    moves = list(moves_of(Step(order, was_paid=False)))
    assert moves == [StockMove("nail", "a", CREATED, 2, 5), StockMove("saw", "a", CREATED, 1, 5)]
    assert [move.quantity for move in moves_of(Step(event("a", CANCELLED, 9, nail=2), was_paid=True))] == [2]
    assert list(moves_of(Step(event("a", PAID, 6, nail=2), was_paid=False))) == []


def take(order_id: str, at_ms: int, quantity: int, product: str = "nail") -> StockMove:
    return StockMove(product, order_id, CREATED, quantity, at_ms)


def give_back(order_id: str, at_ms: int, quantity: int, product: str = "nail") -> StockMove:
    return StockMove(product, order_id, CANCELLED, quantity, at_ms)


def kept(
    moves: list[StockMove], tag: OutputTag | None = None, lifetime_ms: int = 10**12, per_epoch: int = 1
) -> list[Any]:
    stream = timed(environment(2), moves, StockMove).key_by(lambda move: move.product_id, Types.STRING())
    updates = stream.process(KeepStock(20, 10, lifetime_ms), StockUpdate)
    return run(updates if tag is None else updates.get_side_output(tag), per_epoch)


def test_the_stock_branch_tells_product_change_level_and_cumulative_change():
    moves = [take("a", 1, 5), take("b", 2, 3), give_back("a", 3, 5), take("c", 4, 1, "saw")]
    assert sorted(kept(moves), key=lambda update: update.timestamp_ms) == [
        StockUpdate("nail", "a", -5, 15, -5, 1),
        StockUpdate("nail", "b", -3, 12, -8, 2),
        StockUpdate("nail", "a", 5, 17, -3, 3),
        StockUpdate("saw", "c", -1, 19, -1, 4),
    ]


@pytest.mark.parametrize("per_epoch", [1, 2, 100])
def test_moves_are_applied_by_time_order_and_step_however_they_interleave(per_epoch):
    moves = [take("b", 7, 2), give_back("a", 7, 1), take("a", 7, 1), take("c", 6, 4)]
    assert [(each.order_id, each.change, each.level) for each in kept(moves, per_epoch=per_epoch)] == [
        ("c", -4, 16),
        ("a", -1, 15),
        ("a", 1, 16),
        ("b", -2, 14),
    ]


def test_one_warning_per_crossing_not_per_record():
    moves = [take("a", 1, 10), take("b", 2, 1), take("c", 3, 1), give_back("b", 4, 1), give_back("c", 5, 1)]
    moves += [take("d", 6, 3), take("e", 7, 1)]
    assert kept(moves, LOW_STOCK) == [LowStock("nail", 9, "b", 2), LowStock("nail", 7, "d", 6)]


def test_an_order_that_wants_more_than_there_is_waits_and_takes_nothing():
    moves = [take("a", 1, 15), take("b", 2, 6), take("c", 3, 5), take("d", 4, 1)]
    assert [each.level for each in kept(moves)] == [5, 0]
    assert kept(moves, BACK_ORDERS) == [BackOrder("b", "nail", 6, 5, 2), BackOrder("d", "nail", 1, 0, 4)]


def test_a_back_order_that_is_cancelled_gives_nothing_back():
    moves = [take("a", 1, 15), take("b", 2, 6), give_back("b", 3, 6), give_back("a", 4, 15)]
    assert [each.level for each in kept(moves)] == [5, 20]


def test_back_orders_are_forgotten_with_their_orders():
    """A day later at the latest: what comes then for that order does not come from it."""
    day = 86_400_000
    moves = [take("a", 1, 15), take("b", 2, 6), *(take("clock", n * day, 1, "saw") for n in (1, 2, 3))]
    again = give_back("b", 4 * day, 6)
    assert [each.level for each in kept([*moves, again]) if each.product_id == "nail"] == [5]
    assert [each.level for each in kept([*moves, again], lifetime_ms=1000) if each.product_id == "nail"] == [5, 11]


# -- each of them is killed -------------------------------------------------------------------------------------------


class Named(ProcessFunction):
    """Puts the name of its stream beside each record."""

    def __init__(self, name: str):
        self.name = name

    def process_element(self, value, ctx):
        yield self.name, repr(value)


def with_side_outputs(stream: DataStream, *tags: OutputTag) -> DataStream:
    """Main and side outputs in one stream, to compare all of them."""
    first = stream.process(Named("main"))
    return first.union(*(stream.get_side_output(tag).process(Named(tag.tag_id)) for tag in tags))


def many_moves() -> list[StockMove]:
    orders = [(f"o{n:02d}", n * 700, 1 + n % 4, ("nail", "saw", "glue")[n % 3]) for n in range(40)]
    moves = [take(name, at, quantity, product) for name, at, quantity, product in orders]
    moves += [give_back(name, at + 9000, quantity, product) for name, at, quantity, product in orders[::3]]
    # The source's order is not that of time, within the bound.
    return sorted(moves, key=lambda move: (move.timestamp_ms // 4000, move.order_id[::-1]))


def test_stock_survives():
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = timed(env, many_moves(), StockMove).key_by(lambda move: move.product_id, Types.STRING())
        return with_side_outputs(keyed.process(KeepStock(20, 10, 10**9), StockUpdate), LOW_STOCK, BACK_ORDERS)

    results = assert_survives(build, records_per_epoch=7)
    assert {name for name, _ in results} == {"main", "low stock", "back-orders"}


def test_tracking_and_deduplication_survive():
    kinds = list(enumerate((CREATED, PAID, SHIPPED, CANCELLED)))
    lives = [event(f"o{n}", kind, n * 900 + step * 2500) for n in range(12) for step, kind in kinds]
    events = sorted(lives + lives[::2], key=lambda each: (each.timestamp_ms // 4000, each.order_id[::-1]))

    def build(env: StreamExecutionEnvironment) -> DataStream:
        unique = timed(env, events, OrderEvent).key_by(lambda each: each.order_id, Types.STRING())
        deduplicated = unique.process(Deduplicate(10**8), OrderEvent)
        keyed = deduplicated.key_by(lambda each: each.order_id, Types.STRING())
        return with_side_outputs(keyed.process(TrackOrders(3000, 10**9), OrderStatus), REJECTED, STEPS)

    assert len(assert_survives(build, records_per_epoch=9)) == 2 * len(lives)


def test_purchases_survive():
    purchases = [purchase(f"user{n % 3}", n * 600_000 + (n * 7) % 1000, 100 + n, refund=n % 5 == 0) for n in range(40)]
    results = assert_survives(lambda env: summed(env, purchases), records_per_epoch=6)
    assert sum(each.orders + each.refunds for each in results) == 40
