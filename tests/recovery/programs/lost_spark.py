"""A job whose Spark session cannot be started again when its JVM dies. Prints "<kind>: flowing", then its error.

    python -m tests.recovery.programs.lost_spark <borrowed|dataframe|unstartable> <directory>

`borrowed`: the session is the program's own. `dataframe`: the session is Rekindle's, and the job reads a DataFrame that
was made on it. `unstartable`: the session is Rekindle's, and no Java is found any more once records flow.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rekindle.common import RestartStrategies, Types
from rekindle.datastream import DataStream, SinkFunction, SourceFunction, StreamExecutionEnvironment
from rekindle.errors import JavaMissingError, RekindleError
from rekindle.spark import session
from tests.support.environments import checkpointed


class Endless(SourceFunction):
    """Emits a number every few milliseconds."""

    def __init__(self) -> None:
        self.cancelled = False

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        pause, number = threading.Event(), 0
        while not self.cancelled:
            ctx.collect(number)
            number += 1
            pause.wait(0.005)

    def cancel(self) -> None:
        self.cancelled = True


class Witness(SinkFunction):
    """Prints that records flow, in every attempt."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.flowing = False

    def invoke(self, value: Any, context: Any) -> None:
        if not self.flowing:
            self.flowing = True
            print(f"{self.kind}: flowing", flush=True)


def restarted_often(directory: str) -> StreamExecutionEnvironment:
    env = checkpointed(1, 100, directory=directory, master="local[2]")
    return env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1000, 10))


def numbers(kind: str, directory: str) -> DataStream:
    env = restarted_often(directory)
    endless = env.add_source(Endless(), "numbers", Types.LONG())
    if kind != "dataframe":
        return endless
    made = restarted_often(directory).from_collection([1, 2, 3], Types.LONG()).to_dataframe()
    return endless.union(env.from_dataframe(made).map(lambda row: row[0], Types.LONG()))


def without_java_from_now_on() -> None:
    """Hide Java, as if it were removed: every start of Spark fails from now on."""
    starts: list[None] = []

    def none_found(environ: Any) -> None:
        starts.append(None)
        raise JavaMissingError(f"there is no Java for start {len(starts)}")

    session.ensure_java = none_found  # type: ignore[assignment, attr-defined]


def main() -> None:
    kind, directory = sys.argv[1:]
    if kind == "borrowed":
        os.environ["PYSPARK_PYTHON"] = sys.executable
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    stream = numbers(kind, str(Path(directory, "checkpoints")))
    stream.add_sink(Witness(kind))
    client = stream.get_execution_environment().execute_async(kind)
    if kind == "unstartable":
        without_java_from_now_on()
    try:
        client.get_job_execution_result().result()
    except RekindleError as error:
        print(f"{kind}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
