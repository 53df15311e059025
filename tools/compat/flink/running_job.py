"""A job of ours that runs while a comparison looks at it, and the count of what passed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_DEADLINE_S = 600


@dataclass(frozen=True)
class RunningJob:
    """A running job: its id, where its REST API is, and its directory."""

    id: str
    port: int
    directory: str
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """The address of the REST API."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str) -> Any:
        """The answer to a request."""
        with urllib.request.urlopen(f"{self.url}/v1/{path}", timeout=30) as answer:
            return json.loads(answer.read())

    def wait_for(self, what: str, found: Callable[[], bool]) -> None:
        """Wait until something is true of the job."""
        deadline = time.monotonic() + _DEADLINE_S
        while not _holds(found):
            if time.monotonic() > deadline or self.process.poll() not in (None, 0):
                raise TimeoutError(f"The job did not come to this: {what}.")
            time.sleep(0.2)

    def ends(self) -> bool:
        """Whether the job's process ends in time."""
        try:
            self.process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            return False
        return True


def _holds(found: Callable[[], bool]) -> bool:
    try:
        return found()
    except OSError:  # nobody listens yet
        return False


@contextmanager
def running_job() -> Iterator[RunningJob]:
    """Start the endless job and wait for its first checkpoint; kill it afterwards if it still runs."""
    with tempfile.TemporaryDirectory(prefix="rekindle-compat-") as directory:
        port = _free_port()
        words = [sys.executable, "-m", "tools.compat.flink.endless_job", directory, str(port)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        job = RunningJob("", port, directory, process)
        try:
            job.wait_for("it runs", lambda: bool(job.ask("jobs")["jobs"]))
            job = RunningJob(job.ask("jobs")["jobs"][0]["id"], port, directory, process)
            job.wait_for(
                "a checkpoint is complete", lambda: job.ask(f"jobs/{job.id}/checkpoints")["counts"]["completed"] > 0
            )
            yield job
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Tally:
    """Counts what passed and what failed."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def check(self, name: str, holds: bool, otherwise: str = "") -> None:
        """Count one comparison and say how it went."""
        (self.passed if holds else self.failed).append(name)
        print(f"{'passed' if holds else 'FAILED'}  {name}{'' if holds else f': {otherwise}'}", flush=True)

    def result(self) -> int:
        """Print the counts; the exit code."""
        print(f"{len(self.passed)} passed, {len(self.failed)} failed", flush=True)
        return 1 if self.failed else 0
