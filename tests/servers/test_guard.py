"""The guard ends a server when the server's starter dies, and passes on the server's own end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.running_program import seconds_until_gone
from tools.servers import guard

# Starts a guard whose server sleeps, and says the process ids of both.
STARTER = f"""
import os, subprocess, sys
guard = subprocess.Popen(
    [sys.executable, {guard.__file__!r}, str(os.getpid()), "sleep", "300"], stdout=subprocess.PIPE, text=True
)
print(guard.pid, guard.stdout.readline().strip(), flush=True)
guard.wait()
"""
GONE_DEADLINE_S = 10.0


@pytest.fixture
def started() -> tuple[psutil.Process, psutil.Process, psutil.Process]:
    """A starter, its guard and its server."""
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    with starter.stdout as answer:
        guard_pid, server_pid = map(int, answer.readline().split())
    return psutil.Process(starter.pid), psutil.Process(guard_pid), psutil.Process(server_pid)


@pytest.mark.parametrize("killed", [0, 1, 2], ids=["starter", "guard", "server"])
def test_all_three_end_when_one_is_killed(started: tuple[psutil.Process, ...], killed: int) -> None:
    started[killed].kill()

    seconds_until_gone(list(started), time.monotonic(), GONE_DEADLINE_S)


def test_the_guard_ends_with_the_servers_status(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with open(log, "wb") as output:
        ended = subprocess.run(
            [sys.executable, guard.__file__, str(os.getpid()), "sh", "-c", "echo words; exit 7"],
            stdout=subprocess.PIPE,
            stderr=output,
            check=False,
        )

    assert ended.returncode == 7
    assert ended.stdout.strip().isdigit()
    assert log.read_text() == "words\n"
