"""PyFlink: the same program as Rekindle's, `window(...).aggregate(...)`, tuned; process mode, loopback or thread mode.

The aggregate function takes the clock's marks, with every 500 records of a process; the clock stops when the operator
after the windows is closed, which writes the sum of the windows to a file.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, RuntimeContext
from pyflink.datastream.functions import FlatMapFunction
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

from benchmarks.keyed_count.peers.pyflink import MODES, WORKERS, configuration, environment_with
from benchmarks.keyed_count.workload import Mark, merged, report, steady
from benchmarks.windows.workload import GAP_MS, KINDS, WINDOW_MS, records

RECORDS_PER_MARK = 500


class Progress:
    """Counts the records of this process's aggregate functions, in one file per process."""

    processed = 0

    @classmethod
    def note(cls, directory: str) -> None:
        cls.processed += 1
        if cls.processed % RECORDS_PER_MARK == 0:
            with Path(directory, f"marks-{os.getpid()}").open("a") as file:
                file.write(f"{time.time()} {cls.processed}\n")


class Total(AggregateFunction):
    """Aggregates to the number of records and the sum of their values."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        Progress.note(self.directory)
        return accumulator[0] + 1, accumulator[1] + value[1]

    def get_result(self, accumulator: tuple[int, int]) -> int:
        return accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class EventTime(TimestampAssigner):
    """The third field."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


class AddUp(FlatMapFunction):
    """Adds up the windows' results, and emits nothing."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self.counted = 0

    def flat_map(self, value: int) -> Iterable[int]:
        self.counted += value
        return ()

    def close(self) -> None:
        noted = {"counted": self.counted, "ended": time.time()}
        Path(self.directory, f"{uuid.uuid4()}.json").write_text(json.dumps(noted))
        self.counted = 0


def run(options: argparse.Namespace, settings: dict[str, str], directory: str) -> None:
    environment = environment_with(settings)
    event_type = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    events = environment.from_collection(records(options.keys, options.kind, options.records), type_info=event_type)
    timestamps = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS))
    totals = (
        # The collection is read by one task; timestamps in order need one, too.
        events.assign_timestamps_and_watermarks(timestamps)
        .set_parallelism(1)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(tumbling if options.kind == "tumbling" else sessions)
        .aggregate(
            Total(directory),
            accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG()]),
            output_type=Types.LONG(),
        )
    )
    totals.flat_map(AddUp(directory), output_type=Types.LONG()).print()
    environment.execute("windows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="tumbling")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--mode", choices=MODES, default="process")
    parser.add_argument("--bundle", type=int, default=250_000)
    parser.add_argument("--bundle-time-ms", type=int, default=10_000)
    options = parser.parse_args()
    settings = configuration(options)
    with tempfile.TemporaryDirectory() as directory:
        run(options, settings, directory)
        noted = [json.loads(path.read_text()) for path in Path(directory).glob("*.json")]
        lines = [path.read_text().splitlines() for path in Path(directory).glob("marks-*")]
    seen = [[Mark(float(line.split()[0]), int(line.split()[1])) for line in each] for each in lines]
    marks = merged(seen)
    marks.append(Mark(max(note["ended"] for note in noted), options.records))
    counted = sum(note["counted"] for note in noted)
    described = {"kind": options.kind, "workers": os.environ[WORKERS], **settings}
    report("pyflink", options.keys, steady(marks), counted, options.records, described)


if __name__ == "__main__":
    main()
