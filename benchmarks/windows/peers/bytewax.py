"""Bytewax: ``fold_window`` with an event clock and recovery on, in one process or two.

The source keys the records, in large lists. The folder takes the clock's marks, with every 500 records; the clock stops
when the sink is closed. Windows wait ten seconds of event time, so that no record is late although the two sources of
two processes drift apart.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.operators import windowing
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main, run_main

from benchmarks.keyed_count.peers.bytewax import EPOCH_INTERVAL_SECONDS, free_port
from benchmarks.keyed_count.workload import Mark, merged, report, steady
from benchmarks.windows.workload import GAP_MS, KINDS, START_MS, WINDOW_MS, records

RECORDS_PER_MARK = 500
WAIT = timedelta(seconds=10)

Event = tuple[str, tuple[datetime, int]]


class Clock:
    """The measurements of one process."""

    marks: list[tuple[float, int]] = []  # noqa: RUF012 (one per process)
    processed = 0
    counted = 0


class EventPartition(StatefulSourcePartition[Event, int]):
    """Emits its share in lists that were made before the start."""

    def __init__(self, batches: list[list[Event]]) -> None:
        self.batches = batches
        self.next = 0

    def next_batch(self) -> Iterable[Event]:
        if self.next == len(self.batches):
            raise StopIteration
        self.next += 1
        return self.batches[self.next - 1]

    def snapshot(self) -> int:
        return self.next


class EventSource(FixedPartitionedSource[Event, int]):
    """One partition per process."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.partitions = options.processes
        events = [
            (key, (datetime.fromtimestamp(timestamp / 1000, UTC), value))
            for key, value, timestamp in records(options.keys, options.kind, options.records)
        ]
        shares = [events[number :: self.partitions] for number in range(self.partitions)]
        self.shares = [
            [share[begin : begin + options.batch] for begin in range(0, len(share), options.batch)] for share in shares
        ]

    def list_parts(self) -> list[str]:
        return [str(number) for number in range(self.partitions)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> EventPartition:
        return EventPartition(self.shares[int(for_part)])


def fold(accumulator: tuple[int, int], value: tuple[datetime, int]) -> tuple[int, int]:
    Clock.processed += 1
    if Clock.processed % RECORDS_PER_MARK == 0:
        Clock.marks.append((time.time(), Clock.processed))
    return accumulator[0] + 1, accumulator[1] + value[1]


class AddUp(StatelessSinkPartition[Any]):
    def write_batch(self, items: list[Any]) -> None:
        Clock.counted += sum(total for _, (_, (_, total)) in items)

    def close(self) -> None:
        Clock.marks.append((time.time(), Clock.processed))


class AddUpSink(DynamicSink[Any]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> AddUp:
        return AddUp()


def dataflow(options: argparse.Namespace) -> Dataflow:
    flow = Dataflow("windows")
    events = op.input("events", flow, EventSource(options))
    clock = windowing.EventClock(ts_getter=lambda value: value[0], wait_for_system_duration=WAIT)
    start = datetime.fromtimestamp(START_MS / 1000, UTC)
    windower: Any = (
        windowing.TumblingWindower(length=timedelta(milliseconds=WINDOW_MS), align_to=start)
        if options.kind == "tumbling"
        else windowing.SessionWindower(gap=timedelta(milliseconds=GAP_MS))
    )
    totals = windowing.fold_window(
        "totals", events, clock, windower, lambda: (0, 0), fold, lambda a, b: (a[0] + b[0], a[1] + b[1])
    )
    op.output("out", totals.down, AddUpSink())
    return flow


def run_process(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Run this process's share and return its measurements."""
    flow = dataflow(options)
    gc.freeze()
    epoch = timedelta(seconds=EPOCH_INTERVAL_SECONDS)
    recovery = RecoveryConfig(str(directory))
    if options.processes == 1:
        run_main(flow, epoch_interval=epoch, recovery_config=recovery)
    else:
        addresses = [f"127.0.0.1:{options.port + number}" for number in range(options.processes)]
        cluster_main(flow, addresses, options.process, epoch_interval=epoch, recovery_config=recovery)
    return {"marks": Clock.marks, "counted": Clock.counted}


def run_cluster(options: argparse.Namespace, directory: Path) -> list[dict[str, Any]]:
    """Start one process per worker; return the measurements of each."""
    command = [sys.executable, "-m", "benchmarks.windows.peers.bytewax", *sys.argv[1:]]
    command += ["--directory", str(directory), "--port", str(free_port())]
    children = [
        subprocess.Popen(
            [*command, "--process", str(number)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for number in range(options.processes)
    ]
    outputs = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise SystemExit("bytewax: a worker process failed; run it with --processes 1 to see its error.")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="tumbling")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.records -= options.records % options.processes
    if options.process is not None:
        print(json.dumps(run_process(options, options.directory)), flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        init_db_dir(directory, options.processes)
        noted = [run_process(options, directory)] if options.processes == 1 else run_cluster(options, directory)
    marks = merged([Mark(*mark) for mark in note["marks"]] for note in noted)
    settings = {
        "kind": options.kind,
        "operator": "fold_window, keyed by the source",
        "processes": options.processes,
        "source batch": options.batch,
        "recovery": f"on, epoch interval {EPOCH_INTERVAL_SECONDS} s",
    }
    report("bytewax", options.keys, steady(marks), sum(note["counted"] for note in noted), options.records, settings)


if __name__ == "__main__":
    main()
