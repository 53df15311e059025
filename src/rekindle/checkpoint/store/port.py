"""The port of the checkpoint store (I15): put, put-if-absent, read and list, delete.

Paths are relative to the store's root, with `/` between their parts. A file appears whole or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

_LOG = logging.getLogger("rekindle.checkpoint")

#: A file's content: whole, or block by block.
Data = bytes | Iterable[bytes]


@dataclass(frozen=True, order=True)
class FileEntry:
    """A file in a store.

    >>> FileEntry("orders/a.state", 3).size
    3
    """

    path: str
    size: int


class Store(Protocol):
    """A file system or object store for checkpoints. Every method may be called from any thread.

    Faults are `StoreError`s: `MissingFileError` for a file that is not there, and `retryable` where waiting may help.
    """

    #: Where the store is, for messages and for opening it elsewhere.
    url: str
    #: Whether `put_if_absent` lets exactly one of two writers win; if not, only one driver may run.
    conditional: bool

    def put(self, path: str, data: Data) -> None:
        """Write a file, durably when this returns; one of that name is replaced."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file durably unless there is one of that name; returns whether it was written. One writer wins."""
        ...

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's bytes from `offset`, at most `length`; fewer where the file ends."""
        ...

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Every file below the folder `prefix`, however deep, by path; empty if there is no such folder."""
        ...

    def delete(self, *paths: str) -> None:
        """Remove files; missing ones are skipped."""


def blocks_of(data: Data) -> Iterator[bytes]:
    """The content, block by block."""
    if isinstance(data, bytes | bytearray | memoryview):
        yield bytes(data)
    else:
        yield from data


def put_once(store: Store, path: str, data: bytes) -> bool:
    """Write a file unless it exists; returns whether the file holds this data now.

    If the answer to a write is lost, the store's client tries again and finds its own file: that counts as written.
    """
    return store.put_if_absent(path, data) or store.read(path) == data
