"""PyFlink: ``KeyedProcessFunction`` with ``ValueState``, tuned; process mode, loopback or thread mode.

The function takes the clock's marks, every 500 records of a subtask and in ``close``, when the state of the last bundle
has been written back. ``close`` also writes the count of each subtask to a file.
"""

# mypy: allow-subclassing-any, allow-untyped-decorators
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

from benchmarks.keyed_count.workload import BLOCK_RECORDS, Mark, block, merged, report, steady

SUBTASKS = 2
RECORDS_PER_MARK = 500
MODES = ("process", "loopback", "thread")
WORKERS = "_python_worker_execution_mode"
"""By default a program on one machine runs all its Python functions in its own process, under one interpreter lock.
That is "loopback" here; "process" gives each subtask a worker process of its own.
"""


class Count(KeyedProcessFunction):
    """Counts the records of each key in state; notes its progress, which costs a thousandth of a state call."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.last_counts: dict[str, int] = {}
        self.processed = 0
        self.marks: list[tuple[float, int]] = []

    def process_element(self, value: Any, ctx: Any) -> Iterable[int]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.last_counts[value[0]] = count
        self.processed += 1
        if self.processed % RECORDS_PER_MARK == 0:
            self.marks.append((time.time(), self.processed))
        return ()

    def close(self) -> None:
        if not self.processed:
            return
        self.marks.append((time.time(), self.processed))
        noted = {"counted": sum(self.last_counts.values()), "marks": self.marks}
        Path(self.directory, f"{uuid.uuid4()}.json").write_text(json.dumps(noted))
        self.processed = 0


def configuration(options: argparse.Namespace) -> dict[str, str]:
    """Flink's settings for a mode; this process's environment says where its workers run."""
    os.environ[WORKERS] = "loopback" if options.mode == "loopback" else "process"
    return {
        "python.execution-mode": "thread" if options.mode == "thread" else "process",
        "python.fn-execution.bundle.size": str(options.bundle),
        "python.fn-execution.bundle.time": str(options.bundle_time_ms),
        "python.state.cache-size": "200000",
        "python.map-state.read-cache-size": "200000",
        "pipeline.object-reuse": "true",
        "state.backend.type": "hashmap",
        "parallelism.default": str(SUBTASKS),
    }


def environment_with(settings: dict[str, str]) -> StreamExecutionEnvironment:
    flink = Configuration()
    for key, value in settings.items():
        flink.set_string(key, value)
    flink.set_string("python.executable", sys.executable)
    flink.set_string("python.client.executable", sys.executable)
    return StreamExecutionEnvironment.get_execution_environment(flink)


def run(options: argparse.Namespace, settings: dict[str, str], directory: str) -> None:
    environment = environment_with(settings)
    whole = block(options.keys)
    repeated = whole * (options.records // BLOCK_RECORDS) + whole[: options.records % BLOCK_RECORDS]
    records = environment.from_collection(repeated, type_info=Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = records.key_by(lambda record: record[0], key_type=Types.STRING())
    keyed.process(Count(directory), output_type=Types.LONG()).print()
    environment.execute("keyed_count")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--mode", choices=MODES, default="process")
    parser.add_argument("--bundle", type=int, default=250_000)
    parser.add_argument("--bundle-time-ms", type=int, default=10_000)
    options = parser.parse_args()
    settings = configuration(options)
    with tempfile.TemporaryDirectory() as directory:
        run(options, settings, directory)
        noted = [json.loads(path.read_text()) for path in Path(directory).glob("*.json")]
    marks = merged([Mark(*mark) for mark in note["marks"]] for note in noted)
    counted = sum(note["counted"] for note in noted)
    report(
        "pyflink", options.keys, steady(marks), counted, options.records, {"workers": os.environ[WORKERS], **settings}
    )


if __name__ == "__main__":
    main()
