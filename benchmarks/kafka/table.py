"""The session's table and targets: medians, and ratios of runs that were neighbours in time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from rich.table import Table

from benchmarks.kafka.contenders import Contender, Failure, Run
from benchmarks.keyed_count.targets import Target

LEAST_OF_BARE = 0.5
LEAST_OF_AT_LEAST_ONCE = 0.7
Log = Sequence[Run | Failure]


def runs_of(log: Log, contender: Contender) -> list[Run]:
    return [each for each in log if isinstance(each, Run) and each.contender == contender]


def rate(log: Log, contender: Contender) -> float:
    return median(run.records_per_second for run in runs_of(log, contender))


def processor_us(log: Log, contender: Contender) -> float:
    return median(run.processor_us for run in runs_of(log, contender))


def ratio(log: Log, one: Contender, other: Contender) -> float | None:
    """Return how fast `one` was as a multiple of `other`: per run of `other`, against the runs of `one` around it."""
    ratios = []
    for position, outcome in enumerate(log):
        if isinstance(outcome, Run) and outcome.contender == other:
            before, after = runs_of(log[:position], one)[-1:], runs_of(log[position:], one)[:1]
            if before or after:
                ratios.append(mean(run.records_per_second for run in before + after) / outcome.records_per_second)
    return median(ratios) if ratios else None


def table(log: Log) -> Table:
    """One row per contender, in the order of their first runs."""
    made = Table(title="From Kafka: 100-byte JSON records, 4 partitions, 1,000 keys", title_justify="left")
    made.add_column("engine")
    made.add_column("decoder")
    for heading in ("records/s, median", "best", "processor µs per record", "Rekindle is", "runs", "load"):
        made.add_column(heading, justify="right")
    for contender in dict.fromkeys(each.contender for each in log):
        made.add_row(contender.name, contender.decoder, *figures(log, contender))
    return made


def figures(log: Log, contender: Contender) -> list[str]:
    runs = runs_of(log, contender)
    if not runs:
        return ["not available", "", "", "", "0", ""]
    own = Contender("Rekindle", "rekindle", contender.decoder)
    times = None if contender.family == "rekindle" else ratio(log, own, contender)
    return [
        f"{rate(log, contender):,.0f}",
        f"{max(run.records_per_second for run in runs):,.0f}",
        f"{processor_us(log, contender):.2f}",
        f"{times:.2f}×" if times is not None else "",
        str(len(runs)),
        f"{median(run.load for run in runs):.1f}",
    ]


def compared(log: Log, promise: str, least: float, one: Contender, other: Contender) -> Target:
    """The target that `one` is at least `least` times as fast as `other`."""
    found = ratio(log, one, other)
    if found is None:
        return Target(promise, "one of them did not run", None)
    work = processor_us(log, other) / processor_us(log, one)
    return Target(promise, f"{found:.2f}× by time, {work:.2f}× by processor time", found >= least)
