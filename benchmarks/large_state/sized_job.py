"""A job with so many keys on one backend: cost of a record, memory, checkpoints, restore.

    python -m benchmarks.large_state.sized_job --backend rocksdb --keys 1000000 --budget-mb 64

Two slots on Spark. The source emits every key once, then records by Zipf, then uniform ones; checkpoints are taken all
the time. Then the job starts again from its last checkpoint. It prints one line of JSON. Costs of records are processor
time, which other work on the machine disturbs less than the clock: of all processes of the job, and of its slots.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import psutil

from benchmarks.large_state.accesses import Access, key_text, numbers
from benchmarks.large_state.checkpoints import PARALLELISM, POLL_SECONDS, Profile, Progress, Watch, async_ms, sync_ms
from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.common.checkpoint_statistics import CheckpointStatistics
from rekindle.coordinator.job import JobMaster
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.spark import launcher

TEXT_BYTES = 96
#: Encoded: the text with its header, the number, the array; the key with its header.
ENTRY_BYTES = TEXT_BYTES + 2 + 2 + 1 + len(key_text(0)) + 1
INTERVAL_MS = 5000


@dataclass(frozen=True)
class SizedJob:
    """What one process measures."""

    backend: str
    keys: int
    budget_mb: int
    #: Of each way of access.
    records: int


class PhasedSource(Source[str]):
    """Every key once, then `records` by Zipf, then uniform ones without end."""

    def __init__(self, sized: SizedJob) -> None:
        self._sized = sized

    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(number), 0) for number in range(parallelism)]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[str]:
        return PhasedReader(self._sized, context, splits[0])


class PhasedReader(SourceReader[str]):
    """One subtask's share of the records."""

    def __init__(self, sized: SizedJob, context: SourceReaderContext, split: SourceSplit) -> None:
        index, step = context.index_of_subtask, context.parallelism
        self._split, self._position = split.split_id, int(split.position)
        self._once = range(index, sized.keys, step)
        self._zipf_until = len(self._once) + sized.records // step
        self._zipf = map(key_text, numbers(Access.ZIPF, sized.keys, 1000 + index))
        self._uniform = map(key_text, numbers(Access.UNIFORM, sized.keys, 2000 + index))

    def is_available(self) -> bool:
        return True

    def poll(self, max_records: int) -> Batch[str]:
        begin = self._position
        if begin < len(self._once):
            records = [key_text(number) for number in self._once[begin : begin + max_records]]
        else:
            drawn = self._zipf if begin < self._zipf_until else self._uniform
            records = list(islice(drawn, max_records))
        self._position += len(records)
        return Batch(records, list(range(begin, self._position)))

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(self._split, self._position)]


@dataclass
class Usage:
    """Processor seconds of the job's processes, and of its slots."""

    all_s: float
    slots_s: float


def usage() -> Usage:
    """What the processes of this program have used so far."""
    mine = psutil.Process()
    found = Usage(_cpu_s(mine), 0.0)
    for process in mine.children(recursive=True):
        try:
            used = _cpu_s(process)
            found.all_s += used
            found.slots_s += used if "rekindle.runtime.slot" in process.cmdline() else 0.0
        except psutil.Error:
            continue
    return found


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def started(sized: SizedJob, directory: Path, recover: str | None) -> tuple[JobMaster, Progress]:
    """Start the job and wait until every function is open and has its state."""
    settings = {
        "master": f"local[{PARALLELISM}]",
        "rekindle.progress": "off",
        "state.backend.type": sized.backend,
        "taskmanager.memory.managed.size": f"{sized.budget_mb}mb",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": f"{INTERVAL_MS} ms",
        "execution.checkpointing.timeout": "30 min",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "none",
    }
    if recover is not None:
        settings["execution.state-recovery.path"] = recover
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(PARALLELISM)
    keys = env.from_source(PhasedSource(sized), WatermarkStrategy.no_watermarks(), "keys", Types.STRING())
    profiles = keys.key_by(lambda key: key, Types.STRING()).process(Profile(TEXT_BYTES), Types.STRING())
    profiles.name("profile").add_sink(lambda record: None)
    progress = Progress()
    job = launcher.launch(env._program(f"large state {sized.backend}"), observer=progress)
    while not progress.started.wait(POLL_SECONDS):
        if job.result().done():
            job.result().result()
    return job, progress


@dataclass
class Phase:
    """Records of one kind of access."""

    records: int
    all_us: float
    slots_us: float
    records_per_second: float
    checkpoints: list[CheckpointStatistics]

    def figures(self, keys: int, access: Access) -> dict[str, float]:
        """The figures of the phase; those of checkpoints are medians."""
        found = {"all_us": self.all_us, "slots_us": self.slots_us, "records_per_second": self.records_per_second}
        if len(self.checkpoints) > 1:
            written = [each.checkpointed_size for each in self.checkpoints]
            changed = len(written) * ENTRY_BYTES * distinct(access, self.records / len(written), keys)
            found |= {
                "checkpoint_ms": statistics.median(map(async_ms, self.checkpoints)),
                "sync_ms": statistics.median(map(sync_ms, self.checkpoints)),
                "checkpoint_mb": statistics.median(written) / 1e6,
                "increment_of_changed": sum(written) / changed,
            }
        return found


def distinct(access: Access, records: float, keys: int) -> float:
    """How many keys so many records are expected to touch.

    >>> round(distinct(Access.UNIFORM, 1_000_000, 1000)), round(distinct(Access.ZIPF, 10, 1000), 1) < 10
    (1000, True)
    """
    if access is Access.UNIFORM:
        return keys * -math.expm1(-records / keys)
    total, low = 0.0, 1.0
    while low < keys + 1:  # ranks from low to high have about the same probability
        high = min(keys + 1.0, max(low + 1, low * 1.05))
        share = math.log(high / low) / math.log(keys + 1)
        total += (high - low) * -math.expm1(-records * share / (high - low))
        low = high
    return total


@dataclass
class Running:
    """A job under measurement."""

    job: JobMaster
    progress: Progress
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(self.job)

    def until(self, reached: Callable[[], bool]) -> None:
        """Watch the job until something is true."""
        while not reached():
            self.watch.look()
            time.sleep(POLL_SECONDS)

    def phase(self, until_records: int) -> Phase:
        """Measure until the job has taken so many records, and two checkpoints besides."""
        before, begun, last = usage(), time.monotonic(), self.watch.last_id
        records = self.progress.records
        self.until(lambda: self.progress.records >= until_records)
        after, taken = usage(), self.progress.records - records
        seconds = time.monotonic() - begun
        inside = [each for number, each in sorted(self.watch.checkpoints.items()) if number > last]
        return Phase(
            taken,
            (after.all_s - before.all_s) / taken * 1e6,
            (after.slots_s - before.slots_s) / taken * 1e6,
            taken / seconds,
            inside,
        )


def measured(sized: SizedJob, directory: Path) -> dict[str, object]:
    """Run the job, and run it again from its last checkpoint."""
    # The first job of a session includes Spark's start; its slots without state show what an idle slot needs.
    empty, _ = started(sized, directory / "empty", None)
    idle = Watch(empty)
    idle.look()
    empty_slots_s = usage().slots_s
    empty.cancel().result()
    running = Running(*started(sized, directory, None))
    fill = running.phase(sized.keys)
    running.watch.until(1, beyond=running.watch.last_id)  # the end of the filling
    zipf = running.phase(running.progress.records + sized.records)
    uniform = running.phase(running.progress.records + sized.records)
    last = running.watch.until(1, beyond=running.watch.last_id)[-1]
    running.job.cancel().result()
    begun = time.monotonic()
    again = Running(*started(sized, directory, "latest"))
    restored_s, restored_slots_s = time.monotonic() - begun, usage().slots_s
    again.watch.until(1)
    again.job.cancel().result()
    return {
        **asdict(sized),
        "fill": fill.figures(sized.keys, Access.UNIFORM),
        "zipf": zipf.figures(sized.keys, Access.ZIPF),
        "uniform": uniform.figures(sized.keys, Access.UNIFORM),
        "stored_mb": last.state_size / 1e6,
        "restore_us_per_key": (restored_slots_s - empty_slots_s) / sized.keys * 1e6,
        "restore_s": restored_s,
        "idle_mb": idle.peak_bytes / 1e6,
        "peak_mb": running.watch.peak_bytes / 1e6,
        "restored_peak_mb": again.watch.peak_bytes / 1e6,
    }


def main() -> None:
    """Measure one job and print it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_state.sized_job")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="rocksdb")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--budget-mb", type=int, default=512)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, help="where checkpoints go; removed afterwards (default: temporary)")
    chosen = vars(parser.parse_args())
    directory = chosen.pop("directory")
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-", dir=directory) as folder:
        print(json.dumps(measured(SizedJob(**chosen), Path(folder))), flush=True)


if __name__ == "__main__":
    main()
