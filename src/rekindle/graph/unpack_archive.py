"""Unpacks archives of users, within limits: nothing is written outside of the target, and not without end."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

from rekindle.errors import SerializationError

#: Limits of what one archive may unpack to.
LARGEST_BYTES = 8 << 30
MOST_ENTRIES = 500_000
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class _Entry:
    name: str
    size: int
    mode: int
    link: str | None  # where a symbolic link leads
    is_directory: bool
    content: object  # what `open` of its archive takes


def unpack_archive(content: bytes, name: str, target: str) -> None:
    """Unpack an archive into a new directory.

    Entries with absolute paths or `..`, links that lead out of the target, devices, and archives that unpack to more
    than the limits are refused by name.
    """
    os.makedirs(target, exist_ok=True)
    root = os.path.realpath(target)
    written = 0
    try:
        with _opened(content) as archive:
            for number, entry in enumerate(_entries(archive, name)):
                if number >= MOST_ENTRIES:
                    raise SerializationError(f"The archive {name} has more than {MOST_ENTRIES} entries.")
                path = _path_in(root, entry.name, name)
                written += _write(archive, entry, path, root, name, LARGEST_BYTES - written)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise SerializationError(f"The archive {name} cannot be unpacked: {error}.") from error


def _opened(content: bytes) -> zipfile.ZipFile | tarfile.TarFile:
    stream = io.BytesIO(content)
    return zipfile.ZipFile(stream) if zipfile.is_zipfile(stream) else tarfile.open(fileobj=io.BytesIO(content))


def _entries(archive: zipfile.ZipFile | tarfile.TarFile, name: str) -> Iterator[_Entry]:
    if isinstance(archive, zipfile.ZipFile):
        for info in archive.infolist():
            mode = info.external_attr >> 16
            link = archive.read(info).decode() if stat.S_ISLNK(mode) and info.file_size < 4096 else None
            yield _Entry(info.filename, info.file_size, stat.S_IMODE(mode), link, info.is_dir(), info)
        return
    for member in archive:
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            raise SerializationError(f"The archive {name} has the entry '{member.name}', which is no file: refused.")
        link = None
        if member.issym():
            link = member.linkname
        elif member.islnk():  # a hard link names an entry from the root of the archive
            link = os.path.relpath(member.linkname, os.path.dirname(member.name) or ".")
        yield _Entry(member.name, member.size, stat.S_IMODE(member.mode), link, member.isdir(), member)


def _path_in(root: str, entry: str, name: str) -> str:
    parts = entry.split("/")
    if os.path.isabs(entry) or ".." in parts or "\0" in entry or "\\" in entry:
        raise SerializationError(f"The archive {name} has the entry '{entry}', which leads out of it: refused.")
    path = os.path.join(root, *[part for part in parts if part not in ("", ".")])
    # An earlier entry may be a link: what is below it must be in the target all the same.
    if os.path.realpath(os.path.dirname(path) or root) != os.path.dirname(path) and path != root:
        raise SerializationError(f"The archive {name} has the entry '{entry}' below a link: refused.")
    return path


def _write(
    archive: zipfile.ZipFile | tarfile.TarFile, entry: _Entry, path: str, root: str, name: str, room: int
) -> int:
    if entry.is_directory:
        os.makedirs(path, exist_ok=True)
        return 0
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.islink(path):
        os.unlink(path)
    if entry.link is not None:
        _write_link(entry, path, root, name)
        return 0
    source = archive.open(entry.content) if isinstance(archive, zipfile.ZipFile) else archive.extractfile(entry.content)  # type: ignore[arg-type]
    assert source is not None, "a file has content"
    written = 0
    with source, open(path, "wb") as file:
        while block := source.read(_BLOCK_BYTES):
            written += len(block)
            if written > room:  # counted, because the size that an entry declares may be wrong
                raise SerializationError(f"The archive {name} unpacks to more than {LARGEST_BYTES >> 20} MiB.")
            file.write(block)
    if entry.mode:
        os.chmod(path, entry.mode & 0o755 | stat.S_IRUSR | stat.S_IWUSR)
    return written


def _write_link(entry: _Entry, path: str, root: str, name: str) -> None:
    assert entry.link is not None
    leads_to = os.path.realpath(os.path.join(os.path.dirname(path), entry.link))
    if os.path.isabs(entry.link) or os.path.commonpath([root, leads_to]) != root:
        raise SerializationError(
            f"The archive {name} has the link '{entry.name}' to '{entry.link}', which leads out of it: refused."
        )
    os.symlink(entry.link, path)
