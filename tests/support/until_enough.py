"""Runs a program that never ends in this process, and cancels its job when it has printed enough."""

from __future__ import annotations

import io
import runpy
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekindle.datastream.find_launcher import launching_with, load_engine
from rekindle.errors import JobCancelledError

Enough = Callable[[list[str]], bool]


class _Printed(io.TextIOBase):
    """Standard output that another thread can wait for."""

    def __init__(self) -> None:
        self._text = ""
        self._over = False
        self._changed = threading.Condition()

    def write(self, text: str) -> int:
        with self._changed:
            self._text += text
            self._changed.notify_all()
        return len(text)

    def lines(self) -> list[str]:
        """The complete lines so far."""
        return self._text.rpartition("\n")[0].splitlines()

    def wait_until(self, enough: Enough, deadline_s: float) -> None:
        until = time.monotonic() + deadline_s
        with self._changed:
            while not enough(self.lines()) and not self._over and time.monotonic() < until:
                self._changed.wait(0.5)

    def end(self) -> None:
        """Let nobody wait any longer: the program is over."""
        with self._changed:
            self._over = True
            self._changed.notify_all()


class _Noted:
    """The engine, with the jobs that it has launched."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []

    def launch(self, program: Any) -> Any:
        self.jobs.append(load_engine().launch(program))
        return self.jobs[-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(load_engine(), name)


def run_until(program: Path, enough: Enough, deadline_s: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a program on the main thread until it has printed enough, or the deadline has passed; return its lines."""
    printed, engine = _Printed(), _Noted()

    def watch() -> None:
        printed.wait_until(enough, deadline_s)
        for job in engine.jobs:  # of those that have ended nothing is left to cancel
            job.cancel()

    watching = threading.Thread(target=watch, daemon=True)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(sys, "stdout", printed)
    watching.start()
    try:
        with launching_with(engine), pytest.raises(JobCancelledError):  # type: ignore[arg-type]
            runpy.run_path(str(program), run_name="__main__")
    finally:
        printed.end()
        watching.join()
    return printed.lines()
