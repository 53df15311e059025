"""Notes by which commands find the drivers of this machine: each server leaves one in a directory of its user's."""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rekindle.web.rest_server import RestServer

_OWNER_ONLY_FOLDER, _OWNER_ONLY_FILE = 0o700, 0o600
_TRIES = 20


class RunningDriver(msgspec.Struct, frozen=True):
    """A driver that serves the REST API: its process, its address and its token."""

    pid: int
    url: str
    token: str | None = None


def runtime_directory() -> Path:
    """Where this user's notes are: `XDG_RUNTIME_DIR`, else a folder for the user among temporary files."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    return Path(base, "rekindle") if base else Path(tempfile.gettempdir(), f"rekindle-{os.getuid()}")


def announce(server: RestServer) -> None:
    """Leave a note until this process ends. Without a directory of the user's own no command finds it by itself."""
    running_drivers()  # removes what killed drivers left
    folder = runtime_directory()
    note = msgspec.json.encode(RunningDriver(os.getpid(), server.url, server.token))
    path = folder / f"{os.getpid()}-{server.port}.json"
    with contextlib.suppress(OSError):
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError, FileExistsError):  # the last driver has just removed the folder
                folder.mkdir(mode=_OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
                if not _is_own(folder):
                    return
                _write(path, note)
                break
        atexit.register(_forget, path, os.getpid())


def _write(path: Path, note: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _OWNER_ONLY_FILE)
    with open(descriptor, "wb") as file:
        file.write(note)


def running_drivers() -> list[RunningDriver]:
    """The drivers of this user on this machine; notes of dead processes are removed."""
    found = []
    for path in _notes(runtime_directory()):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            driver = msgspec.json.decode(path.read_bytes(), type=RunningDriver)
            if _is_alive(driver.pid):
                found.append(driver)
            else:
                path.unlink(missing_ok=True)
    return found


def _notes(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):  # there is none, or the last driver has just removed it
        if _is_own(folder):
            return sorted(folder / name for name in os.listdir(folder) if name.endswith(".json"))
    return []


def _is_own(folder: Path) -> bool:
    """Whether no other user can write notes there: a token would be shown to them."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _forget(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            path.unlink()
            path.parent.rmdir()  # unless it has notes of others
