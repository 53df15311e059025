"""The order system with a live source and a probe at the end of one branch; the benchmark starts, breaks and stops it.

    python -m benchmarks.recovery.program <folder> [--parallelism 3] [--master local[2]] [--resume latest]

The other streams go to files, exactly once, as in the demo.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from benchmarks.recovery.live import LiveClock, LiveOrderSource
from benchmarks.recovery.probe import ProbeSink
from examples.orders.__main__ import StopRequested, wait_for_end
from examples.orders.ends import ends
from examples.orders.job import connect, environment, order_events
from examples.orders.journal import Journal, Watch
from examples.orders.settings import Feed, Settings, millis
from rekindle.datastream.connectors.sink_api import Sink

YEAR_S = 365 * 86_400.0


@dataclass(frozen=True)
class Load:
    """The size of the job's input."""

    backlog_orders: int
    events_per_second: float
    checkpoint_interval_s: float

    def feed(self) -> Feed:
        return Feed(rate=None)

    def clock(self, folder: Path) -> LiveClock:
        per_hour = self.feed().orders_per_hour
        return LiveClock(self.backlog_orders, per_hour, self.events_per_second, folder / "live-since")

    def settings(self, folder: Path) -> Settings:
        """The demo's settings, but no state is ever forgotten, so that it becomes large."""
        return Settings(
            directory=str(folder),
            checkpoint_interval_s=self.checkpoint_interval_s,
            checkpoint_pause_s=0.1,
            restart_attempts=1_000_000,
            restart_delay_s=0.0,
            duplicate_horizon_s=YEAR_S,
            order_retention_s=YEAR_S,
            order_lifetime_s=YEAR_S,
            sink="files",
        )

    def write(self, folder: Path) -> None:
        (folder / "load.json").write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(folder: Path) -> Load:
        return Load(**json.loads((folder / "load.json").read_text()))


class _LogToJournal(logging.Handler):
    """Writes the engine's log messages, with their time, to the journal: they include the steps of a recovery."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.INFO)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        self._journal.write("log", text=record.getMessage().partition("\n")[0])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery.program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--resume")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    journal = Journal(folder / "journal")
    journal.write("log", text="Program: imported.")
    logger = logging.getLogger("rekindle")
    logger.setLevel(logging.INFO)
    logger.addHandler(_LogToJournal(journal))
    signal.signal(signal.SIGTERM, _request_stop)
    load = Load.read(folder)
    settings = replace(load.settings(folder), parallelism=arguments.parallelism)
    more = {"rekindle.progress": "off", "rekindle.master": arguments.master}
    if arguments.resume is not None:
        more["execution.state-recovery.path"] = arguments.resume
    env = environment(settings, **more)
    source = LiveOrderSource(load.feed(), millis(settings.out_of_orderness_s), load.clock(folder))
    files = ends(replace(settings, sink="files", directory=str(folder)))

    def probed(stream: str) -> Sink[Any]:
        return ProbeSink(folder) if stream == "statuses" else files(stream)

    connect(order_events(env, settings, source), settings, probed)
    client = env.execute_async(settings.job_name)
    with Watch(client, journal):
        return wait_for_end(client, journal)


def _request_stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise StopRequested


if __name__ == "__main__":
    sys.exit(main())
