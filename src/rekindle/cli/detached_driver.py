"""Starts the driver of a program in a session of its own, which outlives the terminal, and waits for its job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekindle.cli.exit_codes import CommandError, ExitCode

if TYPE_CHECKING:
    from rekindle.cli.launchers import StartedJob

_LINES_OF_A_FAILURE = 30
_OWNER_ONLY = 0o600


@dataclass(frozen=True)
class DetachedDriver:
    """A driver that runs by itself: its process, its log, and the first job that it started."""

    pid: int
    log: Path
    job: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """The driver for machines."""
        return {**self.job, "pid": self.pid, "log": os.fspath(self.log)}


def log_file(program: str, wanted: str | None) -> Path:
    """The file for a driver's log: the given one, else a new one in the user's folder for such files."""
    if wanted is not None:
        return Path(wanted).absolute()
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    stem = Path(program).stem or "program"
    return Path(state, "rekindle", "logs", f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log")


def start_detached(arguments: Sequence[str], log: Path) -> DetachedDriver:
    """Start `rekindle run` with these arguments by itself, and wait until its job is started.

    CommandError: the program ended without a job; its last lines say why.
    """
    descriptor = _open_log(log)
    receiving, sending = os.pipe()
    with open(receiving, encoding="utf-8") as reports:
        try:
            # Unbuffered, so that the log is up to date, and without the working directory on the path.
            process = subprocess.Popen(
                [sys.executable, "-u", "-P", "-m", "rekindle", "run", "--report-fd", str(sending), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
                pass_fds=(sending,),
            )
        finally:
            os.close(sending)
            os.close(descriptor)
        try:
            first = reports.readline()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            raise
    if not first:
        raise _no_job(process.wait(), log)
    return DetachedDriver(process.pid, log, json.loads(first))


def _open_log(log: Path) -> int:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWNER_ONLY)
    except OSError as error:
        raise CommandError(
            f"The log '{log}' cannot be written ({error.strerror}): name another file with --log.", ExitCode.USAGE
        ) from None


def _no_job(status: int, log: Path) -> CommandError:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES_OF_A_FAILURE:]
    written = "".join(f"{line}\n" for line in lines)
    if status == 0:
        return CommandError(f"{written}The program ended without a job: does it call execute()? Its log is {log}.")
    code = status if status > 0 else ExitCode.FAILED  # a driver that was killed has a negative one
    return CommandError(f"{written}The program failed before its job was started: its log is {log}.", code)


def report_to(descriptor: int) -> Callable[[StartedJob], None]:
    """Tell who waits in `start_detached` of the first job, over an inherited pipe."""
    os.set_inheritable(descriptor, False)
    told: list[StartedJob] = []

    def report(job: StartedJob) -> None:
        if not told:
            told.append(job)
            with open(descriptor, "w", encoding="utf-8") as reports:
                reports.write(json.dumps(job.document()) + "\n")

    return report
