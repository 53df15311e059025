"""Durable creation of a sink's folders, and error messages for failed writes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rekindle.errors import ConnectorError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def disk_faults(path: str) -> Iterator[None]:
    """Turn an OSError of writing to `path` into a ConnectorError that says what to do."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.errno in _FULL:
            message = f"The disk is full ({reason}) while writing {path}: make room, then let the job go on."
        elif error.errno in _REFUSED:
            message = (
                f"The sink's directory cannot be written ({reason}: {path}): make it writable for the user that runs "
                "the job, or name another one."
            )
        elif error.errno in (errno.ENOTDIR, errno.EEXIST):
            message = f"{path} cannot be a directory of the sink, there is a file in its place: name another one."
        else:
            message = f"Cannot write {path}: {reason}."
        raise ConnectorError(message) from error


def make_folders(folder: str) -> None:
    """Create the folder and its missing parents, and sync each into its parent."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for new in reversed(missing):
        try:
            os.mkdir(new)
        except FileExistsError:
            if not os.path.isdir(new):
                raise
        sync_folder(os.path.dirname(new))


def sync_folder(folder: str) -> None:
    """Sync a folder, so that creations, renames and removals in it survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
