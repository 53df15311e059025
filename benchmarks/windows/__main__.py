"""``python -m benchmarks.windows``: tumbling and session windows, every engine in one session, one table."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table

from benchmarks.keyed_count.contenders import Contender, Failure, Run
from benchmarks.keyed_count.display import outcome_line, print_targets, wide_console
from benchmarks.keyed_count.processes import run_contender
from benchmarks.keyed_count.targets import Target
from benchmarks.keyed_count.turns import Line, take_turns
from benchmarks.windows.workload import KINDS

LEAST_TIMES_PYFLINK = 20
QUICK_SCALE = 0.25


@dataclass(frozen=True, slots=True)
class WindowContender(Contender):
    """An engine over windows of one kind."""

    @property
    def module(self) -> str:
        side = "engine" if self.family == "rekindle" else f"peers.{self.family}"
        return f"benchmarks.windows.{side}"


def contenders(kind: str) -> tuple[WindowContender, list[WindowContender]]:
    """Return Rekindle and its peers, with enough records for some ten seconds each on two cores."""
    over = ("--kind", kind)

    def one(name: str, family: str, records: int, *arguments: str, java: bool = False) -> WindowContender:
        return WindowContender(
            f"{name}, {kind}",
            family,  # type: ignore[arg-type]
            "per record",
            (*over, *arguments),
            records,
            records,
            java=java,
        )

    return one("Rekindle", "rekindle", 6_000_000), [
        one("PyFlink, process mode", "pyflink", 400_000, "--mode", "process", java=True),
        one("PyFlink, process mode, loopback", "pyflink", 400_000, "--mode", "loopback", java=True),
        one("PyFlink, thread mode", "pyflink", 400_000, "--mode", "thread", java=True),
        one("Bytewax, 1 process", "bytewax", 800_000),
        one("Bytewax, 2 processes", "bytewax", 800_000, "--processes", "2"),
    ]


def measure(
    kind: str, keys: int, scale: float, only: Sequence[str], said: Callable[[Run | Failure], None]
) -> tuple[list[Run], list[Line]]:
    """Run Rekindle and the chosen peers in turn."""
    rekindle, peers = contenders(kind)
    chosen = [peer for peer in peers if not only or any(word.lower() in peer.name.lower() for word in only)]
    return take_turns(rekindle, chosen, lambda contender: run_contender(contender, keys, scale), said)


def target(kind: str, lines: Sequence[Line]) -> Target:
    """The promise against PyFlink, measured against its fastest mode."""
    promise = f"≥ {LEAST_TIMES_PYFLINK}× PyFlink's best, {kind} windows"
    ratios = [line.ratio for line in lines if line.outcome.contender.family == "pyflink" and line.ratio is not None]
    if not ratios:
        return Target(promise, "PyFlink or Rekindle did not run", None)
    return Target(promise, f"{min(ratios):.1f}×", min(ratios) >= LEAST_TIMES_PYFLINK)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--records-scale", type=float, default=1.0, help="multiplies every engine's number of records")
    parser.add_argument("--only", nargs="+", default=[], metavar="PEER", help="only peers whose name has such a word")
    parser.add_argument("--quick", action="store_true", help="a quarter of the records: shows that all works")
    options = parser.parse_args()
    console = wide_console()
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, Python {platform.python_version()}, load average {load}")
    table = Table(title=f"Windows, {options.keys:,} keys", title_justify="left")
    for heading in ("engine", "records/s", "µs per record", "Rekindle is"):
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    targets = []
    settings = []
    for kind in options.kind:
        engine, lines = measure(
            kind,
            options.keys,
            options.records_scale * (QUICK_SCALE if options.quick else 1),
            options.only,
            lambda outcome: console.print(outcome_line(outcome), markup=False, highlight=False, soft_wrap=True),
        )
        if engine:
            median = sorted(run.records_per_second for run in engine)[len(engine) // 2]
            table.add_row(f"Rekindle, {kind}", f"{median:,.0f}", f"{1e6 / median:.2f}", "")
        for line in lines:
            name = line.outcome.contender.name
            if isinstance(line.outcome, Failure):
                table.add_row(name, "not available", "", "")
                settings.append(f"{name}: {line.outcome.reason}")
                continue
            rate = line.outcome.records_per_second
            ratio = "" if line.ratio is None else f"{line.ratio:.1f}×"
            table.add_row(name, f"{rate:,.0f}", f"{1e6 / rate:.2f}", ratio)
        for run in [*engine[:1], *(line.outcome for line in lines if isinstance(line.outcome, Run))]:
            said = ", ".join(f"{key}={value}" for key, value in run.settings.items())
            settings.append(f"{run.contender.name}: {said}")
        table.add_section()
        targets.append(target(kind, lines))
    console.print()
    console.print(table)
    console.print("\n[bold]Settings[/bold]")
    for text in settings:
        console.print(escape(f"  {text}"), soft_wrap=True)
    print_targets(console, targets)


if __name__ == "__main__":
    main()
