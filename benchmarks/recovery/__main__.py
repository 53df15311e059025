"""From each fault to the first new record: the order system with 100 MB of state.

python -m benchmarks.recovery                        # some six minutes
python -m benchmarks.recovery --only driver --runs 5
python -m benchmarks.recovery --quick                # 10 MB, one run: shows that the benchmark works
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.keyed_count.display import wide_console
from benchmarks.recovery.faults import FAULTS, LOCAL, PARALLELISM, Fault, Recovery, measure
from benchmarks.recovery.program import Load
from benchmarks.recovery.session import Session

MB = 1e6
#: Bytes of a checkpoint per order of the backlog, all branches together.
BYTES_PER_ORDER = 360
Results = dict[Fault, list[Recovery]]


@contextlib.contextmanager
def running(console: Console, load: Load, state_bytes: float, kept: Path | None) -> Iterator[Session]:
    """Start the job with its state, from a folder that an earlier run kept, or after filling it."""
    with contextlib.ExitStack() as stack:
        folder = kept
        if folder is None:
            # A short name: Spark puts unix sockets below.
            scratch = tempfile.TemporaryDirectory(prefix="rkr-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(scratch))
        folder.mkdir(parents=True, exist_ok=True)
        session = Session(folder, load)
        stack.callback(session.close)
        clock = load.clock(folder)
        try:
            if clock.since.exists():
                clock.begin()
                session.start(PARALLELISM, resume="latest")
            else:
                _fill(session, console, state_bytes)
                clock.begin()
            yield session
        except BaseException:
            console.print(session.log(), highlight=False, markup=False)
            raise
        finally:
            session.close()
            clock.pause()


def break_it(console: Console, session: Session, faults: Sequence[Fault], runs: int) -> Results:
    """Run every fault `runs` times."""
    results: Results = {}
    master, parallelism = LOCAL, PARALLELISM
    for fault in faults:
        results[fault] = []
        for number in range(runs):
            if (fault.master, PARALLELISM) != (master, parallelism):
                session.close()
                session.start(PARALLELISM, fault.master, resume="latest")
            # Spread over the interval: a fault comes at any time.
            recovery = measure(session, fault, session.load.checkpoint_interval_s * (number + 0.5) / runs)
            master, parallelism = fault.master, fault.parallelism_after
            results[fault].append(recovery)
            console.print(_line(fault, recovery), highlight=False, soft_wrap=True)
    return results


def _fill(session: Session, console: Console, state_bytes: float) -> None:
    began = time.time()
    session.start(PARALLELISM)

    def filled() -> bool:
        last = session.checkpoints(began)[-1:]
        # The backlog is read when a checkpoint has hardly anything new.
        return bool(last) and last[0]["state_bytes"] > state_bytes and last[0]["written_bytes"] < state_bytes / 20

    session.wait(filled, f"{state_bytes / MB:.0f} MB of state")
    size = session.checkpoints(began)[-1]["state_bytes"]
    console.print(f"{size / MB:,.0f} MB of state after {time.time() - began:.0f} s", highlight=False)


def _line(fault: Fault, recovery: Recovery) -> str:
    steps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in recovery.steps)
    size, load = f"{recovery.state_bytes / MB:,.0f} MB", os.getloadavg()[0]
    processor = f"processor {recovery.processor_seconds:.1f} s, load average {load:.0f}"
    return f"{fault.name:<31} {recovery.seconds:6.2f} s   ({steps}; {size}; {processor})"


def times_table(results: Results) -> Table:
    table = Table(title="From the fault to the first new record, seconds", title_justify="left")
    for heading in ("fault", "runs", "median", "worst", "to reach", "", "processor time, median"):
        table.add_column(heading, justify="left" if heading in ("fault", "") else "right")
    for fault, recoveries in results.items():
        seconds = [each.seconds for each in recoveries]
        target, verdict = "", ""
        if fault.target_s is not None:
            target = f"< {fault.target_s:.0f}"
            verdict = "[green]reached[/green]" if max(seconds) < fault.target_s else "[red]missed[/red]"
        median, worst = f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"
        processor = f"{statistics.median(each.processor_seconds for each in recoveries):.1f}"
        table.add_row(fault.name, str(len(seconds)), median, worst, target, verdict, processor)
    return table


def steps_table(results: Results) -> Table:
    names = list(dict.fromkeys(name for each in results.values() for one in each for name, _ in one.steps))
    names.sort(key=lambda name: name == "first epoch")
    table = Table(title="Where the time goes, medians", title_justify="left")
    table.add_column("fault")
    for name in names:
        table.add_column(name, justify="right")
    for fault, recoveries in results.items():
        row = []
        for name in names:
            values = [seconds for one in recoveries for step, seconds in one.steps if step == name]
            row.append(f"{statistics.median(values):.2f}" if values else "")
        table.add_row(fault.name, *row)
    return table


def main() -> None:
    """Run the benchmark and print two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__.partition("\n")[0])
    parser.add_argument("--state-mb", type=float, default=100.0, help="the size of a checkpoint before the first fault")
    parser.add_argument("--runs", type=int, default=3, help="how often each fault comes")
    parser.add_argument("--only", action="append", help="only faults with this in their name; may be given often")
    parser.add_argument("--events-per-second", type=float, default=500.0)
    parser.add_argument("--checkpoint-seconds", type=float, default=1.5, help="between two checkpoints")
    parser.add_argument("--folder", type=Path, help="keep the job's files here (a short path), and use them again")
    parser.add_argument("--quick", action="store_true", help="10 MB, one run")
    arguments = parser.parse_args()
    megabytes, runs = (10.0, 1) if arguments.quick else (arguments.state_mb, arguments.runs)
    wanted = arguments.only or [""]
    faults = [fault for fault in FAULTS if any(word in fault.name for word in wanted)]
    orders = round(megabytes * MB * 1.02 / BYTES_PER_ORDER)
    load = Load(orders, arguments.events_per_second, arguments.checkpoint_seconds)
    console = wide_console()
    averages = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, load average {averages}; {load}", highlight=False, soft_wrap=True)
    with running(console, load, megabytes * MB, arguments.folder) as session:
        results = break_it(console, session, faults, runs)
    console.print()
    console.print(times_table(results))
    console.print(steps_table(results))


if __name__ == "__main__":
    main()
