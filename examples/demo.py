"""The demo: a keyed job over generated orders is killed while it runs, comes back, and ends with the same result.

    make demo                        # or: python -m examples.demo --orders 500000 --seed 7 --parallelism 2

The same job runs twice, each time as a program of its own. The first run is left alone. In the second one a function
raises, a slot is killed (SIGKILL), and then the whole program, which is started again and goes on from its latest
checkpoint. At the end both results stand side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import psutil
from rich.console import Console
from rich.table import Table

from examples import order_totals
from examples.order_totals import CategoryTotal

JOB = "orders demo"
_WAIT_S = 120


class Program:
    """The job as a process of its own: what one would start on a server."""

    def __init__(self, arguments: argparse.Namespace, folder: Path, fails: bool, resumes: bool = False) -> None:
        self.checkpoints = folder / "checkpoints"
        self.result = folder / "result.json"
        options = [
            *("--orders", str(arguments.orders), "--seed", str(arguments.seed), "--per-second", str(arguments.rate)),
            *("--parallelism", str(arguments.parallelism), "--name", JOB),
            *("--checkpoints", str(self.checkpoints), "--result", str(self.result)),
            *(["--fail-once"] if fails else []),
            *(["--resume"] if resumes else []),
        ]
        self._log = (folder / "log.txt").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "examples.order_totals", *options], stdout=self._log, stderr=self._log
        )

    def completed(self) -> int:
        """The newest checkpoint that is complete, over all its lives; 0: none."""
        found = [int(each.parent.name[4:]) for each in self.checkpoints.glob("*/*/chk-*/_metadata")]
        return max(found, default=0)

    def slots(self) -> list[psutil.Process]:
        """The processes that hold its functions and their state."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = process.cmdline()
            except psutil.Error:
                continue
            if "rekindle.runtime.slot" in line and process.name() != "rekindle-guard":
                found.append(process)
        return found

    def wait_for(self, what: str, happened: Callable[[], bool]) -> None:
        """Wait for something that the program does while it runs."""
        deadline = monotonic() + _WAIT_S
        while not happened():
            if self.process.poll() is not None or monotonic() > deadline:
                raise SystemExit(f"The job ended before {what}:\n{self.log()}")
            sleep(0.02)

    def end(self) -> dict[str, CategoryTotal]:
        """Its result, by category."""
        if self.process.wait(_WAIT_S * 5) != 0:
            raise SystemExit(f"The job failed:\n{self.log()}")
        rows = json.loads(self.result.read_text())
        return {row["category"]: CategoryTotal(**row) for row in rows}

    def log(self) -> str:
        """The end of what the program said."""
        return Path(self._log.name).read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._log.close()


def main() -> None:
    """Run the job twice, break it once, and compare."""
    arguments = parse_arguments()
    console = Console()
    say = Story(console)
    say(f"{arguments.orders:,} generated orders, totals per category in keyed state, {arguments.parallelism} slots")
    with tempfile.TemporaryDirectory(prefix="rekindle-demo-") as scratch:
        say("first run: left alone")
        undisturbed = run_undisturbed(arguments, Path(scratch) / "undisturbed")
        say("second run: a function raises, a slot is killed, then the whole program")
        broken = run_broken(arguments, Path(scratch) / "broken", say)
    say("both have ended")
    if not compare(console, undisturbed, broken, arguments.orders):
        raise SystemExit("The results differ: this is a bug, please report it.")


class Story:
    """Lines with the time since the demo began."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = monotonic()

    def __call__(self, text: str) -> None:
        self._console.print(f"[dim]{monotonic() - self._began:5.1f} s[/]  {text}", highlight=False)


def run_undisturbed(arguments: argparse.Namespace, folder: Path) -> dict[str, CategoryTotal]:
    """The job as it should be."""
    folder.mkdir()
    program = Program(arguments, folder, fails=False)
    try:
        return program.end()
    finally:
        program.stop()


def run_broken(arguments: argparse.Namespace, folder: Path, say: Story) -> dict[str, CategoryTotal]:
    """The same job, broken three times."""
    folder.mkdir()
    program = Program(arguments, folder, fails=True)
    try:
        program.wait_for("its function failed", lambda: "on purpose" in program.log())
        say(f"[yellow]a function raised[/]; checkpoint {program.completed()} is what the job goes back to")
        recovered_from(program, say)
        victim = program.slots()[0]
        os.kill(victim.pid, signal.SIGKILL)
        say(f"[red]SIGKILL[/] to slot process {victim.pid}, with its functions and their state")
        recovered_from(program, say)
        os.kill(program.process.pid, signal.SIGKILL)
        program.process.wait()
        say(f"[red]SIGKILL[/] to the program itself (process {program.process.pid}): driver, slots, Spark, all gone")
        last = program.completed()
        program.stop()
        program = Program(arguments, folder, fails=False, resumes=True)
        say(f"the program is started again, to go on from the latest checkpoint ({last})")
        recovered_from(program, say)
        return program.end()
    finally:
        program.stop()


def recovered_from(program: Program, say: Story) -> None:
    """The job is back when it completes checkpoints again."""
    before, failed_at = program.completed(), monotonic()
    program.wait_for("it came back", lambda: program.completed() > before + 1)
    say(f"[green]back[/]: checkpoint {program.completed()} is complete, {monotonic() - failed_at:.1f} s later")


def compare(
    console: Console, undisturbed: dict[str, CategoryTotal], broken: dict[str, CategoryTotal], orders: int
) -> bool:
    """The two results side by side; whether they are equal, and complete."""
    table = Table(title="Orders per category: undisturbed, and killed three times", title_justify="left")
    table.add_column("category")
    for column in ("orders", "revenue", "orders (killed)", "revenue (killed)"):
        table.add_column(column, justify="right")
    table.add_column("")
    nothing = CategoryTotal("", 0, 0, 0, 0)
    for category in sorted(undisturbed.keys() | broken.keys()):
        pair = undisturbed.get(category, nothing), broken.get(category, nothing)
        figures = [text for total in pair for text in (f"{total.orders:,}", f"{total.amount_cents / 100:,.2f}")]
        table.add_row(category, *figures, "equal" if pair[0] == pair[1] else "[red]DIFFERENT[/]")
    console.print(table)
    counted = sum(total.orders for total in broken.values())
    console.print(f"{counted:,} of {orders:,} orders counted exactly once, through every failure." if counted == orders
                  else f"[red]{counted:,} counted, {orders:,} expected[/]")
    return undisturbed == broken and counted == orders


def parse_arguments() -> argparse.Namespace:
    """The demo's options."""
    parser = argparse.ArgumentParser(description="A keyed job is killed on purpose and ends as if nothing had been.")
    parser.add_argument("--orders", type=int, default=200_000, help="how many orders to generate (default 200,000)")
    parser.add_argument("--seed", type=int, default=7, help="the generator's seed (default 7)")
    parser.add_argument("--parallelism", type=int, default=2, help="subtasks per operator (default 2)")
    parser.add_argument("--rate", type=int, default=20_000, help="orders per second (default 20,000)")
    return parser.parse_args()


if __name__ == "__main__":
    assert order_totals.__file__, "the job is a program of its own"
    main()
