"""The processes of the job: a driver that is started again, its slots, and what its log says about checkpoints."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil

from rekindle.crash_points import CRASH_FILE

_SLOT_MODULE = "rekindle.runtime.slot"
_GUARDIAN = "rekindle-guard"
_VARIABLE = "REKINDLE_CHAOS_RUN"
_REPOSITORY = Path(__file__).resolve().parents[2]
_TRIGGERED = re.compile(r"Triggering checkpoint (\d+)")
_COMPLETED = re.compile(r"Completed checkpoint (\d+)")
_UP = re.compile(r"functions are open")


class Driver:
    """The job's program: one process after the other, each from the latest checkpoint of the one before."""

    def __init__(
        self, arguments: list[str], scratch: Path, crash_file: Path, module: str = "benchmarks.connector_chaos.job"
    ) -> None:
        self._module = module
        self._arguments = arguments  # without the parallelism
        self._scratch = scratch
        self._run = uuid.uuid4().hex
        self.crash_file = crash_file
        self.log: list[str] = []
        self.triggered = 0
        self.completed = 0
        self.completions = 0
        self.starts = 0  # how often functions were opened
        self.parallelism = 0
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []

    def start(self, parallelism: int, *more: str) -> None:
        """Start a driver process."""
        self.parallelism = parallelism
        command = [sys.executable, "-m", self._module, *self._arguments, str(parallelism), *more]
        environment = os.environ | {
            _VARIABLE: self._run,
            CRASH_FILE: os.fspath(self.crash_file),
            "TMPDIR": os.fspath(self._scratch),
            "SPARK_LOCAL_DIRS": os.fspath(self._scratch),
        }
        self._process = subprocess.Popen(
            command,
            cwd=_REPOSITORY,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.log.append(line.rstrip("\n"))
            if found := _TRIGGERED.search(line):
                self.triggered = int(found[1])
            elif found := _COMPLETED.search(line):
                self.completed = int(found[1])
                self.completions += 1
            elif _UP.search(line):
                self.starts += 1

    @property
    def pid(self) -> int:
        """The process id of the driver."""
        assert self._process is not None
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the driver runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill the driver (SIGKILL), and wait until its slots are gone too."""
        assert self._process is not None
        self._process.kill()
        self.wait()

    def wait(self, timeout_s: float = 60) -> int:
        """Wait for the driver's end, and until all of its processes are gone."""
        assert self._process is not None
        status = self._process.wait(timeout_s)
        wait_for(lambda: not self._processes(), 60, "the processes of a dead driver to go")
        return status

    def end(self) -> None:
        """End the driver and everything that it started."""
        if self.is_running():
            assert self._process is not None
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # the slots end by themselves when their driver is gone
                process.kill()

    def slots(self) -> list[psutil.Process]:
        """The living slots."""
        found = [each for each in self._processes() if _SLOT_MODULE in (each.info["cmdline"] or ())]
        return [each for each in found if each.info["name"] != _GUARDIAN]

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["environ", "cmdline", "name", "status"]):
            ours = (process.info["environ"] or {}).get(_VARIABLE) == self._run
            if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found

    def tail(self, lines: int = 60) -> str:
        """The last lines of its log."""
        return "\n".join(self.log[-lines:])


def wait_for(condition: Callable[[], object], deadline_s: float, what: str) -> None:
    """Wait until a condition holds; AssertionError after the deadline."""
    until = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"Waited {deadline_s:.0f} s for {what}.")
        time.sleep(0.02)
