"""The demo: a shop's order system runs on embedded Spark, is broken four times, and still gives the right result.

    make demo                                          # or: python -m examples.demo
    make demo ARGS="--orders 50000 --rate 5000 --seed 8"

The job (`examples/orders`) is a program of its own. While it runs, a function raises, a slot is killed (SIGKILL), the
program itself is killed and started again, and it is stopped and continued with another parallelism. At the end its
output is compared, row by row, with the results of a model in plain Python for the same orders: a model without
streams, state or checkpoints, which shares no code with the job.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

from examples.orders.model import Row, expected
from examples.orders.options import parser_of
from examples.orders.results import BRANCH_STREAMS, Verdict, compare
from examples.orders.settings import Feed, Settings
from examples.orders.show.program import OrdersProgram, VisibleRows
from examples.orders.show.scene import Act, Checkpoint, Scene
from examples.orders.show.screens import Screen, screen_for

PARALLELISM, RESCALED = 2, 3
_POLL_S = 0.1
_DEADLINE_S = 180.0
#: The number of completed checkpoints between two faults.
_CHECKPOINTS_BETWEEN = 2


class DemoError(Exception):
    """The demo cannot continue."""


def main() -> int:
    """Run the job, break it, compare its output; the exit code is 0 if every branch is equal."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, _terminate)
    console = Console()
    feed = Feed(orders=arguments.orders, rate=arguments.rate, seed=arguments.seed)
    try:
        with tempfile.TemporaryDirectory(prefix="rk-demo-", ignore_cleanup_errors=True) as scratch:
            return Demo(console, Path(scratch), feed).run()
    except KeyboardInterrupt:
        console.print("Interrupted: the job is gone, and so are its files.")
        return 128 + signal.SIGINT
    except DemoError as error:
        console.print(f"[red]{error}[/]", highlight=False)
        return 1


class Model:
    """Computes the expected rows on a thread while the job runs."""

    def __init__(self, settings: Settings, feed: Feed) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._thread = threading.Thread(target=self._run, args=(settings, feed), daemon=True)
        self._thread.start()

    def _run(self, settings: Settings, feed: Feed) -> None:
        self._rows = expected(settings, feed)

    def events(self) -> int | None:
        """The number of events of the job; None until the model has computed it."""
        return len(self._rows["batches"]) if self._rows else None

    def rows(self) -> dict[str, list[Row]]:
        """The rows of every stream."""
        self._thread.join()
        return self._rows


class Demo:
    """One run of the demo: the program, the faults, and the screen."""

    def __init__(self, console: Console, folder: Path, feed: Feed) -> None:
        settings = Settings(
            directory=str(folder),
            sink="files",
            checkpoint_interval_s=2,
            checkpoint_pause_s=0.5,
            restart_delay_s=0.5,
        )
        self._console = console
        self._settings = settings
        self._feed = feed
        self._program = OrdersProgram(folder, settings, feed)
        self._model = Model(settings, feed)
        self._visible = VisibleRows(self._program.output)
        self._exception = Act("a function raises")
        self._slot = Act("a slot is killed (SIGKILL)")
        self._driver = Act("the program is killed (SIGKILL)")
        self._rescale = Act(f"stopped; goes on with {RESCALED} slots, not {PARALLELISM}")
        acts = [self._exception, self._slot, self._driver, self._rescale]
        title = f"A shop's order system, {feed.orders:,} orders (seed {feed.seed}), is broken {len(acts)} times"
        self._scene = Scene(title, acts)
        self._screen: Screen = screen_for(console, self._scene)
        self._read = 0  # lines of the journal

    def run(self) -> int:
        """Run the whole demo; returns the exit code."""
        try:
            with self._screen:
                self._break_it()
        finally:
            self._program.close()
        verdicts = compare(self._program.output, self._model.rows(), self._settings.batch_size, RESCALED)
        return self._conclude(verdicts)

    # -- the faults ---------------------------------------------------------------------------------------------------

    def _break_it(self) -> None:
        record = max(50, int(self._feed.rate or 0) // (4 * PARALLELISM))
        self._screen.say("starting Spark and the job; checkpoints every 2 s")
        self._program.start(PARALLELISM, fail=f"tracking:{record}:0:{_CHECKPOINTS_BETWEEN}")
        self._wait("it runs", lambda: self._running_since(0.0) is not None)
        self._screen.say("the job runs; a function is about to raise")
        self._wait("a function raised", lambda: self._first("status", status="RESTARTING") is not None)
        raised = self._first("status", status="RESTARTING")
        assert raised is not None
        self._broken(self._exception, f"at record {record:,} after checkpoint {_CHECKPOINTS_BETWEEN}", raised["at"])

        self._after_checkpoints("a slot is about to be killed")
        failed_at = time.time()
        pid = self._program.kill_slot()
        self._broken(self._slot, f"process {pid}", failed_at)

        self._after_checkpoints("the program is about to be killed")
        failed_at = time.time()
        pid = self._program.kill_driver()
        self._program.start(PARALLELISM, resume="latest")
        self._broken(self._driver, f"process {pid} is gone; started again", failed_at)

        self._after_checkpoints("the program is about to be stopped")
        failed_at = time.time()
        self._program.stop()
        self._set(self._rescale, "stopping")
        self._wait("it stopped", lambda: self._program.ended() is not None, may_end=True)
        stopped = self._first("stopped")
        if stopped is None:
            raise DemoError(f"The program did not stop with a savepoint:\n{self._program.log()}")
        self._program.start(RESCALED, resume=stopped["savepoint"])
        self._broken(self._rescale, "started again", failed_at)

        self._screen.say("nothing more is broken; the job runs to its end")
        self._wait("it ended", lambda: self._program.ended() is not None, may_end=True)
        if self._program.ended() != 0:
            raise DemoError(f"The job failed:\n{self._program.log()}")

    def _after_checkpoints(self, next_up: str) -> None:
        self._screen.say(f"the job runs; after {_CHECKPOINTS_BETWEEN} checkpoints {next_up}")
        enough = len(self._scene.checkpoints) + _CHECKPOINTS_BETWEEN
        self._wait(next_up, lambda: len(self._scene.checkpoints) >= enough)

    def _broken(self, act: Act, how: str, failed_at: float) -> None:
        """Show a failure and wait until the job runs again."""
        self._set(act, how)
        self._screen.say("broken; the job goes back to its last checkpoint")
        self._wait("it came back", lambda: self._running_since(failed_at) is not None)
        running_at = self._running_since(failed_at)
        assert running_at is not None
        restored = self._first("restored", since=failed_at)
        act.seconds = running_at - failed_at
        kind = "savepoint" if act is self._rescale else "checkpoint"
        act.basis = f"from {kind} {restored['id']}" if restored is not None else "from the beginning"
        self._set(act, "recovered")

    def _set(self, act: Act, state: str) -> None:
        act.state = state
        self._screen.act(act)

    # -- following the journal ----------------------------------------------------------------------------------------

    def _wait(self, what: str, happened: Callable[[], bool], may_end: bool = False) -> None:
        deadline = monotonic() + _DEADLINE_S + (self._feed.orders or 0) * 5 / (self._feed.rate or 1000)
        while True:
            self._look()
            if happened():
                return
            if not may_end and self._program.ended() == 0:
                raise DemoError(f"The job ended before {what}: give it more --orders, or a lower --rate.")
            if monotonic() > deadline or (not may_end and self._program.ended() is not None):
                raise DemoError(f"The demo waited in vain: {what}. The program printed:\n{self._program.log()}")
            time.sleep(_POLL_S)

    def _look(self) -> None:
        lines = self._program.journal()
        for line in lines[self._read :]:
            if line["what"] == "checkpoint":
                figures = line["duration_ms"], line["written_bytes"], line["state_bytes"]
                found = Checkpoint(line["id"], line["type"], *figures)
                self._scene.checkpoints.append(found)
                self._screen.checkpoint(found)
        self._read = len(lines)
        self._scene.total = self._model.events()
        self._scene.count(self._visible.count())
        self._screen.tick()

    def _first(self, what: str, since: float = 0.0, **details: Any) -> dict[str, Any] | None:
        for line in self._program.journal():
            wanted = {"what": what, **details}
            if line["at"] >= since and wanted.items() <= line.items():
                return line
        return None

    def _running_since(self, since: float) -> float | None:
        line = self._first("status", since, status="RUNNING")
        return None if line is None else float(line["at"])

    # -- the end ------------------------------------------------------------------------------------------------------

    def _conclude(self, verdicts: list[Verdict]) -> int:
        self._console.print(results_table(verdicts))
        if not all(verdict.equal for verdict in verdicts):
            self._console.print("[red]The results differ: this is a bug, please report it.[/]")
            return 1
        times = ", ".join(f"{act.seconds:.1f} s" for act in self._scene.acts if act.seconds is not None)
        events = next(verdict.rows for verdict in verdicts if verdict.stream == "batches")
        self._console.print(
            f"[green]Proved:[/] the job was broken {len(self._scene.acts)} times, each time it ran again from its last "
            f"checkpoint ({times}), and all {events:,} events count exactly once in each of the five branches: no row "
            f"is missing, twice or different ({self._scene.elapsed():.0f} s in all).",
            highlight=False,
        )
        return 0


def results_table(verdicts: list[Verdict]) -> Table:
    """A table of the job's rows beside the model's."""
    by_stream = {verdict.stream: verdict for verdict in verdicts}
    title = "Rows written by the broken job, and those of an undisturbed run (plain Python)"
    table = Table(title=title, title_justify="left")
    for column in ("branch", "stream"):
        table.add_column(column)
    for column in ("broken", "undisturbed"):
        table.add_column(column, justify="right")
    table.add_column("")
    for branch, streams in BRANCH_STREAMS.items():
        for stream in streams:
            each = by_stream[stream]
            wrong = f"{each.missing:,} missing, {each.unexpected:,} not expected {each.complaint}"
            verdict = "[green]equal[/]" if each.equal else f"[red]DIFFERENT:[/] {wrong}"
            name = "events in batches" if stream == "batches" else stream
            table.add_row(branch, name, f"{each.rows:,}", f"{each.expected:,}", verdict)
            branch = ""
    return table


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The demo's options."""
    parser = argparse.ArgumentParser(description="An order system is broken on purpose and loses nothing.")
    parser.add_argument("--orders", type=_given("orders"), default=20_000, help="how many orders (default 20,000)")
    parser.add_argument("--rate", type=_given("rate"), default=2_500, help="events per second (default 2,500)")
    parser.add_argument("--seed", type=parser_of(Feed, "seed"), default=7, help="the seed of the orders (default 7)")
    return parser.parse_args(words)


def _given(name: str) -> Callable[[str], Any]:
    """A parser for a setting of the feed that refuses `none`: the demo needs a feed with an end."""
    read = parser_of(Feed, name)

    def parse(text: str) -> Any:
        if text == "none":
            raise argparse.ArgumentTypeError("the demo has an end: give a number")
        return read(text)

    parse.__name__ = read.__name__
    return parse


if __name__ == "__main__":
    sys.exit(main())
