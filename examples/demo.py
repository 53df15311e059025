"""The demo: a keyed job over generated orders, with its result printed as a table.

    make demo                        # or: python -m examples.demo --orders 500000 --seed 7 --parallelism 2

Orders are generated in event-time order, keyed by category, and folded into one running total per category in keyed
state. Everything between `key_by` and the totals passes through Spark's shuffle; the totals live in the slots.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from time import monotonic

from rich.console import Console
from rich.table import Table

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import ValueStateDescriptor

CATEGORIES = ("books", "garden", "kitchen", "music", "outdoor", "toys")
START_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Order:
    """One order of the shop; amounts in cents, so that sums are exact."""

    order_id: int
    user: str
    category: str
    amount_cents: int
    items: int
    timestamp_ms: int


@dataclass(frozen=True)
class CategoryTotal:
    """What has been sold in a category so far."""

    category: str
    orders: int
    items: int
    amount_cents: int
    last_order_ms: int


@dataclass(frozen=True)
class OrderGenerator:
    """Order number i of a seed: the same on every machine and in every run, so it can be replayed from any position."""

    seed: int

    def __call__(self, index: int) -> Order:
        draw = random.Random(self.seed * 1_000_003 + index)
        return Order(
            order_id=index,
            user=f"user-{draw.randrange(1000)}",
            category=CATEGORIES[min(int(draw.expovariate(0.6)), len(CATEGORIES) - 1)],
            amount_cents=draw.randrange(199, 25_000),
            items=draw.randrange(1, 6),
            timestamp_ms=START_MS + index * 250,
        )


class RunningTotal(KeyedProcessFunction):
    """Folds a category's orders into one value of keyed state; tells the total when event time reaches the end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", CategoryTotal))

    def process_element(self, value: Order, ctx: KeyedProcessFunction.Context):
        total = self._total.value() or CategoryTotal(value.category, 0, 0, 0, 0)
        self._total.update(
            CategoryTotal(
                value.category,
                total.orders + 1,
                total.items + value.items,
                total.amount_cents + value.amount_cents,
                max(total.last_order_ms, value.timestamp_ms),
            )
        )
        # One timer per key and time: registered for every order, it fires once, when the input has ended.
        ctx.timer_service().register_event_time_timer(2**62)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext):
        yield self._total.value()


def main() -> None:
    """Run the job and print its result."""
    arguments = parse_arguments()
    console = Console()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(arguments.parallelism)
    orders = env.from_source(
        DataGeneratorSource(OrderGenerator(arguments.seed), arguments.orders),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
            lambda order, _: order.timestamp_ms
        ),
        "orders",
        type_info=Order,
    )
    totals = (
        orders.key_by(lambda order: order.category, Types.STRING())
        .process(RunningTotal(), CategoryTotal)
        .name("running total per category")
    )
    console.print(f"[bold]{arguments.orders:,}[/] generated orders on Spark, {arguments.parallelism} slots …")
    started = monotonic()
    with totals.execute_and_collect("orders demo") as results:
        rows = sorted(results, key=lambda total: -total.amount_cents)
    print_table(console, rows, arguments.orders, monotonic() - started)


def print_table(console: Console, rows: list[CategoryTotal], orders: int, seconds: float) -> None:
    """The totals, and a check that no order was lost or counted twice."""
    table = Table(title="Orders per category", title_justify="left")
    table.add_column("category")
    for column in ("orders", "items", "revenue"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row.category, f"{row.orders:,}", f"{row.items:,}", f"{row.amount_cents / 100:,.2f}")
    table.add_section()
    counted = sum(row.orders for row in rows)
    revenue = sum(row.amount_cents for row in rows)
    table.add_row("all", f"{counted:,}", f"{sum(row.items for row in rows):,}", f"{revenue / 100:,.2f}")
    console.print(table)
    console.print(f"{counted:,} of {orders:,} orders counted, in {seconds:.1f} s including start-up.")
    if counted != orders:
        raise SystemExit(f"{orders - counted} orders are missing: this is a bug, please report it.")


def parse_arguments() -> argparse.Namespace:
    """The demo's options."""
    parser = argparse.ArgumentParser(description="A keyed job over generated orders, on embedded Spark.")
    parser.add_argument("--orders", type=int, default=200_000, help="how many orders to generate (default 200,000)")
    parser.add_argument("--seed", type=int, default=7, help="the generator's seed (default 7)")
    parser.add_argument("--parallelism", type=int, default=2, help="subtasks per operator (default 2)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
