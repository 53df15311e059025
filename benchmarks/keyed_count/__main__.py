"""``python -m benchmarks.keyed_count``: every engine in one session, one table."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence

from benchmarks.keyed_count.contenders import PEERS, UNTYPED, Contender
from benchmarks.keyed_count.display import (
    outcome_line,
    print_latency,
    print_settings,
    print_targets,
    throughput_table,
    wide_console,
)
from benchmarks.keyed_count.processes import measure_epoch_latency, run_contender
from benchmarks.keyed_count.session import Session
from benchmarks.keyed_count.targets import all_targets

QUICK_SCALE = 0.1
QUIET_LOAD = 0.5


def options_from(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keyed_count", description=__doc__)
    parser.add_argument("--keys", default="1000,100000", help="numbers of keys, comma-separated (default: %(default)s)")
    parser.add_argument("--records-scale", type=float, default=1.0, help="multiplies every engine's number of records")
    parser.add_argument("--only", nargs="+", metavar="PEER", help="only peers whose name contains one of these words")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the records, one run each: shows that it works"
    )
    options = parser.parse_args(arguments)
    options.keys = [int(number) for number in options.keys.split(",")]
    if options.quick:
        options.records_scale *= QUICK_SCALE
    return options


def chosen(words: Sequence[str] | None) -> list[Contender]:
    """Return the contenders beside Rekindle's typed path, which always runs.

    >>> [contender.name for contender in chosen(["thread"])]
    ['PyFlink, thread mode']
    """
    everyone = [UNTYPED, *PEERS]
    if not words:
        return everyone
    return [one for one in everyone if any(word.lower() in one.name.lower() for word in words)]


def main() -> None:
    options = options_from()
    console = wide_console()
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    console.print(
        f"{os.cpu_count()} cores, {memory_gb:.0f} GB, Python {platform.python_version()}, load average {load}"
    )
    if os.getloadavg()[0] > QUIET_LOAD:
        console.print("[yellow]The machine is busy: these figures will say little about anyone's speed.[/yellow]")
    session = Session(
        run=lambda contender, keys: run_contender(contender, keys, options.records_scale),
        on_outcome=lambda outcome: console.print(outcome_line(outcome), markup=False, highlight=False, soft_wrap=True),
        quick=options.quick,
    )
    for keys in options.keys:
        session.measure(chosen(options.only), keys)
    latency = measure_epoch_latency()
    rows = session.rows()
    console.print()
    console.print(throughput_table(rows))
    print_settings(console, rows)
    print_latency(console, latency)
    print_targets(console, all_targets(rows, options.keys, [] if isinstance(latency, str) else latency))


if __name__ == "__main__":
    main()
