"""The latency of an almost empty epoch, beside that of the same Spark job with trivial Python tasks.

Both run in one session, in turn: an epoch through slots, then the plain job of as many stages (`parallelize`, then per
exchange a `mapPartitions` and a `partitionBy`, then `collect`), written as a PySpark user would write it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

from rekindle.common import Configuration, WatermarkStrategy
from rekindle.coordinator.job_events import EpochCounted, JobEvent
from rekindle.coordinator.observer import JobObserver
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.spark import launcher
from rekindle.spark.shared_session import lease_session

WARM_UP_EPOCHS = 15


def trivial(rows: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """A Python task that does nothing."""
    for _ in rows:
        pass
    return iter([(0, b"x"), (1, b"x")])


def plain_job_ms(spark_context: Any, stages: int) -> float:
    """Run one Spark job with trivial Python tasks; returns its time."""
    started = time.perf_counter()
    rows = spark_context.parallelize(range(2), 2).mapPartitions(trivial)
    for _ in range(stages - 1):
        rows = rows.partitionBy(2, int).mapPartitions(trivial)
    rows.collect()
    return (time.perf_counter() - started) * 1000


class InTurn(JobObserver):
    """Runs, after every epoch, a plain job of as many stages."""

    def __init__(self, spark_context: Any, stages: int) -> None:
        self._spark_context = spark_context
        self._stages = stages
        self.epochs_ms: list[float] = []
        self.plain_ms: list[float] = []

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, EpochCounted):
            plain_ms = plain_job_ms(self._spark_context, self._stages)
            if event.summary.epoch > WARM_UP_EPOCHS:
                self.epochs_ms.append(event.summary.duration_ms)
                self.plain_ms.append(plain_ms)


def measure(stages: int, epochs: int) -> InTurn:
    """Run a job of `stages` stages, with one record per subtask and epoch."""
    settings = {"master": "local[2]", "rekindle.progress": "off", "execution.buffer-timeout.interval": "0 ms"}
    settings |= {"rekindle.epoch.initial-records": "1", "rekindle.epoch.max-records": "1"}
    configuration = Configuration.from_dict(settings)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    count = 2 * (epochs + WARM_UP_EPOCHS)
    stream = env.from_source(DataGeneratorSource(lambda n: n, count), WatermarkStrategy.no_watermarks(), "numbers", int)
    for _ in range(stages - 1):
        stream = stream.key_by(lambda n: n, int).map(lambda n: n, int)
    observer = InTurn(lease_session(configuration).context, stages)
    launcher.launch(env._program("empty epochs", stream.filter(lambda n: False)._collect()), observer).result().result()
    return observer


def main() -> None:
    """Prints a JSON line per number of stages and engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--stages", default="2,3")
    arguments = parser.parse_args()
    for stages in map(int, arguments.stages.split(",")):
        observer = measure(stages, arguments.epochs)
        for engine, durations in (("rekindle", observer.epochs_ms), ("spark", observer.plain_ms)):
            line = {"engine": engine, "stages": stages, "median_ms": statistics.median(durations), "of": len(durations)}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
