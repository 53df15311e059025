"""The second phase of the file sink: a staged file becomes visible by a rename, and leftovers are swept (I18)."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Any

from rekindle.datastream.connectors.files.folders import disk_faults, sync_folder
from rekindle.datastream.connectors.files.names import InProgressName, Writing
from rekindle.datastream.connectors.files.part_files import Part
from rekindle.datastream.connectors.sink_api import CommitRequest, Committer, CommitterInitContext
from rekindle.errors import ConnectorError

_LOG = logging.getLogger(__name__)


def committable_of(part: Part) -> dict[str, Any]:
    """What a checkpoint keeps of a finished file: plain data, with its final name decided."""
    return {"folder": part.folder, "staged": part.staging, "name": part.name, "size": part.size}


class FileCommitter(Committer[dict[str, Any]]):
    """Renames what was staged. Idempotent: a file that is already there under its own, unique name was committed."""

    def __init__(self, base_path: str, context: CommitterInitContext) -> None:
        self._base_path = base_path
        self._writing = Writing.by(context)
        self._first_attempt = context.attempt_number == 0

    def commit(self, requests: list[CommitRequest[dict[str, Any]]]) -> None:
        """Rename all, then sync each folder once."""
        folders: dict[str, None] = {}
        for request in requests:
            committable = request.get_committable()
            if not _make_visible(**committable):
                request.signal_already_committed()
            folders[committable["folder"]] = None
        for folder in folders:
            with disk_faults(folder):
                sync_folder(folder)

    def sweep(self) -> None:
        """Remove what older attempts of this timeline have staged: what counted of it was committed at the restore."""
        if self._first_attempt:
            return
        swept = 0
        for folder, _, names in os.walk(self._base_path):
            for name in names:
                found = InProgressName.parse(name)
                if found is not None and found.owner == self._writing.owner and found.attempt < self._writing.attempt:
                    with suppress(FileNotFoundError), disk_faults(folder):
                        os.unlink(os.path.join(folder, name))
                        swept += 1
        if swept:
            _LOG.info("Removed %d files below %s that earlier attempts had not finished.", swept, self._base_path)


def _make_visible(folder: str, staged: str, name: str, size: int) -> bool:
    """Rename a staged file to its name; False if it has it already."""
    source, target = os.path.join(folder, staged), os.path.join(folder, name)
    try:
        found = os.stat(source).st_size
        if found != size:
            raise ConnectorError(
                f"The staged file {source} has {found} bytes instead of the {size} that the checkpoint knows: it was "
                "changed by somebody else, so it is not committed."
            )
        os.rename(source, target)
    except FileNotFoundError:
        if os.path.exists(target):
            return False
        raise ConnectorError(
            f"The file {target} cannot be committed: neither it nor its staged form {staged} is there, somebody has "
            "removed it. Put it back; if its content was taken elsewhere, an empty file of that name will do."
        ) from None
    except OSError as error:
        with disk_faults(target):
            raise error
    return True
