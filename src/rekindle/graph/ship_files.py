"""Reads the content of cached files for shipping to the slots."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rekindle.datastream.cached_files import CachedFile
from rekindle.errors import SerializationError

#: The limit for all local files together, which travel in one message.
_LARGEST_BYTES = 1 << 30


@dataclass(frozen=True)
class ShippedFile:
    """A cached file or folder. `content` is by path below it ("" for a file); None: slots fetch it themselves."""

    name: str
    path: str
    executable: bool
    content: dict[str, tuple[bytes, int]] | None  # path -> bytes, permissions


def ship_files(files: Iterable[CachedFile]) -> list[ShippedFile]:
    """Read the files that are on the driver's machine; the others are shipped without content."""
    shipped: list[ShippedFile] = []
    total = 0
    for file in files:
        content = _content(file) if file.is_local else None
        total += sum(len(data) for data, _ in (content or {}).values())
        if total > _LARGEST_BYTES:
            raise SerializationError(
                f"The cached files have more than {_LARGEST_BYTES >> 20} MiB with '{file.name}': put large ones where "
                "every machine reaches them, and register their URL (s3://, gs://, hdfs://)."
            )
        shipped.append(ShippedFile(file.name, file.path, file.executable, content))
    return shipped


def _content(file: CachedFile) -> dict[str, tuple[bytes, int]]:
    root = Path(file.path)
    if root.is_file():
        return {"": (root.read_bytes(), root.stat().st_mode & 0o777)}
    if not root.is_dir():
        raise SerializationError(f"Cached file '{file.name}' was registered as '{file.path}', but is no longer there.")
    return {
        each.relative_to(root).as_posix(): (each.read_bytes(), each.stat().st_mode & 0o777)
        for each in sorted(root.rglob("*"))
        if each.is_file() and os.access(each, os.R_OK)
    }
