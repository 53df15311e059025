"""Small orders for tests, and the whole job in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from examples.orders.faults import Fault
from examples.orders.job import build, environment
from examples.orders.model import expected
from examples.orders.records import EventType, OrderEvent, OrderItem
from examples.orders.results import Verdict, compare
from examples.orders.settings import Feed, Settings
from rekindle.common import Duration, WatermarkStrategy
from rekindle.datastream import DataStream, StreamExecutionEnvironment
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.in_process_checkpoint import InProcessCheckpoint

CREATED, PAID, SHIPPED, DELIVERED, CANCELLED = EventType
#: A feed in which everything happens: products run out, most windows have refunds, every tenth order has a misfit.
LIVELY = Feed(
    orders=400,
    rate=None,
    splits=5,
    users=15,
    products=12,
    orders_per_hour=200,
    duplicates=0.15,
    out_of_order=0.4,
    cancellations=0.3,
    misfits=0.1,
)


def event(
    order_id: str, kind: EventType, at_ms: int, *, user: str = "ann", category: str = "Books", **quantities: int
) -> OrderEvent:
    """An event of an order for so much of each product, at 250 cents each."""
    items = tuple(OrderItem(product, product.title(), quantity, 250) for product, quantity in quantities.items())
    amount = sum(item.quantity * item.price_cents for item in items)
    return OrderEvent(order_id, user, kind, amount, len(items), category, items, at_ms)


def timed(env: StreamExecutionEnvironment, events: Iterable[Any], kind: type, bound_ms: int = 5000) -> DataStream:
    """The records in this order, with event times and watermarks."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    stream = env.from_collection(list(events), kind)
    return stream.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record.timestamp_ms)
    )


def shop(directory: Path, parallelism: int = 2, **changes: Any) -> Settings:
    """Settings of a job that writes files; stock is short."""
    small = {"initial_stock": 40, "batch_size": 30, "sink": "files", **changes}
    return Settings(directory=str(directory), parallelism=parallelism, **small)


def job_in_process(
    settings: Settings,
    feed: Feed,
    restore: InProcessCheckpoint | None = None,
    records_per_epoch: int = 60,
    faults: Sequence[Fault] = (),
) -> InProcessJob:
    """The whole job, ready to run."""
    env = environment(settings)
    build(env, settings, feed, faults)
    return InProcessJob(build_plan(env._program(settings.job_name)), max_records=records_per_epoch, restore=restore)


def verdicts(settings: Settings, feed: Feed, partial: int) -> list[Verdict]:
    """The files of the job beside the results of the model."""
    return compare(Path(settings.directory) / "output", expected(settings, feed), settings.batch_size, partial)


def assert_as_expected(settings: Settings, feed: Feed, partial: int) -> None:
    """Compare every stream of results with the model."""
    found = verdicts(settings, feed, partial)
    assert all(verdict.equal for verdict in found), f"seed {feed.seed}: " + "; ".join(map(str, found))
