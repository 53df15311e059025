"""Lists the files at and below given paths."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rekindle.datastream.connectors.files.file_paths import is_hidden
from rekindle.errors import ConnectorError


class FoundFile(NamedTuple):
    """A file with its size and time of change when it was found."""

    path: str
    size: int
    #: The time of the last change of content or name, in nanoseconds. A rename changes st_ctime, not st_mtime.
    changed_ns: int


def list_files(paths: Iterable[str], may_be_none: bool = False) -> list[FoundFile]:
    """Return the files at and below these paths, sorted by path. Skips hidden and empty files, follows links.

    A path with `*`, `?` or `[...]` is a pattern, unless a file has this very name; `**` is any number of directories.
    With `may_be_none` a pattern may match nothing yet.
    """
    found: dict[str, FoundFile] = {}
    for path in paths:
        for file in _files_matching(path, may_be_none) if is_pattern(path) else _files_at(path):
            found[file.path] = file
    return [found[path] for path in sorted(found)]


def is_pattern(path: str) -> bool:
    """Return whether a path stands for all files that match it.

    >>> is_pattern("/data/*.csv"), is_pattern("/data/orders.csv")
    (True, False)
    """
    return glob.has_magic(path) and not os.path.lexists(path)


def _files_matching(pattern: str, may_be_none: bool) -> Iterator[FoundFile]:
    fixed = _fixed_part(pattern)
    matched = False
    for path in glob.iglob(pattern, recursive=True):
        if any(is_hidden(name) for name in os.path.relpath(path, fixed).split(os.sep)):
            continue
        matched = True
        try:
            yield from _files_at(path)
        except ConnectorError:
            if os.path.lexists(path):
                raise  # else it was removed during the listing
    if not matched and not may_be_none:
        raise ConnectorError(f"No file or directory matches {pattern}: make one, or correct the source's path.")


def _fixed_part(pattern: str) -> str:
    """Return the directories in front of the first one with a wildcard: they may be hidden.

    >>> _fixed_part("/data/_raw/2024-*/*.csv")
    '/data/_raw'
    """
    folder = pattern
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)
    return folder


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
            return  # a subfolder was removed during the listing
        raise ConnectorError(f"The directory {folder} is gone: it must stay while the source reads it.") from None
    except OSError as error:
        raise _unreadable(folder, error) from error
    for entry in entries:
        try:
            status = entry.stat()
            if entry.is_dir():
                identity = status.st_dev, status.st_ino
                if identity not in above:  # else a link leads back to a folder above
                    yield from _files_below(entry.path, [*above, identity])
            elif entry.is_file():
                yield from _found(entry.path, status)
        except FileNotFoundError:
            continue  # removed during the listing, or a broken link


def _found(path: str, status: os.stat_result) -> Iterator[FoundFile]:
    if status.st_size > 0:
        yield FoundFile(path, status.st_size, max(status.st_mtime_ns, status.st_ctime_ns))


def _unreadable(path: str, error: OSError) -> ConnectorError:
    reason = (error.strerror or str(error)).lower()
    return ConnectorError(f"{path} cannot be read ({reason}): make it readable for the user that runs the job.")
