"""Bytewax with recovery on: ``stateful_batch`` (state once per key and batch) or ``stateful`` (a call per record).

A partitioned source emits records as large lists of ``(key, value)``, Bytewax's own form of a keyed stream, so that no
``key_on`` step is needed. A third form, ``key_on`` and ``stateful_map``, is the textbook's. The clock starts
when the warm-up part has drained (the source pauses for that) and stops when the slowest worker has processed its last
record (its first ``on_eof``, or the end of the sink). The sink adds up the last count of every key.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import gc
import json
import socket
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
from bytewax.operators import StatefulBatchLogic, StatefulLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main, run_main

from benchmarks.keyed_count.workload import WARM_UP_SHARE, Steady, block, report

EPOCH_INTERVAL_SECONDS = 10
DRAIN_SECONDS = 2.0
FORMS = {
    "batch": "stateful_batch (on_batch), keyed by the source",
    "record": "stateful (on_item), keyed by the source",
    "map": "key_on, map_value, stateful_map",
}


class Clock:
    """The measurements of one process: times of the first timed and the last record, records timed, sum of counts."""

    began: float | None = None
    ended: float | None = None
    timed_records = 0
    counted = 0


class BlockPartition(StatefulSourcePartition[tuple[str, int], int]):
    """Emits its share of the block again and again, in lists that were made before the start."""

    def __init__(
        self, batches: list[list[tuple[str, int]]], records: int, paused: Path, all_paused: list[Path]
    ) -> None:
        self.batches = batches
        self.records = records
        self.warm_up = int(records * WARM_UP_SHARE)
        self.done = 0
        self.next = 0
        self.paused = paused
        self.all_paused = all_paused
        self.warm = False

    def next_batch(self) -> Iterable[tuple[str, int]]:
        if self.done >= self.records:
            raise StopIteration
        if not self.warm and self.done >= self.warm_up:
            if not self.drained():
                return []
            self.warm = True
            Clock.began = min(Clock.began or float("inf"), time.time())
            Clock.timed_records += self.records - self.done
        batch = self.batches[self.next]
        self.next = (self.next + 1) % len(self.batches)
        if self.done + len(batch) > self.records:
            batch = batch[: self.records - self.done]
        self.done += len(batch)
        return batch

    def next_awake(self) -> datetime | None:
        if self.warm or self.done < self.warm_up:
            return None
        return datetime.now(UTC) + timedelta(milliseconds=20)

    def drained(self) -> bool:
        """Whether every partition has paused for long enough that nothing of the warm-up is still under way."""
        if not self.paused.exists():
            self.paused.touch()
        times = [path.stat().st_mtime for path in self.all_paused if path.exists()]
        return len(times) == len(self.all_paused) and time.time() > max(times) + DRAIN_SECONDS

    def snapshot(self) -> int:
        return self.done


class BlockSource(FixedPartitionedSource[tuple[str, int], int]):
    """One partition per process."""

    def __init__(self, keys: int, records: int, partitions: int, batch: int, directory: Path) -> None:
        self.records = records
        self.partitions = partitions
        self.paused = [directory / f"paused-{number}" for number in range(partitions)]
        whole = block(keys)
        self.shares = []
        for number in range(partitions):
            share = whole[number::partitions]
            self.shares.append([share[start : start + batch] for start in range(0, len(share), batch)])

    def list_parts(self) -> list[str]:
        return [str(number) for number in range(self.partitions)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> BlockPartition:
        number = int(for_part)
        records = self.records // self.partitions
        return BlockPartition(self.shares[number], records, self.paused[number], self.paused)


def note_the_end() -> None:
    if Clock.ended is None:
        Clock.ended = time.time()


class CountBatches(StatefulBatchLogic[int, int, int]):
    """One call for all records of a key that came in one batch."""

    __slots__ = ("count",)

    def __init__(self, resumed: int | None) -> None:
        self.count = resumed or 0

    def on_batch(self, values: list[int]) -> tuple[Iterable[int], bool]:
        self.count += sum(values)
        return (), False

    def on_eof(self) -> tuple[Iterable[int], bool]:
        note_the_end()
        return (self.count,), True

    def snapshot(self) -> int:
        return self.count


class CountRecords(StatefulLogic[int, int, int]):
    """One call for each record."""

    __slots__ = ("count",)

    def __init__(self, resumed: int | None) -> None:
        self.count = resumed or 0

    def on_item(self, value: int) -> tuple[Iterable[int], bool]:
        self.count += value
        return (), False

    def on_eof(self) -> tuple[Iterable[int], bool]:
        note_the_end()
        return (self.count,), True

    def snapshot(self) -> int:
        return self.count


def count_mapped(count: int | None, value: int) -> tuple[int, int]:
    """One call for each record, in the form that users meet first: every new count is emitted."""
    count = (count or 0) + value
    return count, count


class AddUp(StatelessSinkPartition[tuple[str, int]]):
    """Keeps the last count of each key that reaches it and adds them up at the end."""

    def __init__(self) -> None:
        self.last_counts: dict[str, int] = {}

    def write_batch(self, items: list[tuple[str, int]]) -> None:
        self.last_counts.update(items)

    def close(self) -> None:
        note_the_end()
        Clock.counted += sum(self.last_counts.values())


class AddUpSink(DynamicSink[tuple[str, int]]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> AddUp:
        return AddUp()


def dataflow(options: argparse.Namespace, directory: Path) -> Dataflow:
    flow = Dataflow("keyed_count")
    source = BlockSource(options.keys, options.records, options.processes, options.batch, directory)
    stream = op.input("records", flow, source)
    if options.form == "map":
        keyed = op.map_value("value", op.key_on("key", stream, lambda record: record[0]), lambda record: record[1])
        counts = op.stateful_map("count", keyed, count_mapped)
    elif options.form == "record":
        counts = op.stateful("count", stream, CountRecords)
    else:
        counts = op.stateful_batch("count", stream, CountBatches)
    op.output("final_counts", counts, AddUpSink())
    return flow


def run_process(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Run this process's share and return its measurements."""
    flow = dataflow(options, directory)
    gc.freeze()
    recovery = None if options.no_recovery else RecoveryConfig(str(directory))
    epoch = timedelta(seconds=EPOCH_INTERVAL_SECONDS)
    if options.processes == 1:
        run_main(flow, epoch_interval=epoch, recovery_config=recovery)
    else:
        addresses = [f"127.0.0.1:{options.port + number}" for number in range(options.processes)]
        cluster_main(flow, addresses, options.process, epoch_interval=epoch, recovery_config=recovery)
    return {"began": Clock.began, "ended": Clock.ended, "records": Clock.timed_records, "counted": Clock.counted}


def run_cluster(options: argparse.Namespace, directory: Path) -> list[dict[str, Any]]:
    """Start one process per worker; return the measurements of each."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.keyed_count.peers.bytewax",
        *sys.argv[1:],
        "--directory",
        str(directory),
    ]
    command += ["--port", str(free_port())]
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


def free_port() -> int:
    """Return the first of two neighbouring free ports."""
    for port in range(20_000, 30_000, 10):
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise SystemExit("bytewax: no free port between 20000 and 30000.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--form", choices=list(FORMS), default="batch")
    parser.add_argument("--no-recovery", action="store_true")
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
    timed = Steady(
        sum(note["records"] for note in noted),
        max(note["ended"] for note in noted) - min(note["began"] for note in noted),
    )
    settings = {
        "operator": FORMS[options.form],
        "processes": options.processes,
        "source batch": options.batch,
        "recovery": "off" if options.no_recovery else f"on, epoch interval {EPOCH_INTERVAL_SECONDS} s",
        "gc": "input frozen",
    }
    report("bytewax", options.keys, timed, sum(note["counted"] for note in noted), options.records, settings)


if __name__ == "__main__":
    main()
