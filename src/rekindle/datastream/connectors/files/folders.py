"""Folders and files of a sink, durably, with the disk's faults in words."""

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
    """Turns what the operating system says about writing to `path` into a sentence."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.errno in _FULL:
            sentence = f"The disk is full ({reason}) while writing {path}: make room, then let the job go on."
        elif error.errno in _REFUSED:
            sentence = (
                f"The sink's directory cannot be written ({reason}: {path}): make it writable for the user that runs "
                "the job, or name another one."
            )
        elif error.errno in (errno.ENOTDIR, errno.EEXIST):
            sentence = f"{path} cannot be a directory of the sink, there is a file in its place: name another one."
        else:
            sentence = f"Cannot write {path}: {reason}."
        raise ConnectorError(sentence) from error


def make_folders(folder: str) -> None:
    """The folder and those above it, each synced into its parent."""
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
    """What was made, renamed or removed in a folder is so after a crash of the machine, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
