"""Folders of slots in directories that the user chose, for RocksDB: readable by their user only, and never left behind.

A slot notes its folder in its own directory, so that its guardian removes it; without its guardian the slot does that
itself. Where both were killed the folder's lock is free, and whoever comes next removes it: another slot of the host
when it starts or ends, or the driver at the end of the job.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
from collections.abc import Iterable, Sequence
from random import choice
from typing import Final

from rekindle.runtime.directories import OwnDirectory, make_directory, remove_abandoned

_KIND: Final = "rekindle-state-"
#: The file in a slot's directory with the folders elsewhere that are removed with it.
_NOTES: Final = "scratch-folders"
#: A default access list: its version, then tag, permissions and no id for owner, group and others.
_OWNER_ONLY: Final = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, permissions, 0xFFFFFFFF) for tag, permissions in ((0x01, 7), (0x04, 0), (0x20, 0))
)


def make_scratch_folder(slot_directory: str, directories: Sequence[str]) -> OwnDirectory:
    """Make a folder in one of the directories, for as long as this process lives; abandoned ones are removed."""
    for directory in directories:
        os.makedirs(directory, exist_ok=True)
    remove_abandoned_folders(directories)
    own = make_directory(_KIND, "", choice(directories))
    with open(os.path.join(slot_directory, _NOTES), "a", encoding="utf-8") as notes:
        notes.write(own.path + "\n")
    return own


def remove_scratch_folders(slot_directory: str) -> None:
    """Remove the folders of an ended slot, and those beside them that no process uses any more."""
    with contextlib.suppress(OSError), open(os.path.join(slot_directory, _NOTES), encoding="utf-8") as notes:
        folders = notes.read().splitlines()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        remove_abandoned_folders({os.path.dirname(folder) for folder in folders})


def remove_abandoned_folders(directories: Iterable[str]) -> None:
    """Remove the folders whose slot and guardian were both killed."""
    for directory in directories:
        remove_abandoned(_KIND, directory)


def keep_from_others(folder: str) -> None:
    """Let only the owner read what is made in a folder from now on, also by libraries that ask for other modes.

    A file system without access lists leaves the files as they are made: the folder itself is closed in any case.
    """
    os.chmod(folder, 0o700)
    with contextlib.suppress(OSError):
        os.setxattr(folder, "system.posix_acl_default", _OWNER_ONLY)
