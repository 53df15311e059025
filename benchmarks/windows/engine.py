"""Rekindle's side: an aggregate function over windows, the program that a PyFlink user would write.

The source makes records on demand; a timestamp assigner in Python reads their timestamps, as in PyFlink. Every record
passes through Spark's shuffle. Checkpoints can be switched on with `--checkpoint-ms`.
"""

from __future__ import annotations

import argparse
from itertools import repeat
from typing import Any

from benchmarks.keyed_count.engine import Marks
from benchmarks.keyed_count.workload import BLOCK_RECORDS, report, steady
from benchmarks.windows.workload import GAP_MS, KINDS, WINDOW_MS, block_of_keys, timestamp_of
from rekindle.common import Configuration, Time, Types, WatermarkStrategy
from rekindle.datastream import AggregateFunction, StreamExecutionEnvironment
from rekindle.datastream.connectors.base import (
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from rekindle.spark import launcher

Event = tuple[str, int, int]


class Events(Source[Event]):
    """One split per subtask; subtask i of n has the records i, i + n, i + 2n, …"""

    def __init__(self, keys: int, kind: str, records: int) -> None:
        self._keys, self._kind, self._records = keys, kind, records

    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(number), 0) for number in range(parallelism)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[Event]:
        share = block_of_keys(self._keys, self._kind)[context.index_of_subtask :: context.parallelism]
        times = [timestamp_of(index) for index in range(context.index_of_subtask, BLOCK_RECORDS, context.parallelism)]
        return EventReader(share, times, self._records // context.parallelism, splits)


class EventReader(SourceReader[Event]):
    """Emits the keys of the block again and again, with increasing times."""

    def __init__(self, keys: list[str], times: list[int], records: int, splits: list[SourceSplit]) -> None:
        self._keys, self._times, self._records = keys, times, records
        self._position = splits[0].position
        self._split = splits[0].split_id

    def poll(self, max_records: int) -> list[Event] | None:
        if self._position >= self._records:
            return None
        rounds, start = divmod(self._position, len(self._keys))
        count = min(max_records, self._records - self._position, len(self._keys) - start)
        self._position += count
        later = rounds * (timestamp_of(BLOCK_RECORDS) - timestamp_of(0))
        times = [time + later for time in self._times[start : start + count]]
        return list(zip(self._keys[start : start + count], repeat(1), times, strict=False))

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(self._split, self._position)]


class Total(AggregateFunction):
    """Aggregates to the number of records and the sum of their values."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Event, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def get_result(self, accumulator: tuple[int, int]) -> int:
        return accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def main() -> None:
    """Do one run and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="tumbling")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--checkpoint-ms", type=int, default=0)
    arguments = parser.parse_args()
    settings: dict[str, Any] = {"master": f"local[{arguments.parallelism}]", "rekindle.progress": "off"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(arguments.parallelism)
    if arguments.checkpoint_ms:
        env.enable_checkpointing(arguments.checkpoint_ms)
    records = arguments.records // arguments.parallelism * arguments.parallelism
    timestamps = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[2])
    event_type = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    events = env.from_source(Events(arguments.keys, arguments.kind, records), timestamps, "events", event_type)
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS))
    totals = (
        events.key_by(lambda event: event[0], Types.STRING())
        .window(tumbling if arguments.kind == "tumbling" else sessions)
        .aggregate(Total(), accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG()]), output_type=Types.LONG())
    )
    marks = Marks()
    job = launcher.launch(env._program("windows", totals._collect()), observer=marks)
    windows, counted = 0, 0
    for batch in job.results():
        windows += len(batch)
        counted += sum(batch)
    said = {"kind": arguments.kind, "windows": windows, "epochs": len(marks.marks) - 1}
    said |= {"parallelism": arguments.parallelism, "checkpoints every": f"{arguments.checkpoint_ms or 'no'} ms"}
    report("rekindle", arguments.keys, steady(marks.marks), counted, records, {**said, **settings})


if __name__ == "__main__":
    main()
