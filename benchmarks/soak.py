"""Small epochs for a long time: disk, memory, threads and open files as the job gets older.

    python -m benchmarks.soak --minutes 10

One source record per subtask every few milliseconds, three stages, keyed state of 1,000 keys that is rewritten all the
time. Every sample is taken from outside with psutil: resident memory of the driver's Python, of its JVM and of all
slots, threads, open files, and the shuffle files on disk. It prints a line per sample and, at the end, how much each
figure grew from the first third to the last (medians).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psutil

from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import MapStateDescriptor

MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """Figures of all processes at one moment."""

    driver_mib: float
    jvm_mib: float
    slots_mib: float
    threads: int
    open_files: int
    shuffle_files: int
    slot_directory_mib: float


class LastSeen(KeyedProcessFunction):
    """Puts and removes map entries, so that state changes for ever and never grows."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context):
        self._seen.put(value, value)
        self._seen.remove(value - 5000)
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 1000)
        yield value % 10

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext):
        return None


def sample() -> Sample:
    """Sample this process and its descendants."""
    driver = psutil.Process()
    processes = driver.children(recursive=True)
    slots = [each for each in processes if "rekindle.runtime.slot" in " ".join(_command(each))]
    jvms = [each for each in processes if each.name() == "java"]
    directories = _folders("rekindle-slot-")
    managers = _folders("blockmgr-")
    return Sample(
        driver_mib=driver.memory_info().rss / MIB,
        jvm_mib=sum(each.memory_info().rss for each in jvms) / MIB,
        slots_mib=sum(each.memory_info().rss for each in slots) / MIB,
        threads=driver.num_threads() + sum(each.num_threads() for each in [*jvms, *slots]),
        open_files=driver.num_fds() + sum(each.num_fds() for each in [*jvms, *slots]),
        shuffle_files=sum(1 for folder in managers for name in _files(folder) if name.name.startswith("shuffle_")),
        slot_directory_mib=sum(_size(path) for folder in directories for path in _files(folder)) / MIB,
    )


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _folders(prefix: str) -> list[Path]:
    """Folders with this name in the temporary directory, or one level below; some may be removed meanwhile."""
    found = []
    for parent, names, _ in os.walk(tempfile.gettempdir()):
        found += [Path(parent, name) for name in names if name.startswith(prefix)]
        if Path(parent) != Path(tempfile.gettempdir()):
            names.clear()
    return found


def _files(folder: Path) -> list[Path]:
    return [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def main() -> None:
    """Run the job, sample it, and print the growth of each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--every-seconds", type=float, default=15)
    parser.add_argument("--records-per-second", type=int, default=2000)
    arguments = parser.parse_args()
    settings = {"master": "local[2]", "rekindle.progress": "off", "execution.buffer-timeout.interval": "0 ms"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(2)
    source = DataGeneratorSource(lambda n: n, 10**12, RateLimiterStrategy.per_second(arguments.records_per_second))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    results = numbers.key_by(lambda n: n % 1000, int).process(LastSeen(), int).key_by(lambda n: n, int).map(lambda n: n)
    results.add_sink(lambda n: None)
    client = env.execute_async("soak")
    samples: list[Sample] = []
    names = [field.name for field in fields(Sample)]
    print("  ".join(f"{name:>18}" for name in ["minute", *names]), flush=True)
    started = time.monotonic()
    pause = threading.Event()
    while time.monotonic() - started < arguments.minutes * 60 and not client.get_job_execution_result().done():
        pause.wait(arguments.every_seconds)
        samples.append(sample())
        row = [(time.monotonic() - started) / 60, *astuple(samples[-1])]
        print("  ".join(f"{value:18,.1f}" for value in row), flush=True)
    third = len(samples) // 3
    for place, name in enumerate(names):
        early, late = (
            statistics.median(astuple(each)[place] for each in part) for part in (samples[:third], samples[-third:])
        )
        print(f"{name}: {early:,.1f} in the first third, {late:,.1f} in the last ({late - early:+,.1f})")
    client.cancel().result()


if __name__ == "__main__":
    main()
