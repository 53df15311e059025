"""Runs jobs that never end by themselves, one after the other; tests end them from outside.

python endless.py <master> <directory for the sinks' files> <job name>... [key=value ...]

The sinks' subtasks print "flowing" when records reach them. A job's error is printed as "<job>: <type>: <message>".
In a job named "stuck" the sink's subtask 0 never returns, and holds the interpreter's lock meanwhile.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from typing import Any

from rekindle.common import Configuration
from rekindle.datastream import SinkFunction, SourceFunction, StreamExecutionEnvironment
from rekindle.errors import RekindleError


class Endless(SourceFunction):
    """Emits a number every few milliseconds."""

    def __init__(self) -> None:
        self.cancelled = False

    def run(self, ctx: Any) -> None:
        pause, number = threading.Event(), 0
        while not self.cancelled:
            ctx.collect(number)
            number += 1
            pause.wait(0.005)

    def cancel(self) -> None:
        self.cancelled = True


class Witness(SinkFunction):
    """Prints when records flow, and writes a file when it is closed."""

    def __init__(self, job: str, directory: str) -> None:
        self.job = job
        self.directory = Path(directory)

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.flowing = False

    def invoke(self, value: int, context: Any) -> None:
        if not self.flowing:
            self.flowing = True
            print(f"{self.job}: flowing in {self.subtask}", flush=True)
        elif self.job == "stuck" and self.subtask == 0:
            re.match(r"(a+)+$", "a" * 64 + "b")

    def close(self) -> None:
        (self.directory / f"{self.job}-{self.subtask}.closed").touch()


def main() -> None:
    master, directory = sys.argv[1:3]
    jobs = [argument for argument in sys.argv[3:] if "=" not in argument]
    settings = dict(argument.split("=", 1) for argument in sys.argv[3:] if "=" in argument)
    configuration = Configuration.from_dict({"master": master, "rekindle.progress": "off", **settings})
    for job in jobs:
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
        env.add_source(Endless(), "numbers").rebalance().add_sink(Witness(job, directory)).name("witness")
        try:
            env.execute(job)
        except RekindleError as error:
            print(f"{job}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
