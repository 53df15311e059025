"""The commit of a compaction: staged files become one visible file, and are removed only then (I18)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, BinaryIO

from rekindle.datastream.connectors.files.compaction import FileCompactor, PendingFile
from rekindle.datastream.connectors.files.folders import disk_faults, sync_folder
from rekindle.datastream.connectors.files.names import WriterId
from rekindle.errors import ConnectorError


def compact_files(
    folder: str, name: str, parts: Sequence[dict[str, Any]], compactor: FileCompactor, header: bytes, own: WriterId
) -> bool:
    """Make one visible file of staged ones. Returns False if this was done before."""
    target = os.path.join(folder, name)
    paths = [os.path.join(folder, part["staged"]) for part in parts]
    done = os.path.exists(target)
    if not done:
        staging = os.path.join(folder, own.staging_name(name))
        with disk_faults(target):
            try:
                _write(staging, target, paths, [part["size"] for part in parts], compactor, header)
                os.rename(staging, target)
            except FileNotFoundError:
                if not os.path.exists(target):  # else an older process of the job has done it meanwhile
                    raise _gone(target, paths) from None
            sync_folder(folder)
    for path in paths:
        with disk_faults(path), suppress(FileNotFoundError):
            os.unlink(path)
    return not done


def _write(
    staging: str, target: str, paths: Sequence[str], sizes: Sequence[int], compactor: FileCompactor, header: bytes
) -> None:
    with _opened(paths) as inputs:
        for file, path, size in zip(inputs, paths, sizes, strict=True):
            if (found := os.fstat(file.fileno()).st_size) != size:
                raise ConnectorError(
                    f"The staged file {path} has {found} bytes instead of the {size} that the checkpoint knows: it was "
                    f"changed after it was staged, so {target} is not committed."
                )
        with open(staging, "wb") as output:
            compactor.compact(inputs, output, header)
            output.flush()
            os.fsync(output.fileno())


@contextmanager
def _opened(paths: Sequence[str]) -> Iterator[list[BinaryIO]]:
    with ExitStack() as stack:
        yield [stack.enter_context(open(path, "rb")) for path in paths]


def _gone(target: str, paths: Sequence[str]) -> ConnectorError:
    missing = [os.path.basename(path) for path in paths if not os.path.exists(path)]
    return ConnectorError(
        f"The file {target} cannot be committed: the staged files {', '.join(missing)} are gone. Put them back; if "
        "their content was moved elsewhere, put an empty file of that name there."
    )


def adopt(file: PendingFile, own: WriterId) -> PendingFile:
    """Take over a file that waited in the restored checkpoint, under a name of this attempt.

    It is linked, not moved: an attempt that fails before its first checkpoint leaves it to the next one. The first name
    is swept with the other leftovers of older attempts.
    """
    staged = own.staging_name(file.name)
    target = os.path.join(file.folder, staged)
    with disk_faults(target):
        source = _found(file)
        if source != target:
            with suppress(FileNotFoundError):
                os.unlink(target)
            _link(source, target)
            sync_folder(file.folder)
    return PendingFile(file.folder, staged, file.name, file.size, file.checkpoints)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)
        with open(target, "rb") as copied:
            os.fsync(copied.fileno())


def _found(file: PendingFile) -> str:
    path = os.path.join(file.folder, file.staged)
    if os.path.exists(path):
        return path
    prefix = f".{file.name}.inprogress."
    for name in sorted(os.listdir(file.folder) if os.path.isdir(file.folder) else ()):
        if name.startswith(prefix) and os.stat(os.path.join(file.folder, name)).st_size == file.size:
            return os.path.join(file.folder, name)
    raise ConnectorError(
        f"The staged file {path}, which waited for its compaction, is gone. Restore a newer checkpoint of the job, or "
        "put the file back."
    )
