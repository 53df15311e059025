"""Keyed state of both backends at growing sizes, beside Spark's own state store.

    python -m benchmarks.large_state                     # up to 10 million keys: 25 minutes on two quiet cores, 10 GB
    python -m benchmarks.large_state --quick --no-spark  # up to a million: five minutes

Costs are processor time, and the sides take turns, so that other work on the machine disturbs them little.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from rich.console import Console

from benchmarks.keyed_count.display import wide_console
from benchmarks.keyed_count.environments import NotAvailable, python_of
from benchmarks.large_state.cases import QUICK, WHOLE, Plan, measure, plan
from benchmarks.large_state.outcome import Outcome, job_table, loop_table, target_table, targets
from benchmarks.large_state.spark_peer import run_spark


def main() -> None:
    """Run the benchmark and print its tables."""
    arguments = parsed()
    chosen = QUICK if arguments.quick else WHOLE
    if arguments.keys:
        chosen = plan(arguments.keys, max(8, arguments.keys // 156_250), 512, 1_000_000)
    console, outcome, begun = wide_console(), Outcome(), time.monotonic()
    console.print(f"{os.cpu_count()} cores, load average {loads()}", highlight=False)
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-", dir=arguments.directory) as folder:
        if "loops" in arguments.only:
            run_loops(chosen, Path(folder), outcome, console)
        if "jobs" in arguments.only:
            run_jobs(chosen, Path(folder), outcome, console)
    if "spark" in arguments.only and not arguments.no_spark:
        outcome.spark = measured_spark(chosen, arguments.spark_minutes, console)
    show(chosen, outcome, console)
    console.print(f"{time.monotonic() - begun:.0f} s, load average at the end {loads()}", highlight=False)
    if arguments.json:
        everything = {
            "loops": outcome.loops,
            "jobs": {f"{name}, {keys}": found for (name, keys), found in outcome.jobs.items()},
            "spark": outcome.spark,
        }
        arguments.json.write_text(json.dumps(everything, indent=1))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_state", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to a million keys")
    parser.add_argument("--keys", type=int, help="up to so many keys, with budgets in proportion (default: 10 million)")
    parser.add_argument("--only", nargs="+", choices=["loops", "jobs", "spark"], default=["loops", "jobs", "spark"])
    parser.add_argument("--no-spark", action="store_true", help="leave out Spark's state store")
    parser.add_argument("--spark-minutes", type=float, default=10.0, help="the most time for Spark's state store")
    parser.add_argument("--directory", type=Path, help="where files go; removed afterwards (default: temporary)")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    return parser.parse_args()


def loads() -> str:
    return ", ".join(f"{average:.1f}" for average in os.getloadavg())


def run_loops(chosen: Plan, folder: Path, outcome: Outcome, console: Console) -> None:
    for case in chosen.loops():
        found = measure(case.arguments(folder))
        outcome.add_loop(case, found)
        sides = ", ".join(f"{name} {found[name]['record_us']:.2f} µs" for name in case.backends)
        console.print(f"{case.keys:>12,} keys  {case.name}: {sides}", highlight=False)


def run_jobs(chosen: Plan, folder: Path, outcome: Outcome, console: Console) -> None:
    for case in chosen.jobs:
        found = measure(case.arguments(folder))
        outcome.add_job(case, found)
        console.print(f"{case.keys:>12,} keys  job, {case.name}: {found['zipf']['all_us']:.2f} µs", highlight=False)


def measured_spark(chosen: Plan, minutes: float, console: Console) -> dict[str, float] | None:
    try:
        return run_spark(python_of("spark"), chosen.jobs[-1].keys, minutes)
    except NotAvailable as reason:
        console.print(f"Spark's state store: {reason}", highlight=False, soft_wrap=True)
        return None


def show(chosen: Plan, outcome: Outcome, console: Console) -> None:
    if outcome.loops:
        console.print(loop_table(chosen, outcome))
    if outcome.jobs:
        console.print(job_table(outcome))
    if outcome.spark is not None:
        console.print(
            f"Spark's RocksDB state store: {outcome.spark['keys_written']:,.0f} of {outcome.spark['keys']:,.0f} keys "
            f"written once in {outcome.spark['seconds']:.0f} s, {outcome.spark['records_per_second']:,.0f} records/s.",
            highlight=False,
            soft_wrap=True,
        )
    console.print(target_table(targets(chosen, outcome)))


if __name__ == "__main__":
    main()
