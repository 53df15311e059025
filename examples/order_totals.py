"""A keyed job over generated orders: one running total per category, in keyed state, with checkpoints.

    python -m examples.order_totals --orders 200000 --checkpoints /some/directory --result totals.json

Orders come from a generator that can be replayed from any position. They are keyed by category and folded into one
value per category. Run again with --resume, the program goes on from its latest checkpoint.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path

from rekindle.common import Configuration, Duration, RestartStrategies, Types, WatermarkStrategy
from rekindle.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
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

    def __init__(self, fails_at: int | None = None) -> None:
        self._fails_at = fails_at

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", CategoryTotal))
        if runtime_context.get_attempt_number() > 0:
            self._fails_at = None

    def process_element(self, value: Order, ctx: KeyedProcessFunction.Context):
        if value.order_id == self._fails_at:
            raise RuntimeError(f"order {value.order_id} fails on purpose, in the first attempt only")
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


def order_totals(
    env: StreamExecutionEnvironment, orders: int, seed: int, per_second: int, fails_at: int | None
) -> DataStream:
    """The job: one total per category, when all orders have come."""
    source = env.from_source(
        DataGeneratorSource(OrderGenerator(seed), orders, RateLimiterStrategy.per_second(per_second)),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
            lambda order, _: order.timestamp_ms
        ),
        "orders",
        type_info=Order,
    )
    return (
        source.key_by(lambda order: order.category, Types.STRING())
        .process(RunningTotal(fails_at), CategoryTotal)
        .name("running total per category")
    )


def main() -> None:
    """Run the job and write its result."""
    arguments = parse_arguments()
    settings = {"execution.checkpointing.dir": str(arguments.checkpoints), "rekindle.progress": "off"}
    if arguments.resume:
        settings["execution.state-recovery.path"] = "latest"
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(arguments.parallelism)
    env.enable_checkpointing(300)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 100))
    fails_at = arguments.orders // 5 if arguments.fail_once else None
    totals = order_totals(env, arguments.orders, arguments.seed, arguments.per_second, fails_at)
    with totals.execute_and_collect(arguments.name) as results:
        rows = sorted(results, key=lambda total: total.category)
    arguments.result.write_text(json.dumps([asdict(row) for row in rows]))


def parse_arguments() -> argparse.Namespace:
    """The program's options."""
    parser = argparse.ArgumentParser(description="Running totals per category over generated orders.")
    parser.add_argument("--orders", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--per-second", type=int, default=20_000)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--name", default="order totals")
    parser.add_argument("--checkpoints", type=Path, required=True, help="the directory of checkpoints")
    parser.add_argument("--result", type=Path, required=True, help="the file for the totals, as JSON")
    parser.add_argument("--fail-once", action="store_true", help="let a function raise in the first attempt")
    parser.add_argument("--resume", action="store_true", help="go on from the latest checkpoint")
    return parser.parse_args()


if __name__ == "__main__":
    main()
