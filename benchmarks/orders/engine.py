"""Rekindle's side: the job of `examples/orders/job.py` as it is, from a source of prepared events to sinks that count.

Every subtask of the source loads its share of the events before it emits the first. Every stream of results ends in a
sink that counts its rows and adds up their fields. Checkpoints can be switched on with `--checkpoint-ms`.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from benchmarks.keyed_count.engine import Marks
from benchmarks.keyed_count.workload import steady
from benchmarks.orders.prepare import prepared
from benchmarks.orders.workload import DIGESTS, SHOP, Tallies, added, as_tallies, read_events, report
from examples.orders.job import connect, order_events
from examples.orders.records import EventType, OrderBatch, OrderEvent, OrderItem, OrderStatus
from rekindle.common import Configuration
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.base import (
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.connectors.sink_api import Sink, SinkWriter, WriterInitContext
from rekindle.spark import launcher


class PreparedOrders(Source[OrderEvent]):
    """One split per subtask; an order is in one split with all its events."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(number), 0) for number in range(parallelism)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[OrderEvent]:
        events = load(self._folder, context.index_of_subtask, context.parallelism)
        return PreparedReader(events, splits[0])


class PreparedReader(SourceReader[OrderEvent]):
    """Emits slices of a list."""

    def __init__(self, events: list[OrderEvent], split: SourceSplit) -> None:
        self._events = events
        self._split = split.split_id
        self._position: int = split.position

    def poll(self, max_records: int) -> list[OrderEvent] | None:
        if self._position >= len(self._events):
            return None
        polled = self._events[self._position : self._position + max_records]
        self._position += len(polled)
        return polled

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(self._split, self._position)]


def load(folder: Path, share: int, shares: int) -> list[OrderEvent]:
    """Return the events of a share, as the job knows them; events of one order share their items, as the feed's do."""
    types = {event_type.value: event_type for event_type in EventType}
    known: dict[str, tuple[OrderItem, ...]] = {}
    events = []
    for order_id, user_id, kind, amount, count, category, items, at_ms in read_events(folder, share, shares):
        lines = known.get(order_id)
        if lines is None:
            lines = known[order_id] = tuple(OrderItem(*item) for item in items)
        events.append(OrderEvent(order_id, user_id, types[kind], amount, count, category, lines, at_ms))
    gc.freeze()  # the input is no garbage: a collection need not look through it
    return events


class CountingSink(Sink[Any]):
    """Counts the rows of a stream and adds up their fields; the sums are written at the end of the stream."""

    def __init__(self, stream: str, directory: str) -> None:
        self._stream = stream
        self._directory = directory

    def create_writer(self, context: WriterInitContext) -> SinkWriter[Any]:
        path = Path(self._directory, f"{self._stream}-{context.subtask}.json")
        return BatchCounter(self._stream, path) if self._stream == "batches" else RowCounter(self._stream, path)


class RowCounter(SinkWriter[Any]):
    """Counts one subtask's rows."""

    def __init__(self, stream: str, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._value = value_of(stream)
        self._rows = self._total = 0

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        self._rows += 1
        self._total += self._value(element)

    def flush(self, end_of_input: bool) -> None:
        if end_of_input:
            self._path.write_text(json.dumps({self._stream: (self._rows, self._total)}))


class BatchCounter(RowCounter):
    """Counts the events in one subtask's batches."""

    def write(self, element: OrderBatch, context: SinkWriter.Context) -> None:
        self._rows += len(element.events)
        self._total += sum(map(self._value, element.events))


def value_of(stream: str) -> Callable[[Any], int]:
    """Return a function from a row to the value that it adds to the sum of its stream.

    >>> from examples.orders.records import Status
    >>> value_of("statuses")(OrderStatus("o1", Status.PAID, 3, 5))
    8
    """
    fields = DIGESTS[stream]
    if stream == "statuses":
        return _times
    get: Any = attrgetter(*fields)
    return get if len(fields) == 1 else lambda row: sum(get(row))


def _times(order: OrderStatus) -> int:
    later = (order.paid_ms or 0) + (order.shipped_ms or 0) + (order.delivered_ms or 0) + (order.cancelled_ms or 0)
    return order.created_ms + later


def run(folder: Path, parallelism: int, checkpoint_ms: int, settings: dict[str, str], directory: str) -> Marks:
    """Run the job to its end."""
    if checkpoint_ms:
        settings = {**settings, "execution.checkpointing.dir": str(Path(directory, "checkpoints"))}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(parallelism)
    if checkpoint_ms:
        env.enable_checkpointing(checkpoint_ms)
    connect(order_events(env, SHOP, PreparedOrders(folder)), SHOP, lambda stream: CountingSink(stream, directory))
    marks = Marks()
    launcher.launch(env._program("orders"), observer=marks).result().result()
    return marks


def main() -> None:
    """Do one run and print one JSON line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orders.engine", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--checkpoint-ms", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a configuration key")
    options = parser.parse_args()
    folder = prepared(options.events)
    settings = {
        "master": f"local[{options.parallelism}]",
        "rekindle.progress": "off",
        # Of a second by default. The peers' batches hold events back for longer: Spark's for a minute.
        "rekindle.epoch.target-duration": "4 s",
    }
    settings |= dict(pair.split("=", 1) for pair in options.set)
    with tempfile.TemporaryDirectory() as directory:
        marks = run(folder, options.parallelism, options.checkpoint_ms, settings, directory).marks
        found: Tallies = added(as_tallies(json.loads(path.read_text())) for path in Path(directory).glob("*.json"))
    said: dict[str, Any] = {"parallelism": options.parallelism, "epochs": len(marks) - 1}
    said |= {"checkpoints every": f"{options.checkpoint_ms or 'no'} ms"}
    report("rekindle", folder, steady(marks), found, {**said, **settings})


if __name__ == "__main__":
    main()
