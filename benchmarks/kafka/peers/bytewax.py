"""Bytewax's own Kafka source, a decoding step over whole batches, and `stateful_batch`, with recovery on.

One process, or two that exchange records by key. Progress is noted where the records are counted.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main, run_main

from benchmarks.kafka.peers.arguments import parser
from benchmarks.kafka.workload import CLIENT_SETTINGS, FETCH_RECORDS, Progress, pairs_decoder, report
from benchmarks.keyed_count.peers.bytewax import EPOCH_INTERVAL_SECONDS, free_port
from benchmarks.keyed_count.workload import Mark

PROGRESS = Progress()
TOTALS: list[int] = []


class Count(StatefulBatchLogic[int, int, int]):
    """One call for all records of a key that came in one batch."""

    __slots__ = ("count",)

    def __init__(self, resumed: int | None) -> None:
        self.count = resumed or 0

    def on_batch(self, values: list[int]) -> tuple[Iterable[int], bool]:
        self.count += sum(values)
        PROGRESS.add(len(values))
        return (), False

    def on_eof(self) -> tuple[Iterable[int], bool]:
        PROGRESS.end()
        return (self.count,), True

    def snapshot(self) -> int:
        return self.count


class AddUp(StatelessSinkPartition[tuple[str, int]]):
    """Adds up the final counts."""

    def write_batch(self, items: list[tuple[str, int]]) -> None:
        TOTALS.extend(count for _, count in items)


class AddUpSink(DynamicSink[tuple[str, int]]):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> AddUp:
        return AddUp()


def dataflow(options: argparse.Namespace) -> Dataflow:
    flow = Dataflow("kafka")
    add_config = {name: str(value) for name, value in CLIENT_SETTINGS.items()}
    source = KafkaSource(
        [options.bootstrap], [options.topic], tail=False, add_config=add_config, batch_size=FETCH_RECORDS
    )
    decode = pairs_decoder(options.decoder)

    def decoded(messages: list[KafkaSourceMessage[Any, Any]]) -> list[tuple[str, int]]:
        return decode([message.value for message in messages])

    pairs = op.flat_map_batch("decode", op.input("records", flow, source), decoded)
    op.output("final_counts", op.stateful_batch("count", pairs, Count), AddUpSink())
    return flow


def run_process(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Run this process's share and return its measurements."""
    flow, epoch = dataflow(options), timedelta(seconds=EPOCH_INTERVAL_SECONDS)
    recovery = RecoveryConfig(str(directory))
    if options.processes == 1:
        run_main(flow, epoch_interval=epoch, recovery_config=recovery)
    else:
        addresses = [f"127.0.0.1:{options.port + number}" for number in range(options.processes)]
        cluster_main(flow, addresses, options.process, epoch_interval=epoch, recovery_config=recovery)
    marks = [(mark.seconds, mark.records) for mark in PROGRESS.marks]
    return {"marks": marks, "counted": sum(TOTALS)}


def run_cluster(options: argparse.Namespace, directory: Path) -> list[dict[str, Any]]:
    """Start one process per worker; return the measurements of each."""
    command = [sys.executable, "-m", "benchmarks.kafka.peers.bytewax", *sys.argv[1:], "--directory", str(directory)]
    command += ["--port", str(free_port())]
    children = [
        subprocess.Popen([*command, "--process", str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(options.processes)
    ]
    outputs = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise SystemExit("bytewax: a worker process failed; run it with --processes 1 to see its error.")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def main() -> None:
    """Do one run and print one JSON line."""
    arguments = parser(__doc__)
    arguments.add_argument("--processes", type=int, default=1)
    for name, kind in (("--process", int), ("--directory", Path), ("--port", int)):
        arguments.add_argument(name, type=kind, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.process is not None:
        print(json.dumps(run_process(options, options.directory)), flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        init_db_dir(Path(name), options.processes)
        alone = options.processes == 1
        noted = [run_process(options, Path(name))] if alone else run_cluster(options, Path(name))
    settings = {"processes": options.processes, "decoder": options.decoder, "batch": FETCH_RECORDS, **CLIENT_SETTINGS}
    settings["recovery"] = f"on, epoch interval {EPOCH_INTERVAL_SECONDS} s"
    marks = [[Mark(*mark) for mark in note["marks"]] for note in noted]
    report("bytewax", marks, sum(note["counted"] for note in noted), options.records, settings)


if __name__ == "__main__":
    main()
