"""Places that users name to find what a job has stored: the name of a job stands for its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from rekindle.checkpoint.paths import escaped
from rekindle.checkpoint.store.open_store import open_store, place_of
from rekindle.checkpoint.store.port import Store
from rekindle.places import Place


def stored_place(url: str, options: Mapping[str, str] | None = None) -> Place:
    """The place, where parts of its path that do not exist are the name of a job with a folder there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     os.mkdir(f"{directory}/word=20count")
    ...     stored_place(f"{directory}/word count").path.removeprefix(directory)
    '/word=20count'
    """
    place = place_of(url)
    path = os.path.normpath(place.path) if place.is_local else place.path
    parts = [part for part in path.split("/") if part]
    reached = ""
    while parts:
        folder, taken = _next_folder(replace(place, path=reached or ("/" if place.is_local else "")), parts, options)
        reached += f"/{folder}"
        parts = parts[taken:]
    return replace(place, path=reached or path)


def open_stored(url: str, options: Mapping[str, str] | None = None) -> Store:
    """Open the store at a place that `stored_place` finds."""
    return open_store(stored_place(url, options).url, options)


def is_missing(directory: str) -> bool:
    """Whether there is no such directory on this machine; stores elsewhere are not asked.

    >>> is_missing("/no/such/directory"), is_missing("s3://bucket/orders")
    (True, False)
    """
    place = stored_place(directory) if place_of(directory).is_local else None
    return place is not None and not os.path.isdir(place.path)


def _next_folder(parent: Place, parts: list[str], options: Mapping[str, str] | None) -> tuple[str, int]:
    """Return the folder that the first parts name, and how many they are: the name of a job may have slashes.

    An object store would be asked about every part of every path for such names, so there the folder is named.
    """
    for taken in range(1, len(parts) + 1 if parent.is_local else 2):
        name = "/".join(parts[:taken])
        folder = escaped(name)
        if folder != name and _exists(parent, folder, options) and not _exists(parent, name, options):
            return folder, taken
    return parts[0], 1


def _exists(parent: Place, name: str, options: Mapping[str, str] | None) -> bool:
    if parent.is_local:
        return os.path.lexists(os.path.join(parent.path, name))
    return bool(open_store(parent.url, options).list(name))
