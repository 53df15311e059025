"""Open the store that a path or URL names, and check that it can be used."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from rekindle.checkpoint.store.port import _LOG, Store
from rekindle.errors import StoreError
from rekindle.places import Place, parse_place


def open_store(url: str, options: Mapping[str, str] | None = None) -> Store:
    """Open the store at a URL or a plain path; nothing is written, and no server is asked yet.

    `file:` and plain paths, `s3://` (`s3a://`) and `gs://` with the extra `objectstore`, `hdfs://`, `memory://`.
    `options` are obstore's settings of an object store (`endpoint`, `region`, ...); others come from the environment.
    For a directory they are the permissions of its files.

    >>> open_store("file:///checkpoints").url
    'file:///checkpoints'
    """
    from rekindle.checkpoint.store.memory import MemoryStore

    place = place_of(url)
    scheme = place.scheme
    if place.is_local:
        return _local(place, options or {})
    if scheme == "memory":
        return MemoryStore()
    if scheme in ("s3", "s3a", "gs"):
        from rekindle.checkpoint.store.objects import ObjectStore

        return ObjectStore.open(place.url, options or {})
    if scheme in ("hdfs", "viewfs"):
        from rekindle.checkpoint.store.arrow import ArrowStore

        return ArrowStore.open(place.url)
    raise StoreError(
        f"Checkpoints cannot be stored at '{url}': use a path, file:///, s3://, gs:// or hdfs:// instead of {scheme}://."
    )


def place_of(url: str) -> Place:
    """The place of a store; StoreError says why there can be none.

    >>> place_of("file:/checkpoints").path
    '/checkpoints'
    """
    try:
        return parse_place(url)
    except ValueError as error:
        raise StoreError(f"{error}.") from None


def absolute(url: str) -> str:
    """A path or URL as every process understands it, whatever folder it works in.

    >>> absolute("s3://bucket/orders"), absolute("file:/data/my%20orders")
    ('s3://bucket/orders', '/data/my orders')
    """
    place = place_of(url)
    return os.path.normpath(place.path) if place.is_local else url


def _local(place: Place, options: Mapping[str, str]) -> Store:
    from rekindle.checkpoint.store.local import OWNER_ONLY, PERMISSIONS, LocalStore

    return LocalStore(Path(place.path), int(options.get(PERMISSIONS, f"{OWNER_ONLY:o}"), 8))


def check_usable(store: Store) -> None:
    """Write, write again, read and delete a small file, so that a job without a usable store fails before it starts.

    Logs a warning if the store cannot exclude a second driver.
    """
    path = f"rekindle-probe-{secrets.token_hex(8)}"
    first, second = b"first", b"second"
    try:
        written = store.put_if_absent(path, first)
        again = store.put_if_absent(path, second)
        held = store.read(path)
    except StoreError:
        with contextlib.suppress(StoreError):  # the first error says more than that of the deletion
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
