"""The checkpoint store in the driver's memory: checkpoints survive slots and executors, not the driver."""

from __future__ import annotations

import threading

from rekindle.checkpoint.paths import checked_path
from rekindle.checkpoint.store.port import Data, FileEntry, blocks_of
from rekindle.errors import MissingFileError


class MemoryStore:
    """A `Store` in a dict.

    >>> store = MemoryStore()
    >>> store.put_if_absent("a", b"1"), store.put_if_absent("a", b"2"), store.read("a")
    (True, False, b'1')
    """

    def __init__(self) -> None:
        self.url = "memory://"
        self.conditional = True
        self._files: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def put(self, path: str, data: Data) -> None:
        """Keep a file; one of that name is replaced."""
        content = b"".join(blocks_of(data))
        with self._lock:
            self._files[checked_path(path)] = content

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Keep a file unless there is one of that name."""
        with self._lock:
            if checked_path(path) in self._files:
                return False
            self._files[path] = bytes(data)
            return True

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's bytes from `offset`, at most `length`."""
        with self._lock:
            content = self._files.get(checked_path(path))
        if content is None:
            raise MissingFileError(f"There is no file '{path}' among the checkpoints in memory.")
        return content[offset:] if length is None else content[offset : offset + length]

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Every file below `prefix`, by path."""
        begin = checked_path(prefix) + "/" if prefix else ""
        with self._lock:
            return sorted(FileEntry(path, len(data)) for path, data in self._files.items() if path.startswith(begin))

    def delete(self, *paths: str) -> None:
        """Remove files."""
        with self._lock:
            for path in paths:
                self._files.pop(checked_path(path), None)
