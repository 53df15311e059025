"""The checkpoint store in object stores, through obstore: S3, stores with S3's API, Google Cloud Storage."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, NoReturn

from rekindle.checkpoint.paths import checked_path
from rekindle.checkpoint.store.port import Data, FileEntry
from rekindle.errors import MissingFileError, StoreError

_PART_BYTES: Final = 8 << 20
_PARALLEL_PARTS: Final = 4
# Checkpoints have their own timeout: give up long before obstore's three minutes.
_RETRY: Final = {"max_retries": 8, "retry_timeout": timedelta(seconds=60)}
_CLIENT_OPTIONS: Final = {"connect_timeout": timedelta(seconds=5)}


class ObjectStore:
    """A `Store` over an obstore store, whose prefix is the root.

    >>> from obstore.store import MemoryStore
    >>> store = ObjectStore(MemoryStore(), "memory")
    >>> store.put_if_absent("a", b"1"), store.put_if_absent("a", b"2")
    (True, False)
    """

    def __init__(self, objects: Any, url: str) -> None:
        self.url = url
        self.conditional = True
        self._objects = objects

    @classmethod
    def open(cls, url: str, options: Mapping[str, str]) -> ObjectStore:
        """Open the store at an s3:// or gs:// URL; options that are not given come from the environment."""
        try:
            from obstore.store import from_url
        except ImportError:
            raise StoreError(
                f"Checkpoints at '{url}' need the package obstore: install rekindle with the extra 'objectstore'."
            ) from None
        client: dict[str, Any] = dict(_CLIENT_OPTIONS)
        if options.get("endpoint", "").startswith("http://"):
            client["allow_http"] = True
        try:
            objects = from_url(url, client_options=client, retry_config=_RETRY, **options)  # type: ignore[call-overload]
        except Exception as error:
            raise StoreError(f"The store at '{url}' cannot be opened: {_sentence(error)}.") from error
        return cls(objects, url.rstrip("/"))

    def put(self, path: str, data: Data) -> None:
        """Write an object; one of that name is replaced."""
        import obstore

        with self._faults("write", path):
            obstore.put(
                self._objects, checked_path(path), data, chunk_size=_PART_BYTES, max_concurrency=_PARALLEL_PARTS
            )

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write an object unless there is one of that name (conditional create)."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with self._faults("write", path):
            try:
                obstore.put(self._objects, checked_path(path), bytes(data), mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The object's bytes from `offset`, at most `length`."""
        import obstore
        from obstore.exceptions import BaseError

        with self._faults("read", path):
            if offset == 0 and length is None:
                return bytes(obstore.get(self._objects, checked_path(path)).bytes())
            span: Any = {"offset": offset} if length is None else (offset, offset + length)
            try:
                return bytes(obstore.get(self._objects, checked_path(path), options={"range": span}).bytes())
            except (BaseError, ValueError):
                # Servers refuse a range that is empty or begins at the end; the port returns no bytes for it.
                size = obstore.head(self._objects, path)["size"]
                if length == 0 or offset >= size:
                    return b""
                raise

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Every object below `prefix`, by path."""
        import obstore

        with self._faults("list", prefix or "."):
            pages = obstore.list(self._objects, checked_path(prefix) if prefix else None)
            return sorted(FileEntry(entry["path"], entry["size"]) for page in pages for entry in page)

    def delete(self, *paths: str) -> None:
        """Remove objects."""
        import obstore

        if not paths:
            return
        with self._faults("delete", paths[0]), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._objects, [checked_path(path) for path in paths])

    @contextlib.contextmanager
    def _faults(self, verb: str, path: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            self._fail(verb, path, error)

    def _fail(self, verb: str, path: str, error: Exception) -> NoReturn:
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        if "NoSuchBucket" in str(error):
            raise StoreError(f"The bucket of {self.url} does not exist: make it, or name another one.") from error
        if isinstance(error, FileNotFoundError) and verb != "write":
            raise MissingFileError(f"There is no file '{path}' at {self.url}.") from error
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            raise StoreError(
                f"{self.url} does not let this program {verb} '{path}': check its credentials and rights."
            ) from error
        raise StoreError(f"Cannot {verb} '{path}' at {self.url}: {_sentence(error)}.", retryable=True) from error


def _sentence(error: Exception) -> str:
    """The first line of obstore's error, without the XML of the answer and the debugging output."""
    first = str(error).strip().split("\n", 1)[0]
    return re.sub(r"\s+", " ", re.split(r":?\s*<\?xml|\s+Debug source", first)[0]).rstrip(".: ")
