"""One server of a kind for all processes of a test run: the first one starts it, and it ends with the last one.

The processes meet in a folder of the run, one per kind of server (`shareable`):

- ``joining``: locked by the process that joins, and by the supervisor from its decision to end until its end;
- ``running``: locked by the supervisor as long as it lives;
- ``users/``: an empty file per process that uses the server, named after its id and the time of its start;
- ``address.json``: written when the server answers; ``failure`` when it did not start.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tools.servers.fetch import file_lock
from tools.servers.server_error import ServerError
from tools.servers.shareable import SHAREABLE
from tools.servers.waiting import becomes_true

_CLONE = Path(__file__).resolve().parents[2]
_START_DEADLINE_S = 200.0
_END_DEADLINE_S = 90.0


class SharedFolder:
    """The folder in which the users of a server and its supervisor meet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.joining = folder / "joining"
        self.running = folder / "running"
        self.users = folder / "users"
        self.address = folder / "address.json"
        self.failure = folder / "failure"

    def living_users(self) -> list[Path]:
        """The files of those users whose process still runs."""
        return [user for user in self.users.iterdir() if _is_alive(user.name)]

    def has_supervisor(self) -> bool:
        """Whether the supervisor lives. Several processes may ask at once: the lock they try is a shared one."""
        with open(self.running, "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


@contextlib.contextmanager
def shared_server(name: str, folder: Path) -> Iterator[Any]:
    """Use the run's server of this name inside the block; the first process starts it, and it ends with the last."""
    place = SharedFolder(folder / name)
    place.users.mkdir(parents=True, exist_ok=True)
    own_file = place.users / _user_name(psutil.Process())
    try:
        yield _join(name, place, own_file)
    finally:
        own_file.unlink(missing_ok=True)
        if not place.living_users():
            becomes_true(lambda: not place.has_supervisor(), _END_DEADLINE_S)


def _join(name: str, place: SharedFolder, own_file: Path) -> Any:
    server = SHAREABLE[name]
    with file_lock(place.joining):
        server.fetch()
        own_file.touch()
        if not place.has_supervisor():
            _start_supervisor(name, place)
        answer = json.loads(place.address.read_text())
    return server.access(**answer)


def _start_supervisor(name: str, place: SharedFolder) -> None:
    """Start the supervisor out of reach of this terminal's Ctrl-C, and return when its server answers."""
    for stale in (place.address, place.failure):
        stale.unlink(missing_ok=True)
    log = place.folder / "supervisor.log"
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.servers.supervisor", name, os.fspath(place.folder)],
            cwd=_CLONE,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    becomes_true(lambda: place.address.exists() or process.poll() is not None, _START_DEADLINE_S)
    if place.failure.exists():
        raise ServerError(place.failure.read_text())
    if not place.address.exists():
        raise ServerError(f"The shared {SHAREABLE[name].title} did not start; see {log}.")


def _user_name(process: psutil.Process) -> str:
    return f"{process.pid}-{process.create_time()}"


def _is_alive(user_name: str) -> bool:
    """Whether this very process runs: a zombie does not, and one that was given its id later is another."""
    try:
        process = psutil.Process(int(user_name.partition("-")[0]))
        return _user_name(process) == user_name and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
