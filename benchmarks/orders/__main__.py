"""``python -m benchmarks.orders``: the order system with all its branches, every engine in one session, one table."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.keyed_count.contenders import Contender, Failure, Family, Run
from benchmarks.keyed_count.display import print_targets, wide_console
from benchmarks.keyed_count.environments import NotAvailable
from benchmarks.keyed_count.processes import interpreter_for, json_lines
from benchmarks.keyed_count.targets import Target
from benchmarks.keyed_count.turns import Line, take_turns
from benchmarks.orders.prepare import prepared

LEAST_TIMES: dict[Family, tuple[str, int]] = {"pyflink": ("PyFlink", 20), "spark": ("Spark", 10)}
QUICK_SCALE = 0.1
SHARE_OF_THE_SLOW = 0.1
TIME_LIMIT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class OrderContender(Contender):
    """An engine over the order system."""

    @property
    def module(self) -> str:
        side = "engine" if self.family == "rekindle" else f"peers.{self.family}"
        return f"benchmarks.orders.{side}"


def contenders(
    events: int, checkpoint_ms: int, *, all_events: bool = False
) -> tuple[OrderContender, list[OrderContender]]:
    """Return Rekindle and its peers; peers that would take half an hour get only a share of the events."""

    def one(name: str, family: Family, *arguments: str, share: float = 1, information: bool = False) -> OrderContender:
        given = events if all_events else int(events * share)
        java = family != "rekindle"
        return OrderContender(name, family, "per record", arguments, given, given, 1, information, java)

    return one("Rekindle", "rekindle", "--checkpoint-ms", str(checkpoint_ms)), [
        one("PyFlink, process mode", "pyflink", "--mode", "process", share=SHARE_OF_THE_SLOW),
        one("PyFlink, thread mode", "pyflink", "--mode", "thread"),
        one("Spark, transformWithState", "spark", "--form", "rows"),
        one("Spark, transformWithStateInPandas", "spark", "--form", "pandas", information=True),
    ]


def chosen(peers: Sequence[OrderContender], words: Sequence[str]) -> list[OrderContender]:
    """Return the peers whose name has one of the words; without words, all that are not only for information."""
    if not words:
        return [peer for peer in peers if not peer.information]
    return [peer for peer in peers if any(word.lower() in peer.name.lower() for word in words)]


def run_once(contender: OrderContender) -> Run | Failure:
    """Run a contender over its events; an error is a result too."""
    events = contender.records_few_keys
    try:
        folder = prepared(events)
        given = ["--events", str(events)] if contender.family == "rekindle" else ["--folder", str(folder)]
        arguments = [*given, *contender.arguments]
        line = json_lines(interpreter_for(contender), contender.module, arguments, TIME_LIMIT_SECONDS)[-1]
    except NotAvailable as error:
        return Failure(contender, 0, str(error))
    return Run(contender, 0, line["records"], line["seconds"], line["records_per_second"], line["settings"])


def outcome_line(outcome: Run | Failure) -> str:
    """Return the line that is printed as soon as a run is over."""
    head = f"{outcome.contender.name:<36}"
    if isinstance(outcome, Failure):
        return f"{head} {outcome.reason}"
    return f"{head} {outcome.records_per_second:>10,.0f} events/s   ({outcome.records:,} in {outcome.seconds:.1f} s)"


def table_of(engine: Sequence[Run], lines: Sequence[Line]) -> Table:
    """Return a row per contender: medians of its runs, and of their ratios."""
    table = Table(title="The order system, five branches", title_justify="left")
    for heading in ("engine", "events", "events/s", "µs per event", "Rekindle is", "runs"):
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    outcomes = [*engine, *(line.outcome for line in lines)]
    for contender in dict.fromkeys(outcome.contender for outcome in outcomes):
        runs = [each for each in outcomes if isinstance(each, Run) and each.contender == contender]
        events = f"{contender.records_few_keys:,}"
        if not runs:
            table.add_row(contender.name, events, "not available", "", "", "0")
            continue
        rate, ratio = median(run.records_per_second for run in runs), ratio_of(lines, contender.name)
        shown = "" if ratio is None else f"{ratio:.1f}×"
        table.add_row(contender.name, events, f"{rate:,.0f}", f"{1e6 / rate:.1f}", shown, str(len(runs)))
    return table


def ratio_of(lines: Sequence[Line], name: str) -> float | None:
    """Return the median of the ratios of a contender's runs; None if it did not run."""
    ratios = [line.ratio for line in lines if line.ratio is not None and line.outcome.contender.name == name]
    return median(ratios) if ratios else None


def target(family: Family, lines: Sequence[Line]) -> Target:
    """The promise against a peer, measured against its fastest form in this session."""
    title, least = LEAST_TIMES[family]
    promise = f"≥ {least}× {title}'s best"
    forms = {line.outcome.contender.name for line in lines if line.outcome.contender.family == family}
    measured = {form: ratio for form in forms if (ratio := ratio_of(lines, form)) is not None}
    if not measured:
        return Target(promise, f"{title} or Rekindle did not run", None)
    best = min(measured, key=lambda form: measured[form])
    return Target(promise, f"{measured[best]:.1f}× ({best})", measured[best] >= least)


def print_settings(console: Console, engine: Sequence[Run], lines: Sequence[Line]) -> None:
    console.print("\n[bold]Settings[/bold]")
    shown: set[str] = set()
    for outcome in [*engine, *(line.outcome for line in lines)]:
        name = outcome.contender.name
        if isinstance(outcome, Failure):
            console.print(escape(f"  {name}: {outcome.reason}"), soft_wrap=True)
        elif name not in shown:
            shown.add(name)
            said = ", ".join(f"{key}={value}" for key, value in outcome.settings.items())
            console.print(escape(f"  {name}: {said}"), soft_wrap=True)


def options_from(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orders", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="events of each run (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="runs of each peer (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PEER", help="only peers whose name has such a word")
    parser.add_argument("--quick", action="store_true", help="a tenth of the events: shows that all works")
    parser.add_argument("--checkpoint-ms", type=int, default=0, help="Rekindle's interval of checkpoints; 0: none")
    parser.add_argument("--all-events", action="store_true", help="all events for everyone, also for the slow ones")
    options = parser.parse_args(arguments)
    if options.quick:
        options.events = int(options.events * QUICK_SCALE)
    return options


def main() -> None:
    options = options_from()
    console = wide_console()
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, Python {platform.python_version()}, load average {load}")
    rekindle, peers = contenders(options.events, options.checkpoint_ms, all_events=options.all_events)
    engine, lines = take_turns(
        rekindle,
        chosen(peers, options.only) * options.runs,
        run_once,
        lambda outcome: console.print(outcome_line(outcome), markup=False, highlight=False, soft_wrap=True),
    )
    console.print()
    console.print(table_of(engine, lines))
    print_settings(console, engine, lines)
    print_targets(console, [target(family, lines) for family in LEAST_TIMES])


if __name__ == "__main__":
    main()
