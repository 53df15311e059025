"""Runs programs as users do, in processes of their own, and lists, signals and counts all their descendants."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

import psutil

from rekindle.config import STATE_BACKEND
from tests.support.slot_processes import SLOT_MODULE

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = REPOSITORY / "tests" / "integration" / "programs"
#: Every descendant of a program inherits this variable.
PROGRAM_VARIABLE = "REKINDLE_TEST_PROGRAM"
DEADLINE_S = 150.0


class RunningProgram:
    """A Python program of `tests/integration/programs`, with a temporary folder of its own.

    A name without `.py` is a module of the clone, as in `python -m examples.transfers`.
    """

    def __init__(self, program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._id = uuid.uuid4().hex
        # A short path: slots put unix sockets into it.
        self.temporary = Path(tempfile.mkdtemp(prefix="rk-test-"))
        self._process = subprocess.Popen(
            [sys.executable, *_named(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=self.temporary,
            env=os.environ
            | {
                PROGRAM_VARIABLE: self._id,
                "PYTHONPATH": _python_path(program),
                "TMPDIR": os.fspath(self.temporary),
                "SPARK_LOCAL_DIRS": os.fspath(self.temporary),
            }
            | dict(environment or {}),
        )
        self.out: list[str] = []
        self.errors: list[str] = []
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((self._process.stdout, self.out), (self._process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """The process id of the driver's Python process."""
        return self._process.pid

    def running(self) -> bool:
        """Whether the driver's Python process runs."""
        return self._process.poll() is None

    # -- its output ---------------------------------------------------------------------------------------------------

    def wait_for_line(self, *parts: str, deadline_s: float = DEADLINE_S) -> str:
        """Wait for the first line of its output that contains all of these parts, and return it."""
        until = time.monotonic() + deadline_s
        with self._changed:
            while True:
                if found := next((line for line in self.out if all(part in line for part in parts)), None):
                    return found
                left_s = until - time.monotonic()
                ended = not any(reader.is_alive() for reader in self._readers)
                assert left_s > 0, f"The program did not say {parts}. {self.story()}"
                assert not ended, f"The program ended and did not say {parts}. {self.story()}"
                self._changed.wait(min(left_s, 0.5))

    def wait(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait for its end and return its exit status, after all of its output was read."""
        try:
            status = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"The program did not end within {deadline_s} s. {self.story()}") from None
        for reader in self._readers:
            reader.join(deadline_s)
        return status

    def _read(self, stream: IO[str] | None, lines: list[str]) -> None:
        assert stream is not None
        for line in stream:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def story(self) -> str:
        """All of its output so far, for messages."""
        return "\n".join(["It wrote:", *self.out, "and as errors:", *self.errors])

    # -- its processes ------------------------------------------------------------------------------------------------

    def processes(self) -> list[psutil.Process]:
        """All its living processes, itself included."""
        return processes_of(self._id)

    def slots(self) -> list[psutil.Process]:
        """Its slots in the order of their indices, without guardians."""
        slots = [each for each in self.processes() if SLOT_MODULE in (each.info["cmdline"] or ())]
        return sorted(
            (each for each in slots if each.info["name"] != "rekindle-guard"),
            key=lambda each: int(each.info["cmdline"][-1]),
        )

    def java(self, main_class: str) -> list[psutil.Process]:
        """Its Java processes that run this class."""
        return [each for each in self.processes() if any(main_class in part for part in each.info["cmdline"] or ())]

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the driver's Python process."""
        self._process.send_signal(number)

    def interrupt(self) -> None:
        """Send Ctrl-C as a terminal does: to every process of the foreground group."""
        os.killpg(self._process.pid, signal.SIGINT)

    # -- the end ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> RunningProgram:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        shutil.rmtree(self.temporary, ignore_errors=True)


def processes_of(program_id: str) -> list[psutil.Process]:
    """All living processes that have inherited PROGRAM_VARIABLE with this value."""
    found = []
    for process in psutil.process_iter(["environ", "cmdline", "name", "status"]):
        ours = (process.info["environ"] or {}).get(PROGRAM_VARIABLE) == program_id
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def _python_path(program: str) -> str:
    source = os.fspath(REPOSITORY / "src")
    return source if program.endswith(".py") else f"{source}:{REPOSITORY}"


def _named(program: str) -> list[str]:
    words = [os.fspath(PROGRAMS / program)] if program.endswith(".py") else ["-m", program]
    is_usual = STATE_BACKEND.default == "hashmap"
    with_backend = [os.fspath(Path(__file__).with_name("on_backend.py")), STATE_BACKEND.default]
    return words if is_usual else [*with_backend, *words]


def seconds_until_gone(processes: list[psutil.Process], since: float, deadline_s: float) -> float:
    """The time from `since` (monotonic) until the last process ended; fails when one is left at the deadline."""
    while alive := [each for each in processes if is_alive(each)]:
        if time.monotonic() - since > deadline_s:
            raise AssertionError(f"After {deadline_s} s these were alive: {[command_of(each) for each in alive]}")
        threading.Event().wait(0.01)
    return time.monotonic() - since


def is_alive(process: psutil.Process) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def command_of(process: psutil.Process) -> str:
    """A process as text, for messages."""
    try:
        return f"{process.pid} {' '.join(process.cmdline())[-200:]}"
    except psutil.NoSuchProcess:
        return str(process.pid)


@contextlib.contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    """Stop a process inside the block; its connections stay open, as when a network is cut."""
    process.suspend()
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
