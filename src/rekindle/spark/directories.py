"""Directories that only this user may read, and that go with the processes that use them.

A locked file in each says that somebody lives who uses it; a process that is handed the lock's descriptor shares it.
What killed processes left is removed by whoever makes the next directory of that kind: a lock ends with its process,
whatever number that had.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass

_ALIVE_FILE = "alive"


@dataclass(frozen=True)
class OwnDirectory:
    """A directory with mode 0700, and the descriptor of its lock: pass it on to processes that use the directory."""

    path: str
    lock: int

    def let_go(self) -> None:
        """From here on the directory belongs to those that the lock was passed on to."""
        os.close(self.lock)

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.let_go()


def make_directory(kind: str, name: str, parent: str) -> OwnDirectory:
    """A new directory in `parent`; those of this kind whose processes have all ended are removed first."""
    remove_abandoned(kind, parent)
    path = tempfile.mkdtemp(prefix=f"{kind}{name}-", dir=parent)
    return OwnDirectory(path, _lock(path))


def _lock(directory: str) -> int:
    path = os.path.join(directory, _ALIVE_FILE)
    alive = os.open(f"{path}.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(alive, fcntl.LOCK_EX)
    # Under its name only when it is locked: another process may be looking for abandoned directories right now.
    os.rename(f"{path}.new", path)
    return alive


def remove_abandoned(kind: str, parent: str) -> None:
    """Removes this user's directories of a kind that nobody uses any more."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            if entry.name.startswith(kind) and _is_ours(entry.stat(follow_symlinks=False)):
                _remove_if_abandoned(entry.path)


def _is_ours(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _remove_if_abandoned(directory: str) -> None:
    with contextlib.suppress(OSError), open(os.path.join(directory, _ALIVE_FILE), "rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
