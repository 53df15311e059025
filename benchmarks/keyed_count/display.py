"""Prints a session: the table, the settings, the latency of an empty epoch, the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.keyed_count.contenders import TYPED, Failure, Run
from benchmarks.keyed_count.session import Row
from benchmarks.keyed_count.targets import Target


def outcome_line(outcome: Run | Failure) -> str:
    """Return the line that is printed as soon as a run is over."""
    head = f"{outcome.keys:>7,} keys  {outcome.contender.name:<44}"
    if isinstance(outcome, Failure):
        return f"{head} {outcome.reason}"
    return f"{head} {outcome.records_per_second:>12,.0f} records/s   ({outcome.records:,} in {outcome.seconds:.1f} s)"


def throughput_table(rows: Sequence[Row]) -> Table:
    table = Table(title="Keyed count: read, add, write one value of state", title_justify="left")
    table.add_column("keys", justify="right")
    table.add_column("engine")
    table.add_column("function called")
    for heading in ("records/s, median", "best", "µs per record", "Rekindle is", "runs"):
        table.add_column(heading, justify="right")
    keys_before = None
    for row in sorted(rows, key=lambda row: row.keys):
        if keys_before not in (None, row.keys):
            table.add_section()
        keys_before = row.keys
        table.add_row(f"{row.keys:,}", name_of(row), row.contender.calls, *figures(row))
    return table


def name_of(row: Row) -> str:
    return row.contender.name + (" (information)" if row.contender.information else "")


def figures(row: Row) -> list[str]:
    if not row.pairs:
        return ["not available", "", "", "", "0"]
    ratio = "" if row.ratio is None or row.contender == TYPED else f"{row.ratio:.2f}×"
    return [f"{row.median:,.0f}", f"{row.best:,.0f}", f"{1e6 / row.median:.2f}", ratio, str(len(row.pairs))]


def print_settings(console: Console, rows: Sequence[Row]) -> None:
    console.print("\n[bold]Settings[/bold]")
    for row in sorted(rows, key=lambda row: row.keys):
        if row.pairs:
            settings = ", ".join(f"{name}={value}" for name, value in row.pairs[0].run.settings.items())
            console.print(escape(f"  {row.keys:,} keys, {row.contender.name}: {settings}"), soft_wrap=True)
    for row in rows:
        if row.failure:
            console.print(escape(f"  {row.keys:,} keys, {row.contender.name}: {row.failure}"), soft_wrap=True)


def print_latency(console: Console, latency: Sequence[Mapping[str, Any]] | str) -> None:
    console.print("\n[bold]An empty epoch[/bold]")
    if isinstance(latency, str):
        console.print(escape(f"  {latency}"), soft_wrap=True)
        return
    for line in latency:
        console.print(
            escape("  " + ", ".join(f"{name}={plain(value)}" for name, value in line.items())), soft_wrap=True
        )


def plain(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def print_targets(console: Console, targets: Sequence[Target]) -> None:
    words = {True: "[green]reached[/green]", False: "[red]missed[/red]", None: "[yellow]not measured[/yellow]"}
    table = Table(title="Targets", title_justify="left")
    for heading in ("target", "measured", ""):
        table.add_column(heading)
    for target in targets:
        table.add_row(escape(target.promise), escape(target.measured), words[target.reached])
    console.print()
    console.print(table)


def wide_console() -> Console:
    """Return a console that never cuts a table when the output goes to a file."""
    console = Console()
    return console if console.is_terminal else Console(width=160)
