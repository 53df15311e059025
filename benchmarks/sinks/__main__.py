"""``python -m benchmarks.sinks``: sinks beside bare loops that write the same rows in the same batches."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from benchmarks.sinks import postgres
from benchmarks.sinks.workload import BATCH, Run
from tools.servers.postgres import PostgresServer


def postgres_runs(options: argparse.Namespace) -> list[str]:
    """Run the PostgreSQL half and return its ratios."""
    runs: list[Run] = []
    with PostgresServer(settings=postgres.SETTINGS) as server:
        session = postgres.PostgresSession(server, options.records, options.keys, options.checkpoint_ms)
        for _ in range(options.runs):
            for run in session.runs(options.only):
                runs.append(run)
                print(
                    f"{run.contender:<32} {run.records_per_second:>10,.0f} rows/s   ({run.seconds:.1f} s)", flush=True
                )
    return postgres.ratios(runs)


#: Each half runs its contenders, prints a line per run, and returns its ratios.
HALVES: dict[str, Callable[[argparse.Namespace], list[str]]] = {"postgres": postgres_runs}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sinks", description=__doc__)
    parser.add_argument("--sink", nargs="+", choices=list(HALVES), default=list(HALVES))
    parser.add_argument("--records", type=int, default=1_000_000, help="rows to write (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=200_000, help="different rows (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=2, help="rounds (default: %(default)s)")
    parser.add_argument("--checkpoint-ms", type=int, default=2_000, help="between checkpoints (default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="only contenders whose name has such a word"
    )
    options = parser.parse_args()
    print(f"{options.records:,} rows, {options.keys:,} keys, batches of {BATCH:,}; load {os.getloadavg()[0]:.1f}")
    for half in options.sink:
        print(f"\n{half}", flush=True)
        for line in HALVES[half](options):
            print(line)


if __name__ == "__main__":
    main()
