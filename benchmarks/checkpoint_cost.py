"""The cost of a checkpoint every second: the keyed count with and without checkpoints, in turn, in one session.

    python -m benchmarks.checkpoint_cost             # 1,000 and 100,000 keys, five pairs of runs each: some ten minutes
    python -m benchmarks.checkpoint_cost --quick     # 1,000 keys, one pair: shows that the benchmark works

Each pair is one run without and one with checkpoints into a local directory, in alternating order. The cost of a pair
is 1 - (records per second with) / (records per second without); the table shows the median over the pairs. The table
also shows the processor time of a checkpoint, over all processes of the job, as a share of the time of all cores in an
interval. Other programs on the machine disturb this figure less (they only make runs longer, with more checkpoints for
the same records), but it does not include time spent waiting, for a disk for example.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.keyed_count.display import wide_console
from benchmarks.keyed_count.engine import BlockSource, Count, Marks
from benchmarks.keyed_count.processes import json_lines
from benchmarks.keyed_count.workload import steady
from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.coordinator.job_events import EpochCounted, FunctionsOpened, JobEvent
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.spark import launcher

PARALLELISM = 2


@dataclass(frozen=True)
class Run:
    """One run of the keyed count."""

    records_per_second: float
    cpu_us_per_record: float
    records_per_checkpoint: float


@dataclass
class Pairs:
    """The runs of one number of keys."""

    keys: int
    interval_seconds: float
    without: list[Run] = field(default_factory=list)
    with_checkpoints: list[Run] = field(default_factory=list)

    @property
    def costs(self) -> list[float]:
        pairs = zip(self.without, self.with_checkpoints, strict=True)
        return [1 - on.records_per_second / off.records_per_second for off, on in pairs]

    @property
    def cpu_costs(self) -> list[float]:
        """Processor time of a checkpoint, as a share of the time of all cores in an interval."""
        available_us = self.interval_seconds * 1e6 * (os.cpu_count() or 1)
        pairs = zip(self.without, self.with_checkpoints, strict=True)
        return [
            (on.cpu_us_per_record - off.cpu_us_per_record) * on.records_per_checkpoint / available_us
            for off, on in pairs
        ]


# -- one run, in a process of its own ---------------------------------------------------------------------------------


class CpuMarks(Marks):
    """Also records the processor time of this process and its descendants."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu_seconds: list[float] = []

    def on_event(self, event: JobEvent) -> None:
        super().on_event(event)
        if isinstance(event, FunctionsOpened | EpochCounted):
            self.cpu_seconds.append(cpu_seconds())


def cpu_seconds() -> float:
    """Processor time of the driver, its JVM, Spark's workers and the slots."""
    total = 0.0
    driver = psutil.Process()
    for process in [driver, *driver.children(recursive=True)]:
        try:
            total += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return total


def run_once(keys: int, records: int, interval_seconds: float | None, directory: str) -> dict[str, Any]:
    """Run the keyed count of `benchmarks.keyed_count.engine` once."""
    settings = {"master": f"local[{PARALLELISM}]", "rekindle.progress": "off"}
    if interval_seconds is not None:
        interval = f"{round(interval_seconds * 1000)} ms"
        settings |= {"execution.checkpointing.interval": interval, "execution.checkpointing.dir": directory}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(PARALLELISM)
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    source = env.from_source(BlockSource(keys, records), WatermarkStrategy.for_monotonous_timestamps(), "records", pair)
    counts = source.key_by(lambda pair: pair[0], Types.STRING()).process(Count(), pair).name("count")
    marks = CpuMarks()
    job = launcher.launch(env._program("keyed count", counts._collect()), observer=marks)
    counted = sum(pair[1] for batch in job.results() for pair in batch)
    if counted != records:
        raise SystemExit(f"The counts add up to {counted}, not to {records}.")
    timed = steady(marks.marks)
    begin = len([mark for mark in marks.marks if mark.records < marks.marks[-1].records - timed.records])
    cpu = marks.cpu_seconds[-1] - marks.cpu_seconds[begin]
    return {
        "records_per_second": timed.records_per_second,
        "cpu_us_per_record": cpu / timed.records * 1e6,
        "records_per_checkpoint": records / max(1, job.checkpoint_statistics().counts.completed),
        "epochs": len(marks.marks) - 1,
    }


# -- pairs of runs ----------------------------------------------------------------------------------------------------


def run(keys: int, records: int, interval_seconds: float | None) -> Run:
    """One run, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-") as directory:
        arguments = ["--one", "--keys", str(keys), "--records", str(records), "--directory", directory]
        if interval_seconds is not None:
            arguments += ["--interval-seconds", str(interval_seconds)]
        line = json_lines(Path(sys.executable), "benchmarks.checkpoint_cost", arguments)[-1]
    return Run(line["records_per_second"], line["cpu_us_per_record"], line["records_per_checkpoint"])


def measure(keys: int, records: int, pairs: int, interval_seconds: float, console: Console) -> Pairs:
    """Run the pairs."""
    result = Pairs(keys, interval_seconds)
    for number in range(pairs):
        order = [(result.without, None), (result.with_checkpoints, interval_seconds)]
        for runs, setting in order if number % 2 == 0 else reversed(order):
            runs.append(run(keys, records, setting))
        off, on = result.without[-1], result.with_checkpoints[-1]
        console.print(
            f"{keys:>7,} keys  without {off.records_per_second:>9,.0f}/s {off.cpu_us_per_record:5.2f} µs   "
            f"with {on.records_per_second:>9,.0f}/s {on.cpu_us_per_record:5.2f} µs   "
            f"cost {result.costs[-1]:6.1%}, processor time {result.cpu_costs[-1]:6.1%}",
            highlight=False,
            soft_wrap=True,
        )
    return result


def shown(interval_seconds: float, results: list[Pairs]) -> Table:
    table = Table(title=f"Keyed count, a checkpoint every {interval_seconds:g} s", title_justify="left")
    for heading in ("keys", "records/s without", "with", "cost, median", "least … most", "processor time", "to reach"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            f"{result.keys:,}",
            f"{statistics.median(each.records_per_second for each in result.without):,.0f}",
            f"{statistics.median(each.records_per_second for each in result.with_checkpoints):,.0f}",
            f"{statistics.median(result.costs):.1%}",
            f"{min(result.costs):.1%} … {max(result.costs):.1%}",
            f"{statistics.median(result.cpu_costs):+.1%}",
            "< 10 %",
        )
    return table


def main() -> None:
    """Run the benchmark and print one table."""
    first_line = __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint_cost", description=first_line)
    parser.add_argument("--keys", default="1000,100000", help="numbers of keys, comma-separated (default: %(default)s)")
    parser.add_argument("--records", type=int, default=12_000_000, help="of each run (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--interval-seconds", type=float, help="between two checkpoints (default: 1)")
    parser.add_argument("--quick", action="store_true", help="1,000 keys, 3 million records, one pair")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    numbers = [int(number) for number in arguments.keys.split(",")]
    if arguments.one:
        line = run_once(numbers[0], arguments.records, arguments.interval_seconds, arguments.directory)
        print(json.dumps(line), flush=True)
        return
    interval_seconds = arguments.interval_seconds or 1.0
    records, pairs = arguments.records, arguments.pairs
    if arguments.quick:
        numbers, records, pairs = [1000], 3_000_000, 1
    console = wide_console()
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, load average {load}", highlight=False)
    results = [measure(keys, records, pairs, interval_seconds, console) for keys in numbers]
    console.print(shown(interval_seconds, results))
    console.print(f"load average at the end {os.getloadavg()[0]:.1f}", highlight=False)


if __name__ == "__main__":
    main()
