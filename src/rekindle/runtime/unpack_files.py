"""Unpacks or fetches cached files into the slot's own directory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.store.port import Store
from rekindle.errors import MissingFileError, SerializationError
from rekindle.graph.ship_files import ShippedFile

_DIRECTORY = "cached"
_EXECUTABLE_BY_ALL = 0o111


def place_files(files: Iterable[ShippedFile], directory: str) -> dict[str, str]:
    """Place files below the directory; return name -> path."""
    placed: dict[str, str] = {}
    for file in files:
        target = Path(directory) / _DIRECTORY / file.name
        content = file.content if file.content is not None else _fetch(file)
        if "" not in content:
            target.mkdir(parents=True, exist_ok=True)
        for name, (data, mode) in content.items():
            path = target / name if name else target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            os.chmod(path, mode | _EXECUTABLE_BY_ALL if file.executable else mode)
        placed[file.name] = str(target)
    return placed


def _fetch(file: ShippedFile) -> dict[str, tuple[bytes, int]]:
    parent, _, name = file.path.rstrip("/").rpartition("/")
    store: Store = open_store(parent)
    try:
        return {"": (store.read(name), 0o644)}
    except MissingFileError:
        found = store.list(name)
    if not found:
        raise SerializationError(f"Cached file '{file.name}' was registered as '{file.path}', where there is nothing.")
    return {entry.path.removeprefix(f"{name}/"): (store.read(entry.path), 0o644) for entry in found}
