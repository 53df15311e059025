"""The port of the checkpoint store (I15): put, put-if-absent, read and list, delete.

Paths are relative to the store's root, with `/` between their parts. A file appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from rekindle.errors import StoreError

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
    """What checkpoints need of a file system or object store. Every method may be called from any thread.

    Faults are `StoreError`s: `MissingFileError` for a file that is not there, and `retryable` where waiting may help.
    """

    #: Where the store is, for messages and for opening it elsewhere.
    url: str
    #: Whether `put_if_absent` decides between two writers; if not, only one driver may run.
    conditional: bool

    def put(self, path: str, data: Data) -> None:
        """Write a file, durably when this returns; one of that name is replaced."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file, durably, unless there is one of that name; whether it was written. One of two writers wins."""
        ...

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's bytes from `offset`, at most `length`; fewer where the file ends."""
        ...

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Every file below the folder `prefix`, however deep, by path; empty if there is no such folder."""
        ...

    def delete(self, *paths: str) -> None:
        """Remove files; those that are not there are skipped."""


def checked_path(path: str) -> str:
    """`path` if it stays below a store's root; paths in manifests come from outside.

    >>> checked_path("orders/chk-1/_metadata")
    'orders/chk-1/_metadata'
    >>> checked_path("../secrets")
    Traceback (most recent call last):
    rekindle.errors.StoreError: '../secrets' is not a path inside a checkpoint store.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path or not path.isprintable():
        raise StoreError(f"{path!r} is not a path inside a checkpoint store.")
    return path


def blocks_of(data: Data) -> Iterator[bytes]:
    """The content, block by block."""
    if isinstance(data, bytes | bytearray | memoryview):
        yield bytes(data)
    else:
        yield from data


def open_store(url: str, options: Mapping[str, str] | None = None) -> Store:
    """The store at a URL or a plain path. Nothing is written, and nothing is asked of a server yet.

    `file:///` and plain paths, `s3://` (`s3a://`) and `gs://` with the extra `objectstore`, `hdfs://`, `memory://`.
    `options` are obstore's settings of an object store (`endpoint`, `region`, ...); others come from the environment.
    Of a directory they are the permissions of its files.

    >>> open_store("file:///checkpoints").url
    'file:///checkpoints'
    """
    from rekindle.checkpoint.store.memory import MemoryStore

    parts = urlsplit(url) if "://" in url else None
    scheme = parts.scheme.lower() if parts is not None else "file"
    if parts is None or scheme == "file":
        return _local(url, options or {})
    if scheme == "memory":
        return MemoryStore()
    if scheme in ("s3", "s3a", "gs"):
        from rekindle.checkpoint.store.objects import ObjectStore

        return ObjectStore.open(url, options or {})
    if scheme in ("hdfs", "viewfs"):
        from rekindle.checkpoint.store.arrow import ArrowStore

        return ArrowStore.open(url)
    raise StoreError(
        f"Checkpoints cannot be stored at '{url}': use a path, file:///, s3://, gs:// or hdfs:// instead of {scheme}://."
    )


def _local(url: str, options: Mapping[str, str]) -> Store:
    from rekindle.checkpoint.store.local import OWNER_ONLY, PERMISSIONS, LocalStore

    file_mode = int(options.get(PERMISSIONS, f"{OWNER_ONLY:o}"), 8)
    if "://" not in url:
        if not url.strip():
            raise StoreError("The checkpoint directory is an empty text: name a path or a URL.")
        return LocalStore(Path(url).absolute(), file_mode)
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise StoreError(
            f"'{url}' names a host, '{parts.netloc}': a directory of this machine is written file:///directory."
        )
    if not parts.path.strip("/"):
        raise StoreError(f"'{url}' names no directory: write file:///directory.")
    return LocalStore(Path(unquote(parts.path)), file_mode)


def url_of(store: Store, path: str) -> str:
    """What a user writes to name a checkpoint of a store.

    >>> url_of(open_store("file:///checkpoints"), "orders/00000001-0a1b2c3d/chk-7")
    'file:///checkpoints/orders/00000001-0a1b2c3d/chk-7'
    """
    return store.url + path if store.url.endswith("/") else f"{store.url}/{path}"


def put_once(store: Store, path: str, data: bytes) -> bool:
    """Whether this is what the file holds now, and nobody else has written another one.

    When the answer to a write is lost, the store's client asks again and finds its own file.
    """
    return store.put_if_absent(path, data) or store.read(path) == data


def check_usable(store: Store) -> None:
    """Write, write again, read and delete a small file, so that a job without a usable store ends before it starts.

    Warns when nothing keeps two drivers apart here.
    """
    path = f"rekindle-probe-{secrets.token_hex(8)}"
    first, second = b"first", b"second"
    try:
        written = store.put_if_absent(path, first)
        again = store.put_if_absent(path, second)
        held = store.read(path)
    except StoreError:
        with contextlib.suppress(StoreError):  # what it did not let write says more than what it does not let delete
            store.delete(path)
        raise
    store.delete(path)
    if not written or held not in (first, second):
        raise StoreError(f"The store at {store.url} does not give back what was written into it.")
    if again or not store.conditional:
        _LOG.warning(
            "The store at %s cannot write a file only if it is absent, so nothing keeps two drivers apart: "
            "run only one driver per job on it.",
            store.url,
        )
