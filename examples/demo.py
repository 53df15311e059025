"""The demo: a shop's order system runs on embedded Spark, is broken four times, and still gives the right result.

    make demo                                          # or: python -m examples.demo
    make demo ARGS="--orders 50000 --rate 5000 --seed 8"
    make demo ARGS=--servers                           # from Kafka to Kafka and HBase, which are killed too

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
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console

from examples.orders.options import parser_of
from examples.orders.results import Verdict, compare_rows
from examples.orders.settings import Feed, Settings
from examples.orders.show.comparison import Model, results_table
from examples.orders.show.program import OrdersProgram
from examples.orders.show.scene import BRANCHES, Act, Checkpoint, Scene
from examples.orders.show.screens import Screen, screen_for
from examples.orders.show.stage import FileStage, Stage
from tools.servers.server_error import ServerError

PARALLELISM, RESCALED = 2, 3
#: Events per second. Those in Kafka do not wait while the job is broken, and must outlast all faults.
_RATE, _KAFKA_RATE = 2_500, 1_000
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
    rate = arguments.rate or (_KAFKA_RATE if arguments.servers else _RATE)
    feed = Feed(orders=arguments.orders, rate=rate, seed=arguments.seed)
    try:
        with tempfile.TemporaryDirectory(prefix="rk-demo-", ignore_cleanup_errors=True) as scratch:
            return show(console, Path(scratch), feed, arguments.servers)
    except KeyboardInterrupt:
        console.print("Interrupted: the job is gone, and so are its files.")
        return 128 + signal.SIGINT
    except (DemoError, ServerError) as error:
        console.print(f"[red]{error}[/]", highlight=False)
        return 1


def show(console: Console, folder: Path, feed: Feed, servers: bool) -> int:
    """Run the demo with files, or with a Kafka broker and an HBase of its own."""
    settings = Settings(directory=str(folder), checkpoint_interval_s=2, checkpoint_pause_s=0.5, restart_delay_s=0.5)
    if not servers:
        return Demo(console, FileStage(settings), feed).run()
    from examples.orders.show.servers_stage import ServersStage

    console.print("Starting Kafka and HBase", highlight=False)
    with ServersStage(settings, feed) as stage:
        return Demo(console, stage, feed).run()


class Demo:
    """One run of the demo: the program, the faults, and the screen."""

    def __init__(self, console: Console, stage: Stage, feed: Feed) -> None:
        self._console = console
        self._stage = stage
        self._settings = stage.settings
        self._feed = feed
        self._program = OrdersProgram(Path(self._settings.directory), self._settings, feed)
        self._model = Model(self._settings, feed)
        self._exception = Act("a function raises")
        self._slot = Act("a slot is killed (SIGKILL)")
        self._servers = {name: Act(f"{name} is killed (SIGKILL)") for name in stage.servers}
        self._driver = Act("the program is killed (SIGKILL)")
        self._rescale = Act(f"stopped; goes on with {RESCALED} slots, not {PARALLELISM}")
        acts = [self._exception, self._slot, *self._servers.values(), self._driver, self._rescale]
        title = f"A shop's order system, {feed.orders:,} orders (seed {feed.seed}), is broken {len(acts)} times"
        branches = {name: stream for name, stream in BRANCHES.items() if stream in stage.counted}
        self._scene = Scene(title, acts, branches)
        self._screen: Screen = screen_for(console, self._scene)
        self._read = 0  # lines of the journal

    def run(self) -> int:
        """Run the whole demo; returns the exit code."""
        try:
            with self._screen:
                self._break_it()
        finally:
            self._program.close()
        expected = self._model.rows()
        return self._conclude(compare_rows(self._stage.rows_of, expected, self._settings.batch_size, RESCALED))

    # -- the faults ---------------------------------------------------------------------------------------------------

    def _break_it(self) -> None:
        self._fail_a_function()
        self._kill_a_slot()
        for name, act in self._servers.items():
            self._kill_a_server(name, act)
        self._kill_the_driver()
        self._stop_and_rescale()
        self._screen.say("nothing more is broken; the job runs to its end")
        self._stage.finish_feed()
        self._wait("it ended", lambda: self._program.ended() is not None, may_end=True)
        if self._program.ended() != 0:
            raise DemoError(f"The job failed:\n{self._program.log()}")

    def _fail_a_function(self) -> None:
        record = max(50, int(self._feed.rate or 0) // (4 * PARALLELISM))
        self._screen.say("starting Spark and the job; checkpoints every 2 s")
        self._program.start(PARALLELISM, fail=f"tracking:{record}:0:{_CHECKPOINTS_BETWEEN}")
        self._wait("it runs", lambda: self._running_since(0.0) is not None)
        self._stage.start_feed()
        self._screen.say("the job runs; a function is about to raise")
        self._wait("a function raised", lambda: self._first("status", status="RESTARTING") is not None)
        raised = self._first("status", status="RESTARTING")
        assert raised is not None
        self._broken(self._exception, f"at record {record:,} after checkpoint {_CHECKPOINTS_BETWEEN}", raised["at"])

    def _kill_a_slot(self) -> None:
        self._after_checkpoints("a slot is about to be killed")
        failed_at = time.time()
        pid = self._program.kill_slot()
        self._broken(self._slot, f"process {pid}", failed_at)

    def _kill_a_server(self, name: str, act: Act) -> None:
        """Kill a server, start it again, and wait for a checkpoint that began after that."""
        self._after_checkpoints(f"{name} is about to be killed")
        failed_at = time.time()
        server = self._stage.servers[name]
        pid = server.pid
        server.kill()
        self._set(act, f"process {pid} is gone")
        self._screen.say(f"without {name} the job waits; {name} is started again")
        server.restart()
        back_at = time.time()
        self._wait(f"it uses {name} again", lambda: self._checkpoint_begun_after(back_at) is not None)
        written_at = self._checkpoint_begun_after(back_at)
        assert written_at is not None
        self._recovered(act, failed_at, written_at)

    def _kill_the_driver(self) -> None:
        self._after_checkpoints("the program is about to be killed")
        failed_at = time.time()
        pid = self._program.kill_driver()
        self._program.start(PARALLELISM, resume="latest")
        self._broken(self._driver, f"process {pid} is gone; started again", failed_at)

    def _stop_and_rescale(self) -> None:
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
        self._recovered(act, failed_at, running_at)

    def _recovered(self, act: Act, failed_at: float, running_at: float) -> None:
        restored = self._first("restored", since=failed_at)
        act.seconds = running_at - failed_at
        kind = "savepoint" if act is self._rescale else "checkpoint"
        otherwise = "without a restart" if act in self._servers.values() else "from the beginning"
        act.basis = f"from {kind} {restored['id']}" if restored is not None else otherwise
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
        self._scene.count(self._stage.count())
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

    def _checkpoint_begun_after(self, since: float) -> float | None:
        for line in self._program.journal():
            if line["what"] == "checkpoint" and line["at"] - line["duration_ms"] / 1000 >= since:
                return float(line["at"])
        return None

    # -- the end ------------------------------------------------------------------------------------------------------

    def _conclude(self, verdicts: list[Verdict]) -> int:
        self._console.print(results_table(verdicts))
        if not all(verdict.equal for verdict in verdicts):
            self._console.print("[red]The results differ: this is a bug, please report it.[/]")
            return 1
        times = ", ".join(f"{act.seconds:.1f} s" for act in self._scene.acts if act.seconds is not None)
        events = next(verdict.rows for verdict in verdicts if verdict.stream == "batches")
        self._console.print(
            f"[green]Proved:[/] the job was broken {len(self._scene.acts)} times, each time it ran again "
            f"{self._stage.how} ({times}), and all {events:,} events count exactly once in each of the five branches: "
            f"no row is missing, twice or different ({self._scene.elapsed():.0f} s in all).",
            highlight=False,
        )
        return 0


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The demo's options."""
    parser = argparse.ArgumentParser(description="An order system is broken on purpose and loses nothing.")
    parser.add_argument("--orders", type=_given("orders"), default=20_000, help="how many orders (default 20,000)")
    parser.add_argument(
        "--rate", type=_given("rate"), help=f"events per second (default {_RATE:,}, with --servers {_KAFKA_RATE:,})"
    )
    parser.add_argument("--seed", type=parser_of(Feed, "seed"), default=7, help="the seed of the orders (default 7)")
    parser.add_argument("--servers", action="store_true", help="from Kafka to Kafka and HBase, which are killed too")
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
