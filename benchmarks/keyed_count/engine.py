"""Rekindle's side: read-modify-write of one value of keyed state per record, through `KeyedProcessFunction`.

Records carry timestamps, watermarks are generated and travel with them, changes of state are tracked: nothing is
switched off. The source emits slices, with timestamps, of the block that was made before the clock starts; every record
passes through Spark's shuffle. Progress is recorded at the end of every epoch, by the job master's observer.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.keyed_count.workload import BLOCK_RECORDS, Mark, block, report, steady
from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.coordinator.job_events import EpochCounted, FunctionsOpened, JobEvent
from rekindle.coordinator.observer import JobObserver
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.spark import launcher

END_OF_TIME = 2**62
START_MS = 1_700_000_000_000


class BlockSource(Source[tuple[str, int]]):
    """One split per subtask, each with its share of the records."""

    def __init__(self, keys: int, records: int) -> None:
        self._keys = keys
        self._records = records

    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(number), 0) for number in range(parallelism)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[tuple[str, int]]:
        share = block(self._keys)[context.index_of_subtask :: context.parallelism]
        return BlockReader(share, self._records // context.parallelism, splits)


class BlockReader(SourceReader[tuple[str, int]]):
    """Emits slices of the block, again and again."""

    def __init__(self, share: list[tuple[str, int]], records: int, splits: list[SourceSplit]) -> None:
        self._share = share
        self._records = records
        self._position = splits[0].position
        self._split = splits[0].split_id

    def poll(self, max_records: int) -> Batch[tuple[str, int]] | None:
        if self._position >= self._records:
            return None
        start = self._position % len(self._share)
        count = min(max_records, self._records - self._position, len(self._share) - start)
        self._position += count
        time_ms = START_MS + self._position
        return Batch(self._share[start : start + count], list(range(time_ms - count, time_ms)))

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(self._split, self._position)]


class Count(KeyedProcessFunction):
    """Counts a key's records, and emits the count at the end of event time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        count = self._count.value()
        if count is None:
            count = 0
            ctx.timer_service().register_event_time_timer(END_OF_TIME)
        count += value[1]
        self._count.update(count)
        if count < 0:
            yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), self._count.value() or 0


class Marks(JobObserver):
    """Records the time and the number of processed records at the end of each epoch."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []

    def on_event(self, event: JobEvent) -> None:
        match event:
            case FunctionsOpened():
                self.marks.append(Mark(time.monotonic(), 0))
            case EpochCounted(summary):
                self.marks.append(Mark(time.monotonic(), self.marks[-1].records + summary.records_in))


def main() -> None:
    """Do one run and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--untyped", action="store_true", help="pickle records instead of declaring their type")
    parser.add_argument("--typed", action="store_true", help="declare the records' type (the default)")
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a configuration key")
    arguments = parser.parse_args()
    settings: dict[str, Any] = {"master": f"local[{arguments.parallelism}]", "rekindle.progress": "off"}
    settings |= dict(pair.split("=", 1) for pair in arguments.set)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(arguments.parallelism)
    pair_type = None if arguments.untyped else Types.TUPLE([Types.STRING(), Types.LONG()])
    records = arguments.records // arguments.parallelism * arguments.parallelism
    source = env.from_source(
        BlockSource(arguments.keys, records), WatermarkStrategy.for_monotonous_timestamps(), "records", pair_type
    )
    counts = source.key_by(lambda pair: pair[0], Types.STRING()).process(Count(), pair_type).name("count")
    marks = Marks()
    job = launcher.launch(env._program("keyed count", counts._collect()), observer=marks)
    counted = sum(pair[1] for batch in job.results() for pair in batch)
    report(
        "rekindle" if not arguments.untyped else "rekindle (untyped)",
        arguments.keys,
        steady(marks.marks),
        counted,
        records,
        {
            "records": "pickle 5" if arguments.untyped else "msgpack, declared type",
            "parallelism": arguments.parallelism,
            "epochs": len(marks.marks) - 1,
            "block": BLOCK_RECORDS,
            **settings,
        },
    )


if __name__ == "__main__":
    main()
