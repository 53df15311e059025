"""Run the order system.

    python -m examples.orders --orders 2000                     # prints every result
    python -m examples.orders --sink files --directory shop     # writes each result once, into files below shop/output
    python -m examples.orders --sink files --directory shop --resume latest --parallelism 3

Ctrl-C cancels the job; its last checkpoint stays, and `--resume latest` continues from it. SIGTERM stops the job with a
savepoint and prints its path; `--resume PATH` and `--resume latest` continue from it. A resumed job may have other
settings, also another parallelism, but must have the same feed.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from examples.orders.ends import create_tables
from examples.orders.faults import Fault
from examples.orders.job import build, environment
from examples.orders.journal import Journal, Watch
from examples.orders.options import add_options, chosen
from examples.orders.settings import Feed, Settings
from rekindle.common import JobClient

_STOP_DEADLINE_S = 600


class StopRequested(BaseException):
    """The program received SIGTERM."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the job until it ends, is cancelled, or is stopped."""
    arguments = parse_arguments(words)
    settings, feed = chosen(Settings, arguments), chosen(Feed, arguments)
    more = {} if sys.stderr.isatty() else {"rekindle.progress": "off"}
    if arguments.master is not None:
        more["rekindle.master"] = arguments.master
    if arguments.resume is not None:
        more["execution.state-recovery.path"] = arguments.resume
    signal.signal(signal.SIGTERM, _request_stop)
    journal = Journal(arguments.journal)
    create_tables(settings)
    env = environment(settings, **more)
    build(env, settings, feed, arguments.fail)
    try:
        client = env.execute_async(settings.job_name)
        with Watch(client, journal):
            return wait_for_end(client, journal)
    except StopRequested:
        return 128 + signal.SIGTERM


def wait_for_end(client: JobClient, journal: Journal) -> int:
    """Wait for the end of the job and return the exit code; a job that fails raises its error."""
    try:
        client.get_job_execution_result().result()
    except StopRequested:
        savepoint = client.stop_with_savepoint(False).result(_STOP_DEADLINE_S)
        client.get_job_execution_result().result(_STOP_DEADLINE_S)
        journal.write("stopped", savepoint=savepoint)
        print(f"Stopped with a savepoint: go on with --resume {savepoint}", flush=True)
    except KeyboardInterrupt:
        client.cancel().result(_STOP_DEADLINE_S)
        print("Cancelled: go on with --resume latest", flush=True)
        return 128 + signal.SIGINT
    return 0


def _request_stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise StopRequested


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The program's options: every setting, and those of a single run."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.orders",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--resume", metavar="PATH", help="continue from a checkpoint or savepoint, or from latest")
    parser.add_argument("--master", help="the Spark master (default: local[*])")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write down what happens, as lines of JSON")
    parser.add_argument(
        "--fail",
        action="append",
        default=[],
        type=_fault,
        metavar="BRANCH:RECORD[:ATTEMPT[:CHECKPOINTS]]",
        help="raise before a branch at a record of an attempt, after CHECKPOINTS in it; may be given several times",
    )
    add_options(parser, Settings, "the job")
    add_options(parser, Feed, "the generated orders")
    return parser.parse_args(words)


def _fault(text: str) -> Fault:
    try:
        return Fault.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
