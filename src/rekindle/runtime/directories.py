"""Directories that only this user may read, and that are removed with the processes that use them.

A locked file in each directory shows that a process still uses it; a process that inherits the lock's descriptor
shares the lock. The kernel releases a lock with its last process, so `make_directory` can find and remove the
directories that killed processes left, without comparing process ids, which are reused.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass

from rekindle.runtime.copies_keeper import ALIVE_FILE


@dataclass(frozen=True)
class OwnDirectory:
    """A directory with mode 0700, and the descriptor of its lock, for processes that use the directory to inherit."""

    path: str
    lock: int

    def release_lock(self) -> None:
        """Close this process's descriptor of the lock: processes that inherited it keep the directory."""
        os.close(self.lock)

    def remove(self) -> None:
        """Remove the directory with its content, and release the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.release_lock()


def make_directory(kind: str, name: str, parent: str) -> OwnDirectory:
    """Make a directory in `parent`, after removing those of this kind whose processes have all ended."""
    remove_abandoned(kind, parent)
    path = tempfile.mkdtemp(prefix=f"{kind}{name}-", dir=parent)
    return OwnDirectory(path, _lock(path))


def share_directory(kind: str, name: str, parent: str) -> OwnDirectory:
    """Make or open a directory in `parent` that several processes use, after removing those that none uses."""
    remove_abandoned(kind, parent)
    path = os.path.join(parent, kind + name)
    while True:
        with contextlib.suppress(FileNotFoundError):  # somebody has just removed it
            os.makedirs(path, mode=0o700, exist_ok=True)
            if not _is_ours(os.stat(path, follow_symlinks=False)):
                raise PermissionError(errno.EPERM, "it belongs to another user", path)
            alive = os.open(os.path.join(path, ALIVE_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(alive, fcntl.LOCK_SH)
            if os.stat(os.path.join(path, ALIVE_FILE)).st_ino == os.fstat(alive).st_ino:
                return OwnDirectory(path, alive)
            os.close(alive)


def _lock(directory: str) -> int:
    path = os.path.join(directory, ALIVE_FILE)
    alive = os.open(f"{path}.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(alive, fcntl.LOCK_EX)
    # It gets its name once it is locked: another process may be looking for abandoned directories right now.
    os.rename(f"{path}.new", path)
    return alive


def remove_abandoned(kind: str, parent: str) -> None:
    """Remove this user's directories of this kind that no process uses any more."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            if entry.name.startswith(kind) and _is_ours(entry.stat(follow_symlinks=False)):
                _remove_if_abandoned(entry.path)


def _is_ours(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _remove_if_abandoned(directory: str) -> None:
    with contextlib.suppress(OSError), open(os.path.join(directory, ALIVE_FILE), "rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
