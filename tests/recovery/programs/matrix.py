"""Runs the job of the crash matrix, once per order, one after the other.

    python -m tests.recovery.programs.matrix <directory> <order>...

An order is `name`, or `name,setting=value,...`:
    crash=<value of REKINDLE_CRASH_AT>      for the slots of this job; the driver's own is in the environment
    sink=StagedLines|Fenced|Forgetful|...   the sink of the job (default: a FileSink)
    fail=<n>                               the first attempt fails at the first record of round n
    rounds=<n>                             how long the job is (default 3)
    interval=<ms>                          between checkpoints (default 100); the final one comes in any case
    pause=<ms>                             between the end of one checkpoint and the next (default 60)
    until=<path>                           the job ends, at the end of a round, when this file exists
    resume=latest                          go on from the newest checkpoint, or from where the job was stopped
    stop=<path>                            stop with a savepoint below this folder when a round has been handed out

Below the directory: `checkpoints`, `<name>/` with the committed lines, `<name>.crashed` when the slot died. After a job
it prints "<name>: ended".
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from rekindle.common import Configuration, JobClient, RestartStrategies, Types
from rekindle.crash_points import CRASH_AT, CRASH_ONCE
from rekindle.datastream import (
    CheckpointListener,
    KeyedProcessFunction,
    ParallelSourceFunction,
    RuntimeContext,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.state import ValueStateDescriptor
from tests.recovery.programs import staged_lines

PARALLELISM, ROUND, KEYS = 2, 60, 10
INTERVAL_MS, PAUSE_MS = 100, 60


def expected(rounds: int) -> list[tuple[int, int]]:
    """The lines that the job commits, in order, when no line is lost or doubled."""
    return sorted((key, count) for key in range(KEYS) for count in range(1, PARALLELISM * rounds * ROUND // KEYS + 1))


class Rounds(ParallelSourceFunction, CheckpointListener):
    """Emits a round of numbers, and the next round when a checkpoint is complete: so every checkpoint holds records,
    however slow the machine is."""

    def __init__(self, rounds: int, until: str | None, waiting: str) -> None:
        self.rounds = rounds
        self.until = until
        self.waiting = waiting

    def open(self, runtime_context: RuntimeContext) -> None:
        self.split = str(runtime_context.get_index_of_this_subtask())
        self.changed = threading.Condition()
        self.completed = 0
        self.cancelled = False

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        first = ctx.restored_offsets.get(self.split, -1) + 1
        for number in range(first, self.rounds * ROUND):
            if number % ROUND == 0 and number > first:
                Path(f"{self.waiting}-{self.split}").touch()
                with self.changed:
                    known = self.completed
                    self.changed.wait_for(lambda: self.completed > known or self.cancelled)  # noqa: B023
                if self.until is not None and Path(self.until).exists():
                    return
            ctx.collect(number, offset=number, split=self.split)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        with self.changed:
            self.completed = checkpoint_id
            self.changed.notify_all()

    def cancel(self) -> None:
        with self.changed:
            self.cancelled = True
            self.changed.notify_all()


class Count(KeyedProcessFunction):
    """Counts per key; may fail in the first attempt."""

    def __init__(self, fail_in_round: int | None) -> None:
        self.fail_in_round = fail_in_round

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.fails = runtime_context.get_attempt_number() == 0

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        if self.fails and value // ROUND == self.fail_in_round:
            raise RuntimeError("the first attempt fails on purpose")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value % KEYS} {count}"


def build(directory: Path, name: str, order: dict[str, str], waiting: str) -> StreamExecutionEnvironment:
    """Source, keyed state, an exchange, the sink."""
    settings = {
        "master": "local[2]",
        "rekindle.progress": "off",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": f"{order.get('interval', INTERVAL_MS)} ms",
        "execution.checkpointing.min-pause": f"{order.get('pause', PAUSE_MS)} ms",
        "execution.buffer-timeout.interval": "10 ms",
    }
    if "resume" in order:
        settings["execution.state-recovery.path"] = order["resume"]
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(PARALLELISM).set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 20))
    numbers = env.add_source(Rounds(int(order.get("rounds", "3")), order.get("until"), waiting), "numbers", int)
    fail_in_round = int(order["fail"]) if "fail" in order else None
    counts = numbers.key_by(lambda n: n % KEYS, int).process(Count(fail_in_round), Types.STRING()).rebalance()
    output = directory / name
    output.mkdir(exist_ok=True)
    if "sink" in order:
        counts.add_sink(getattr(staged_lines, order["sink"])(str(output)))
    else:
        counts.sink_to(staged_lines.file_sink(str(output)))
    return env


def arm_slots(crash: str | None, once: Path) -> None:
    """Set environment variables for the processes that Spark starts from now on, not for this process."""
    context: Any = SparkContext._active_spark_context
    assert context is not None or crash is None, "the first job makes the session, and cannot have a crash of its own"
    if context is not None:
        for variable in (CRASH_AT, CRASH_ONCE):
            context.environment.pop(variable, None)
    if crash is not None:
        context.environment[CRASH_AT] = crash
        context.environment[CRASH_ONCE] = str(once)


def stop(client: JobClient, signs: str, folder: str) -> None:
    """Stop the job with a savepoint while a round of each subtask is not committed yet."""
    pause = threading.Event()
    while not all(Path(f"{signs}-{subtask}").exists() for subtask in range(PARALLELISM)):
        pause.wait(0.01)
    client.stop_with_savepoint(False, folder).result()


def main() -> None:
    directory = Path(sys.argv[1])
    for text in sys.argv[2:]:
        name, *settings = text.split(",")
        order = dict(setting.split("=", 1) for setting in settings)
        arm_slots(order.get("crash"), directory / f"{name}.crashed")
        waiting = f"{directory / name}.waiting"
        for sign in directory.glob(f"{name}.waiting-*"):
            sign.unlink()
        client = build(directory, name, order, waiting).execute_async(name)
        if "stop" in order:
            stop(client, waiting, order["stop"])
        client.get_job_execution_result().result()
        print(f"{name}: ended", flush=True)


if __name__ == "__main__":
    main()
