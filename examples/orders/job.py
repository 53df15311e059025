"""The job: five branches over one stream of order events.

    orders ─(by order)─ deduplicate ─┬─ batches of 100
                                     └─ track ─┬─ statuses
                                               ├─(by user)─── purchases per hour
                                               └─(by product)─ stock, low-stock warnings, back-orders

Duplicates, events that do not fit and purchases that come too late are side outputs, each with a sink of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from examples.orders.batches import BatchSink
from examples.orders.deduplication import DROPPED, Deduplicate
from examples.orders.ends import Ends, ends
from examples.orders.faults import FailAt, Fault
from examples.orders.kafka_ends import kafka_source
from examples.orders.purchases import LATE_PURCHASES, DescribeWindow, PurchaseTotals, SumPurchases, purchases_of
from examples.orders.records import OrderEvent, Purchase, StockMove, StockUpdate, UserPurchases
from examples.orders.settings import Feed, Settings, millis
from examples.orders.source import OrderSource
from examples.orders.stock import BACK_ORDERS, LOW_STOCK, KeepStock, moves_of
from examples.orders.tracking import REJECTED, STEPS, TrackOrders
from rekindle.common import Configuration, Duration, RestartStrategies, Time, Types, WatermarkStrategy
from rekindle.datastream import (
    CheckpointingMode,
    DataStream,
    DataStreamUtils,
    ExternalizedCheckpointRetention,
    StreamExecutionEnvironment,
)
from rekindle.datastream.connectors.base import Source
from rekindle.datastream.window import TumblingEventTimeWindows


def environment(settings: Settings, **more: str) -> StreamExecutionEnvironment:
    """An environment with the settings for checkpoints, restarts and state; `more` is further configuration."""
    folder = os.path.abspath(settings.directory)
    keys = {
        "execution.checkpointing.dir": os.path.join(folder, "checkpoints"),
        "execution.checkpointing.savepoint-dir": os.path.join(folder, "savepoints"),
        **({"state.backend.type": settings.backend} if settings.backend else {}),
        **more,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(keys))
    env.set_parallelism(settings.parallelism)
    env.enable_checkpointing(millis(settings.checkpoint_interval_s), CheckpointingMode.EXACTLY_ONCE)
    checkpoints = env.get_checkpoint_config()
    checkpoints.set_checkpoint_timeout(millis(settings.checkpoint_timeout_s))
    checkpoints.set_max_concurrent_checkpoints(settings.concurrent_checkpoints)
    checkpoints.set_min_pause_between_checkpoints(millis(settings.checkpoint_pause_s))
    checkpoints.set_fail_on_checkpointing_errors(True)
    retention = ExternalizedCheckpointRetention
    checkpoints.set_externalized_checkpoint_retention(
        retention.RETAIN_ON_CANCELLATION if settings.retain_checkpoints else retention.DELETE_ON_CANCELLATION
    )
    delay_ms = millis(settings.restart_delay_s)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(settings.restart_attempts, delay_ms))
    return env


def build(
    env: StreamExecutionEnvironment,
    settings: Settings,
    feed: Feed,
    faults: Sequence[Fault] = (),
    track: type[TrackOrders] = TrackOrders,
) -> DataStream:
    """Put the job into an environment. Operators with state have a uid, by which a restore finds their state.

    Returns the statuses of orders, for further branches.
    """
    return connect(order_events(env, settings, _source(settings, feed)), settings, ends(settings), faults, track)


def order_events(env: StreamExecutionEnvironment, settings: Settings, source: Source[OrderEvent]) -> DataStream:
    """The source, with event times and watermarks."""
    bound = Duration.of_millis(millis(settings.out_of_orderness_s))
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(bound)
    timed = watermarks.with_timestamp_assigner(lambda event, _: event.timestamp_ms)
    return env.from_source(source, timed, "orders", OrderEvent).uid("orders")


def _source(settings: Settings, feed: Feed) -> Source[OrderEvent]:
    if settings.source == "generator":
        return OrderSource(feed, millis(settings.out_of_orderness_s))
    if settings.source == "kafka":
        return kafka_source(settings, feed)
    raise ValueError(f"There is no source called {settings.source!r}: use generator or kafka.")


def connect(
    events: DataStream,
    settings: Settings,
    sinks: Ends,
    faults: Sequence[Fault] = (),
    track: type[TrackOrders] = TrackOrders,
) -> DataStream:
    """All five branches, from the events to the sinks; returns the statuses of orders."""
    unique = deduplicated(_failing(events, "deduplication", faults), settings, sinks)
    _write_batches(_failing(unique, "batches", faults), settings, sinks)
    statuses = tracked(_failing(unique, "tracking", faults), settings, sinks, track)
    steps = statuses.get_side_output(STEPS)
    purchases = steps.flat_map(purchases_of, Purchase).name("purchases")
    _sum_purchases(_failing(purchases, "purchases", faults), settings, sinks)
    moves = steps.flat_map(moves_of, StockMove).name("stock moves")
    _keep_stock(_failing(moves, "stock", faults), settings, sinks)
    return statuses


def deduplicated(events: DataStream, settings: Settings, sinks: Ends) -> DataStream:
    """Branch 1."""
    function = Deduplicate(millis(settings.duplicate_horizon_s))
    unique = events.key_by(_order_id, Types.STRING()).process(function, OrderEvent)
    unique.name("deduplicate").uid("deduplicate")
    _write(unique.get_side_output(DROPPED), sinks, "dropped")
    return unique


def tracked(events: DataStream, settings: Settings, sinks: Ends, track: type[TrackOrders] = TrackOrders) -> DataStream:
    """Branch 2. The deduplication is keyed by order, so an order's events are at one subtask already."""
    function = track(millis(settings.order_retention_s), millis(settings.order_lifetime_s))
    by_order = DataStreamUtils.reinterpret_as_keyed_stream(events, _order_id, Types.STRING())
    statuses = by_order.process(function, track.status_type)
    statuses.name("track").uid("track")
    _write(statuses, sinks, "statuses")
    _write(statuses.get_side_output(REJECTED), sinks, "rejected")
    return statuses


def _sum_purchases(purchases: DataStream, settings: Settings, sinks: Ends) -> None:
    """Branch 3."""
    windows = purchases.key_by(lambda purchase: purchase.user_id, Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.milliseconds(millis(settings.window_s)))
    )
    sums = windows.side_output_late_data(LATE_PURCHASES).aggregate(
        SumPurchases(), DescribeWindow(), accumulator_type=PurchaseTotals, output_type=UserPurchases
    )
    sums.name("purchases per user").uid("purchases")
    _write(sums, sinks, "purchases")
    _write(sums.get_side_output(LATE_PURCHASES), sinks, "late-purchases")


def _keep_stock(moves: DataStream, settings: Settings, sinks: Ends) -> None:
    """Branch 4."""
    function = KeepStock(settings.initial_stock, settings.low_stock, millis(settings.order_lifetime_s))
    updates = moves.key_by(lambda move: move.product_id, Types.STRING()).process(function, StockUpdate)
    updates.name("stock").uid("stock")
    _write(updates, sinks, "stock")
    _write(updates.get_side_output(LOW_STOCK), sinks, "low-stock")
    _write(updates.get_side_output(BACK_ORDERS), sinks, "back-orders")


def _write_batches(events: DataStream, settings: Settings, sinks: Ends) -> None:
    """Branch 5."""
    sink = BatchSink(sinks("batches"), settings.batch_size)
    events.sink_to(sink).name("write batches").uid("write batches")


def _write(stream: DataStream, sinks: Ends, name: str) -> None:
    stream.sink_to(sinks(name)).name(f"write {name}").uid(f"write {name}")


def _failing(stream: DataStream, branch: str, faults: Sequence[Fault]) -> DataStream:
    """The stream through a function that fails, if there are faults for this branch."""
    due = tuple(fault for fault in faults if fault.branch == branch)
    return stream.map(FailAt(due), stream.get_type()).name(f"fault before {branch}") if due else stream


def _order_id(event: Any) -> str:
    order_id: str = event.order_id
    return order_id
