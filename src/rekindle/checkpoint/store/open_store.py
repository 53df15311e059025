"""Open the store that a path or URL names, and check that it can be used."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rekindle.checkpoint.store.port import _LOG, Store
from rekindle.errors import StoreError


def open_store(url: str, options: Mapping[str, str] | None = None) -> Store:
    """Open the store at a URL or a plain path; nothing is written, and no server is asked yet.

    `file:///` and plain paths, `s3://` (`s3a://`) and `gs://` with the extra `objectstore`, `hdfs://`, `memory://`.
    `options` are obstore's settings of an object store (`endpoint`, `region`, ...); others come from the environment.
    For a directory they are the permissions of its files.

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
