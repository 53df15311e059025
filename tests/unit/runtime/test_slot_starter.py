"""Slots are forked by a starter that has imported everything, and are what a new interpreter would have become."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.standalone_cluster import free_ports
from tests.support.waiting import wait_until

# Plays Spark's Python daemon: "forks" has a starter, "orphan" one that was killed, "plain" none.
DAEMON = """
import json, os, signal, sys
from rekindle.protocol import Heartbeat, SlotLaunch, encode_launch
from rekindle.runtime import slot_starter
from rekindle.runtime.slot_starter import Descriptors, SlotStart, fork_starter, memory_limit, start_slot

how, port, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
starter = None
if how != "plain":
    fork_starter()
    (starter,) = map(int, open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split())
if how == "orphan":
    os.kill(starter, signal.SIGKILL)
    os.waitpid(starter, 0)

log = open(os.path.join(directory, "log"), "wb")
stdin_read, stdin_write = os.pipe()
ready_read, ready_write = os.pipe()
environment = {name: value for name, value in os.environ.items() if name != "SECRET"} | {"MINE": "new"}
start = SlotStart(sys.executable, ("word count", "1"), directory, environment, memory_limit())
process = start_slot(start, Descriptors(stdin_read, log.fileno(), ready_write, ()))
told = {"starter": starter, "pid": process.pid, "forked": not hasattr(process, "args")}
while (command := open(f"/proc/{process.pid}/cmdline").read()).split("\\0")[2:3] != ["rekindle.runtime.slot"]:
    pass
told["command"] = command.split("\\0")
told["environment"] = open(f"/proc/{process.pid}/environ").read().split("\\0")
told["folder"] = os.readlink(f"/proc/{process.pid}/cwd")
os.close(stdin_read)
os.close(ready_write)
beat = Heartbeat(1000, 60_000)
launch = SlotLaunch("job", "word count", 1, 1, 2, "127.0.0.1", port, b"secret", beat, directory=directory)
with open(stdin_write, "wb") as stdin:
    stdin.write(encode_launch(launch))
told["ready"] = open(ready_read, "rb").read().decode()
told["status"] = process.wait(60)
print(json.dumps(told), flush=True)
sys.stdin.read()
"""


class Daemon:
    """A process that plays Spark's Python daemon and starts one slot, which cannot reach its driver."""

    def __init__(self, how: str, directory: Path) -> None:
        (port,) = free_ports(1)
        self.process = subprocess.Popen(
            [sys.executable, "-c", DAEMON, how, str(port), os.fspath(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"SECRET": "of-the-daemon", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self.process.stdout is not None
        self.told: dict[str, Any] = json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize(("how", "is_forked"), [("forks", True), ("plain", False), ("orphan", False)])
def test_a_slot_starts_the_same_way_from_a_starter_and_without_one(tmp_path: Path, how: str, is_forked: bool) -> None:
    daemon = Daemon(how, tmp_path)
    daemon.end()
    told = daemon.told
    assert told["forked"] is is_forked
    assert told["command"][1:-1] == ["-m", "rekindle.runtime.slot", "word count", "1"]
    assert "MINE=new" in told["environment"]
    assert "SECRET=of-the-daemon" not in told["environment"]
    assert told["folder"] == os.fspath(tmp_path)
    assert told["ready"] == ""
    assert told["status"] == 1, "the slot's status is told to the one that asked for it"
    assert "cannot reach the driver at 127.0.0.1" in (tmp_path / "log").read_text().splitlines()[-1]


def test_the_starter_ends_with_its_daemon(tmp_path: Path) -> None:
    daemon = Daemon("forks", tmp_path)
    starter = psutil.Process(daemon.told["starter"])
    assert starter.status() != psutil.STATUS_ZOMBIE
    daemon.end()
    wait_until(lambda: not starter.is_running() or starter.status() == psutil.STATUS_ZOMBIE, "the starter ends", 20.0)
