"""Thousands of checkpoints of a small job, with a slot killed every few hundred: shows whether anything grows.

    python -m benchmarks.many_checkpoints --checkpoints 2000 --kill-every 250

Two subtasks, 1,000 keys whose values change all the time, a checkpoint as often as the epochs allow, and a SIGKILL for
a slot every `--kill-every` checkpoints. Measured: files and bytes of the checkpoint directory; resident memory of the
driver's Python, its JVM and the slots; threads, open files and processes. It prints a line when checkpoint 100, 1,000
and 2,000 are complete, and how much each figure grew from the first line to the last.

A JVM uses all memory that it may before it collects garbage, so its resident memory says little: `jvm_live_mib` is the
memory in use after a full collection.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psutil
from pyspark import SparkContext

from rekindle.common import Configuration, JobClient, RestartStrategies, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ValueStateDescriptor

MIB = 1 << 20
JOB_NAME = "many checkpoints"
SLOT_MODULE = "rekindle.runtime.slot"


@dataclass(frozen=True)
class Sample:
    """Figures of the checkpoint directory and of all processes at one moment."""

    checkpoint: int
    files: int
    kib_on_disk: float
    driver_mib: float
    jvm_mib: float
    jvm_live_mib: float
    slots_mib: float
    driver_threads: int
    slot_threads: int
    jvm_threads: int
    driver_handles: int
    slot_handles: int
    jvm_handles: int
    processes: int


class Totals(KeyedProcessFunction):
    """A sum per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        total = (self._total.value() or 0) + value
        self._total.update(total)
        yield total


class ManyCheckpoints:
    """Runs the job, samples it, and kills its slots."""

    def __init__(self, directory: Path, interval_ms: int, seed: int = 7) -> None:
        self.directory = directory
        self._chance = random.Random(seed)
        self.kills = 0
        settings = {
            "master": "local[2]",
            "rekindle.progress": "off",
            "execution.checkpointing.dir": os.fspath(directory),
            "execution.checkpointing.interval": f"{interval_ms} ms",
            "execution.buffer-timeout.interval": "0 ms",
        }
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(2).set_restart_strategy(RestartStrategies.fixed_delay_restart(100_000, 50))
        source = DataGeneratorSource(lambda n: n, 10**12, RateLimiterStrategy.per_second(2000))
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
        numbers.key_by(lambda n: n % 1000, int).process(Totals(), int).add_sink(lambda n: None)
        self.client: JobClient = env.execute_async(JOB_NAME)

    def newest_checkpoint(self) -> int:
        """The number of the newest completed checkpoint; aborted checkpoints have numbers too."""
        found = self.directory.glob("*/*/chk-*/_metadata")
        return max((int(path.parent.name[4:]) for path in found), default=0)

    def wait_for(self, checkpoint: int, deadline_s: float = 600.0) -> None:
        """Wait until a checkpoint of this number or a higher one is complete."""
        until = time.monotonic() + deadline_s
        pause = threading.Event()
        while self.newest_checkpoint() < checkpoint:
            ended = self.client.get_job_execution_result()
            if ended.done():
                ended.result()  # raises the job's error
            if time.monotonic() > until:
                raise TimeoutError(f"checkpoint {checkpoint} was not complete after {deadline_s:.0f} s")
            pause.wait(0.02)

    def kill_a_slot(self) -> None:
        """Send SIGKILL to a random slot."""
        if slots := [each for each in _family() if _is_slot(each)]:
            self._chance.choice(slots).send_signal(signal.SIGKILL)
            self.kills += 1

    def run(self, checkpoints: int, kill_every: int, sample_at: Sequence[int]) -> Iterator[Sample]:
        """Run until `checkpoints` are complete; yields a sample when each of `sample_at` is."""
        kills = list(range(kill_every, checkpoints, kill_every)) if kill_every else []
        for checkpoint in sorted({*kills, *sample_at}):
            self.wait_for(checkpoint)
            if checkpoint in sample_at:
                yield self.sample()
            if checkpoint in kills:
                self.kill_a_slot()

    def sample(self) -> Sample:
        """Sample this process, its descendants, and the checkpoint directory."""
        driver, family = psutil.Process(), _family()
        slots = [each for each in family if _is_slot(each)]
        jvms = [each for each in family if _name(each) == "java"]
        sizes = [_size(path) for path in _files(self.directory)]
        return Sample(
            checkpoint=self.newest_checkpoint(),
            files=len(sizes),
            kib_on_disk=sum(sizes) / 1024,
            driver_mib=driver.memory_info().rss / MIB,
            jvm_mib=sum(each.memory_info().rss for each in jvms) / MIB,
            jvm_live_mib=_live_heap() / MIB,
            slots_mib=sum(each.memory_info().rss for each in slots) / MIB,
            driver_threads=driver.num_threads(),
            slot_threads=sum(each.num_threads() for each in slots),
            jvm_threads=sum(each.num_threads() for each in jvms),
            driver_handles=driver.num_fds(),
            slot_handles=sum(each.num_fds() for each in slots),
            jvm_handles=sum(each.num_fds() for each in jvms),
            processes=len(family),
        )


def _live_heap() -> int:
    """Bytes in use in the driver's JVM after a full collection."""
    context = SparkContext._active_spark_context
    assert context is not None, "the job has no Spark session"
    jvm = context._jvm
    assert jvm is not None, "the job's Spark session has no JVM"
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def _family() -> list[psutil.Process]:
    """All descendants of this process, also those that have ended and are still in the process table."""
    return psutil.Process().children(recursive=True)


def _is_slot(process: psutil.Process) -> bool:
    try:
        return SLOT_MODULE in process.cmdline() and process.name() != "rekindle-guard"
    except psutil.Error:  # it has just ended
        return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


def _files(folder: Path) -> list[Path]:
    return [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def main() -> None:
    """Run the job, sample it, and print the growth of each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", type=int, default=2000)
    parser.add_argument("--kill-every", type=int, default=250, help="checkpoints between two SIGKILLs; 0: none")
    parser.add_argument("--interval-ms", type=int, default=50)
    arguments = parser.parse_args()
    sample_at = sorted({100, 1000, arguments.checkpoints} & set(range(arguments.checkpoints + 1)))
    with tempfile.TemporaryDirectory(prefix="many-checkpoints-") as directory:
        job = ManyCheckpoints(Path(directory), arguments.interval_ms)
        started = time.monotonic()
        names = [field.name for field in fields(Sample)]
        print("  ".join(f"{name:>14}" for name in ["minute", *names]), flush=True)
        samples = []
        for sample in job.run(arguments.checkpoints, arguments.kill_every, sample_at):
            samples.append(sample)
            row = [(time.monotonic() - started) / 60, *astuple(sample)]
            print("  ".join(f"{value:14,.1f}" for value in row), flush=True)
        print(f"{job.kills} slots were killed.")
        for place, name in enumerate(names[1:], start=1):
            first, last = (astuple(each)[place] for each in (samples[0], samples[-1]))
            print(f"{name}: {first:,.1f} at first, {last:,.1f} at last ({last - first:+,.1f})")
        job.client.cancel().result()


if __name__ == "__main__":
    main()
