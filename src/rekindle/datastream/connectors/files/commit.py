"""The committer of the file sink: it renames staged files to their final names and removes leftovers (I18)."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from rekindle.datastream.connectors.files.compacting_commit import compact_files
from rekindle.datastream.connectors.files.compaction import FileCompactor
from rekindle.datastream.connectors.files.folders import disk_faults, sync_folder
from rekindle.datastream.connectors.files.names import InProgressName, WriterId
from rekindle.datastream.connectors.files.part_files import Part
from rekindle.datastream.connectors.sink_api import CommitRequest, Committer, CommitterInitContext
from rekindle.errors import ConnectorError

_LOG = logging.getLogger(__name__)


def committable_of(part: Part) -> dict[str, Any]:
    """Return the committable of a finished file: plain data with its staging name and its final name."""
    return {"folder": part.folder, "staged": part.staging, "name": part.name, "size": part.size}


class FileCommitter(Committer[dict[str, Any]]):
    """Renames staged files. Idempotent: a file that already exists under its unique final name was committed."""

    def __init__(
        self,
        base_path: str,
        context: CommitterInitContext,
        compactor: FileCompactor | None = None,
        header: bytes = b"",
        threads: int = 1,
    ) -> None:
        self._base_path = base_path
        self._compactor = compactor or FileCompactor.concat_file_compactor()
        self._header = header
        self._threads = threads
        self._writer_id = WriterId.of(context)
        self._first_attempt = context.restarts == 0

    def commit(self, requests: list[CommitRequest[dict[str, Any]]]) -> None:
        """Rename all files, then sync each folder once. Files that were written to be compacted become one first."""
        folders: dict[str, None] = {}
        compactions: list[CommitRequest[dict[str, Any]]] = []
        for request in requests:
            committable = request.get_committable()
            if "parts" in committable:
                compactions.append(request)
                continue
            if not _make_visible(**committable):
                request.signal_already_committed()
            folders[committable["folder"]] = None
        self._compact_all(compactions)
        for folder in folders:
            with disk_faults(folder):
                sync_folder(folder)

    def _compact_all(self, requests: list[CommitRequest[dict[str, Any]]]) -> None:
        if self._threads == 1 or len(requests) < 2:
            for request in requests:
                self._compact(request)
            return
        with ThreadPoolExecutor(min(self._threads, len(requests)), "compaction") as threads:
            for _ in threads.map(self._compact, requests):
                pass

    def _compact(self, request: CommitRequest[dict[str, Any]]) -> None:
        done = compact_files(
            **request.get_committable(), compactor=self._compactor, header=self._header, own=self._writer_id
        )
        if not done:
            request.signal_already_committed()

    def sweep(self) -> None:
        """Remove staged files of older attempts of this timeline. The restored checkpoint's are committed by now."""
        if self._first_attempt:
            return
        own, swept = self._writer_id, 0
        for folder, _, names in os.walk(self._base_path):
            for name in names:
                found = InProgressName.parse(name)
                if found is not None and found.owner == own.owner and found.attempt < own.attempt:
                    with disk_faults(folder), suppress(FileNotFoundError):
                        os.unlink(os.path.join(folder, name))
                        swept += 1
        if swept:
            _LOG.info("Removed %d files below %s that earlier attempts had not finished.", swept, self._base_path)


def _make_visible(folder: str, staged: str, name: str, size: int) -> bool:
    """Rename a staged file to its final name. Returns False if this was done before."""
    source, target = os.path.join(folder, staged), os.path.join(folder, name)
    try:
        found = os.stat(source).st_size
        if found != size:
            raise ConnectorError(
                f"The staged file {source} has {found} bytes instead of the {size} that the checkpoint knows: it was "
                "changed after it was staged, so it is not committed."
            )
        os.rename(source, target)
    except FileNotFoundError:
        if os.path.exists(target):
            return False
        raise ConnectorError(
            f"The file {target} cannot be committed: neither it nor the staged file {staged} exists, so it was "
            "removed. Put it back; if its content was moved elsewhere, put an empty file of that name there."
        ) from None
    except OSError as error:
        with disk_faults(target):
            raise error
    return True
