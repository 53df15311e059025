"""The keeper of the local copies of a job's state: the guardian of an ended slot stays, and removes them with the job.

Copies outlive slots, attempts and executors, and go with the job. So each guardian holds a connection to the driver
that lives as long as the job. When its slot has ended, one guardian per host and job waits for the end of that
connection, then removes the folder; a lock in the folder tells the others that there is a keeper already. If a keeper
was killed, the next slot that starts on the host removes the folder: no process holds the lock of `ALIVE_FILE`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import ExitStack, suppress
from typing import Final

from rekindle.wire import Connection

#: The file of a directory whose lock shows that a process still uses the directory.
ALIVE_FILE: Final = "alive"
_KEEPER_FILE: Final = "keeper"


def keep_until_job_ends(folder: str, job: Connection) -> None:
    """Wait for the end of the job and remove its folder; return at once if another guardian does it."""
    with ExitStack() as held, suppress(OSError):  # a folder that is gone needs no keeper, a lock that is held has one
        # First the lock that keeps others from removing the folder, so that it is held when they see a keeper.
        alive = _open(held, folder, ALIVE_FILE, os.O_RDWR)
        fcntl.flock(alive, fcntl.LOCK_SH)
        keeper = _open(held, folder, _KEEPER_FILE, os.O_RDWR | os.O_CREAT)
        fcntl.flock(keeper, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):
            job.receive()  # the driver sends nothing: this returns when the connection ends
        shutil.rmtree(folder, ignore_errors=True)


def _open(held: ExitStack, folder: str, name: str, flags: int) -> int:
    """Open a file of the folder until the end of the block."""
    descriptor = os.open(os.path.join(folder, name), flags | os.O_CLOEXEC, 0o600)
    held.callback(os.close, descriptor)
    return descriptor
