"""Which files are there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rekindle.datastream.connectors.files.file_paths import is_hidden
from rekindle.errors import ConnectorError


class FoundFile(NamedTuple):
    """A file as it was when it was found."""

    path: str
    size: int
    #: When its content or its name last changed, in nanoseconds: a rename changes st_ctime, not st_mtime.
    changed_ns: int


def list_files(paths: Iterable[str]) -> list[FoundFile]:
    """The files at these paths and below them, by path; hidden and empty ones are left out, links are followed."""
    found: dict[str, FoundFile] = {}
    for path in paths:
        for file in _files_at(path):
            found[file.path] = file
    return [found[path] for path in sorted(found)]


def _files_at(path: str) -> Iterator[FoundFile]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise ConnectorError(f"There is no file or directory {path}: make it, or correct the source's path.") from None
    except OSError as error:
        raise _unreadable(path, error) from error
    if os.path.isdir(path):
        yield from _files_below(path, [(status.st_dev, status.st_ino)])
    else:
        yield from _found(path, status)


def _files_below(folder: str, above: Sequence[tuple[int, int]]) -> Iterator[FoundFile]:
    try:
        with os.scandir(folder) as scan:
            entries = [entry for entry in scan if not is_hidden(entry.name)]
    except FileNotFoundError:
        if len(above) > 1:
            return  # a folder below that was removed meanwhile
        raise ConnectorError(f"The directory {folder} is gone: it must stay while the source reads it.") from None
    except OSError as error:
        raise _unreadable(folder, error) from error
    for entry in entries:
        try:
            status = entry.stat()
            if entry.is_dir():
                identity = status.st_dev, status.st_ino
                if identity not in above:  # a link that leads up again
                    yield from _files_below(entry.path, [*above, identity])
            elif entry.is_file():
                yield from _found(entry.path, status)
        except FileNotFoundError:
            continue  # removed meanwhile, or a link that leads nowhere


def _found(path: str, status: os.stat_result) -> Iterator[FoundFile]:
    if status.st_size > 0:
        yield FoundFile(path, status.st_size, max(status.st_mtime_ns, status.st_ctime_ns))


def _unreadable(path: str, error: OSError) -> ConnectorError:
    reason = (error.strerror or str(error)).lower()
    return ConnectorError(f"{path} cannot be read ({reason}): make it readable for the user that runs the job.")
