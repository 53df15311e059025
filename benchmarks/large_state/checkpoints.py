"""Large keyed state: the synchronous parts of its checkpoints, the size of an increment, the time of a restore.

    python -m benchmarks.large_state.checkpoints            # 10 million keys, about 1 GB: ten minutes, 10 GB of memory
    python -m benchmarks.large_state.checkpoints --quick    # 200,000 keys: shows that it works, in less than a minute

A job of two slots on Spark fills its state, one tuple of a number and a text per key, and then changes 1 % of the keys,
chosen at random, between two checkpoints. Then come a savepoint, which writes everything and so shows the cost of a
full snapshot, and a restore from the last checkpoint, with deltas on top of its base. The figures come from the job
itself (`JobClient.get_checkpoint_statistics`), and from psutil for the slots.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.keyed_count.display import wide_console
from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.common.checkpoint_statistics import CheckpointStatistics, CheckpointStatus
from rekindle.coordinator.job import JobMaster
from rekindle.coordinator.job_events import EpochCounted, FunctionsOpened, JobEvent
from rekindle.coordinator.observer import JobObserver
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.spark import launcher

MB = 1e6
PARALLELISM = 2
POLL_SECONDS = 0.2
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Workload:
    """The sizes and rates of the job."""

    keys: int
    text_bytes: int
    interval_seconds: float
    changed_share: float

    @property
    def changes_per_second(self) -> float:
        return self.keys * self.changed_share / self.interval_seconds


class KeysSource(Source[str]):
    """Every key once, as fast as the job takes them; then random keys at a fixed rate."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(number), 0) for number in range(parallelism)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[str]:
        return KeysReader(self._workload, context, splits[0])


class KeysReader(SourceReader[str]):
    """One subtask's share: the numbers n with n % parallelism == its index."""

    def __init__(self, workload: Workload, context: SourceReaderContext, split: SourceSplit) -> None:
        self._keys = workload.keys
        self._index, self._step = context.index_of_subtask, context.parallelism
        self._per_second = workload.changes_per_second / context.parallelism
        self._split = split.split_id
        self._position: int = split.position
        self._share = len(range(self._index, self._keys, self._step))
        self._limited_from: tuple[float, int] | None = None

    def is_available(self) -> bool:
        return self._allowed() > 0

    def poll(self, max_records: int) -> Batch[str]:
        count = min(max_records, self._allowed())
        numbers = range(self._position, self._position + count)
        self._position += count
        if numbers.start < self._share:
            records = [f"user-{self._index + n * self._step:010d}" for n in numbers]
        else:
            mixed = ((self._index + n * self._step) * _GOLDEN for n in numbers)
            records = [f"user-{(number >> 16) % self._keys:010d}" for number in mixed]
        return Batch(records, list(numbers))

    def _allowed(self) -> int:
        if self._position < self._share:
            return self._share - self._position
        if self._limited_from is None:
            self._limited_from = time.monotonic(), self._position
        since, position = self._limited_from
        return int((time.monotonic() - since) * self._per_second) - (self._position - position)

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(self._split, self._position)]


class Profile(KeyedProcessFunction):
    """A number and a text per key, both new with every record."""

    def __init__(self, text_bytes: int) -> None:
        self._text_bytes = text_bytes

    def open(self, runtime_context: RuntimeContext) -> None:
        pair = Types.TUPLE([Types.LONG(), Types.STRING()])
        self._profile = runtime_context.get_state(ValueStateDescriptor("profile", pair))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        profile = self._profile.value()
        count = 1 if profile is None else profile[0] + 1
        self._profile.update((count, f"{value}/{count}".ljust(self._text_bytes, ".")))
        yield from ()


class Progress(JobObserver):
    """Whether the job runs, and the number of records that it has taken."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.records = 0

    def on_event(self, event: JobEvent) -> None:
        match event:
            case FunctionsOpened():
                self.started.set()
            case EpochCounted(summary):
                self.records += summary.records_in


@dataclass
class Watch:
    """Polls a job: its completed checkpoints, and the largest resident memory of its slots."""

    job: JobMaster
    checkpoints: dict[int, CheckpointStatistics] = field(default_factory=dict)
    peak_bytes: int = 0

    def look(self) -> None:
        for checkpoint in self.job.checkpoint_statistics().history:
            if checkpoint.status is CheckpointStatus.FAILED:
                raise SystemExit(f"Checkpoint {checkpoint.id} failed: {checkpoint.failure_message}")
            if checkpoint.status is CheckpointStatus.COMPLETED:
                self.checkpoints[checkpoint.id] = checkpoint
        self.peak_bytes = max(self.peak_bytes, max(slot_bytes(), default=0))
        if self.job.result().done():
            self.job.result().result()
            raise SystemExit("The job ended too early.")

    def until(self, wanted: int, beyond: int = 0) -> list[CheckpointStatistics]:
        """Wait for `wanted` completed checkpoints with an id above `beyond`."""
        while True:
            self.look()
            found = [each for number, each in sorted(self.checkpoints.items()) if number > beyond]
            if len(found) >= wanted:
                return found
            time.sleep(POLL_SECONDS)

    @property
    def last_id(self) -> int:
        return max((each.id for each in self.job.checkpoint_statistics().history), default=0)


def slot_bytes() -> list[int]:
    """Resident bytes of every slot of this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "rekindle.runtime.slot" in process.cmdline():
                found.append(process.memory_info().rss)
        except psutil.Error:
            continue
    return found


def sync_ms(checkpoint: CheckpointStatistics) -> int:
    """The longest synchronous time of a slot: the sum over its tasks, which run one after the other."""
    by_slot = [0] * PARALLELISM
    for subtask in checkpoint.acknowledged:
        by_slot[subtask.snapshot.index] += subtask.snapshot.sync_duration_ms
    return max(by_slot)


def async_ms(checkpoint: CheckpointStatistics) -> int:
    """The longest asynchronous part."""
    return max(subtask.snapshot.async_duration_ms for subtask in checkpoint.acknowledged)


def launched(workload: Workload, directory: Path, recover: str | None) -> tuple[JobMaster, Progress, float]:
    """Start the job; returns it, its progress, and the seconds until every function was open."""
    settings = {
        "master": f"local[{PARALLELISM}]",
        "rekindle.progress": "off",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": f"{round(workload.interval_seconds * 1000)} ms",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "none",
    }
    if recover is not None:
        settings["execution.state-recovery.path"] = recover
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(PARALLELISM)
    keys = env.from_source(KeysSource(workload), WatermarkStrategy.no_watermarks(), "keys", Types.STRING())
    profiles = keys.key_by(lambda key: key, Types.STRING()).process(Profile(workload.text_bytes), Types.STRING())
    profiles.name("profile").add_sink(lambda record: None)
    progress = Progress()
    begun = time.monotonic()
    job = launcher.launch(env._program("large state"), observer=progress)
    while not progress.started.wait(POLL_SECONDS):
        if job.result().done():
            job.result().result()
    return job, progress, time.monotonic() - begun


def ended(job: JobMaster) -> None:
    job.cancel().result()


@dataclass
class Figures:
    """The measured figures."""

    fill_seconds: float
    filling: list[CheckpointStatistics]
    steady: list[CheckpointStatistics]
    savepoint: CheckpointStatistics
    peak_bytes: int
    start_seconds: float
    restore_seconds: float
    restored_bytes: int
    restored_peak_bytes: int


def measure(workload: Workload, checkpoints: int, directory: Path, console: Console) -> Figures:
    # The first job of a session includes Spark's start, so its start time does not count.
    ended(launched(workload, directory, None)[0])
    job, progress, start_seconds = launched(workload, directory, None)
    watch = Watch(job)
    begun = time.monotonic()
    while progress.records < workload.keys:
        watch.look()
        time.sleep(POLL_SECONDS)
    fill_seconds = time.monotonic() - begun
    console.print(f"filled in {fill_seconds:.0f} s", highlight=False)
    # The next checkpoint still holds the end of the filling, and the one after it may rewrite as many bytes.
    watch.until(2, beyond=watch.last_id)
    filling = watch.until(1)
    steady = watch.until(checkpoints, beyond=filling[-1].id)
    console.print(f"{len(steady)} checkpoints", highlight=False)
    asked = job.trigger_savepoint(str(directory / "savepoint"))
    while not asked.done():
        watch.look()
        time.sleep(POLL_SECONDS)
    savepoint = next(each for each in job.checkpoint_statistics().history if each.is_savepoint)
    before = watch.last_id
    last = watch.until(1, beyond=before)[-1]
    ended(job)
    again, progress, restore_seconds = launched(workload, directory, "latest")
    watch_again = Watch(again)
    watch_again.until(1)
    ended(again)
    return Figures(
        fill_seconds=fill_seconds,
        filling=filling,
        steady=steady,
        savepoint=savepoint,
        peak_bytes=watch.peak_bytes,
        start_seconds=start_seconds,
        restore_seconds=restore_seconds,
        restored_bytes=last.state_size,
        restored_peak_bytes=watch_again.peak_bytes,
    )


def shown(workload: Workload, figures: Figures) -> Table:
    full = figures.savepoint.checkpointed_size
    steady = figures.steady
    shares = [sync_ms(each) / 1000 / workload.interval_seconds for each in steady]
    increments = [each.checkpointed_size / full for each in steady]
    table = Table(title=f"{workload.keys:,} keys, {full / MB:,.0f} MB", title_justify="left")
    for heading in ("", "median", "worst", "to reach"):
        table.add_column(heading, justify="left" if not heading else "right")

    def spread(name: str, values: list[float], pattern: str, goal: str = "") -> None:
        table.add_row(name, pattern.format(statistics.median(values)), pattern.format(max(values)), goal)

    spread("share of the time in synchronous parts", shares, "{:.2%}", "< 5 %")
    spread("synchronous part, ms", [float(sync_ms(each)) for each in steady], "{:,.0f}")
    spread("asynchronous part, ms", [float(async_ms(each)) for each in steady], "{:,.0f}")
    spread("increment, of the full size", increments, "{:.2%}", "< 3 %")
    spread("increment, MB", [each.checkpointed_size / MB for each in steady], "{:,.1f}")
    spread("stored, of the full size", [each.state_size / full for each in steady], "{:.2f}")
    restore = max(0.0, figures.restore_seconds - figures.start_seconds)
    table.add_row("restore, s", f"{restore:.1f}", "", "< 30 s")
    table.add_section()
    table.add_row("start without state, s", f"{figures.start_seconds:.1f}", "")
    table.add_row("start with restore, s", f"{figures.restore_seconds:.1f}", "")
    table.add_row("restored, MB", f"{figures.restored_bytes / MB:,.0f}", "")
    table.add_row("full snapshot (savepoint): synchronous part, ms", f"{sync_ms(figures.savepoint):,}", "")
    table.add_row("full snapshot (savepoint): asynchronous part, ms", f"{async_ms(figures.savepoint):,}", "")
    spread("while filling: synchronous part, ms", [float(sync_ms(each)) for each in figures.filling], "{:,.0f}")
    table.add_row("filling, s", f"{figures.fill_seconds:.0f}", "")
    table.add_row("largest resident memory of a slot, MB", f"{figures.peak_bytes / MB:,.0f}", "")
    table.add_row("the same after the restore, MB", f"{figures.restored_peak_bytes / MB:,.0f}", "")
    return table


def main() -> None:
    """Run the benchmark and print one table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large_state.checkpoints", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--text-bytes", type=int, default=78, help="size of the text in each value")
    parser.add_argument("--interval-seconds", type=float, default=10.0, help="between two checkpoints")
    parser.add_argument("--changed", type=float, default=0.01, help="share of the keys that change in an interval")
    parser.add_argument("--checkpoints", type=int, default=20, help="how many are measured")
    parser.add_argument("--directory", type=Path, help="where checkpoints go; removed afterwards (default: temporary)")
    parser.add_argument("--quick", action="store_true", help="200,000 keys, five checkpoints, one every second")
    arguments = parser.parse_args()
    workload = Workload(arguments.keys, arguments.text_bytes, arguments.interval_seconds, arguments.changed)
    checkpoints = arguments.checkpoints
    if arguments.quick:
        workload, checkpoints = Workload(200_000, arguments.text_bytes, 1.0, arguments.changed), 5
    console = wide_console()
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, load average {load}; {workload}", highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-", dir=arguments.directory) as directory:
        figures = measure(workload, checkpoints, Path(directory), console)
    series = ", ".join(f"{each.checkpointed_size / figures.savepoint.checkpointed_size:.2%}" for each in figures.steady)
    console.print(f"increments: {series}", highlight=False, soft_wrap=True)
    console.print(shown(workload, figures))
    console.print(f"load average at the end {os.getloadavg()[0]:.1f}", highlight=False)


if __name__ == "__main__":
    main()
