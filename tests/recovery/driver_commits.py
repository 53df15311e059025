"""The commits of drivers that tests kill, read from their files."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

from tests.support.running_program import RunningProgram

DEADLINE_S = 90.0


def commits(directory: Path) -> set[str]:
    return {path.name for path in (directory / "job").glob("committed-*")}


def wait_for_commits(program: RunningProgram, directory: Path, more: int) -> None:
    """Wait until `more` files are committed that were not at the time of the call."""
    known = commits(directory)
    until = time.monotonic() + DEADLINE_S
    while len(commits(directory) - known) < more:
        assert time.monotonic() < until, f"no commit within {DEADLINE_S} s. {program.story()}"
        assert program.running(), f"the program ended too early. {program.story()}"
        Event().wait(0.01)
