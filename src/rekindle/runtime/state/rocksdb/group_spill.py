"""Pieces of data by key group that wait in a file on the local disk: they come in any order, and go group by group."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from rekindle.errors import StateBackendError


class GroupSpill:
    """A file of pieces; `what` names them in errors. One thread appends, any thread reads.

    The file goes with its last user, who may be an upload.
    """

    def __init__(self, folder: Path, what: str) -> None:
        self._path = folder / f"spill-{uuid4().hex[:12]}"
        self._what = what
        self._places: dict[int, list[tuple[int, int]]] = {}
        self.length = 0
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise self.failed("written to", error) from error
        weakref.finalize(self, _remove, self._path, self._file)

    def append(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Add (key group, piece) pairs."""
        try:
            for group, data in pieces:
                self._write(data)
                self._places.setdefault(group, []).append((self.length, len(data)))
                self.length += len(data)
        except OSError as error:
            raise self.failed("written to", error) from error

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, memoryview(data)[written:], self.length + written)

    def groups(self) -> Iterable[int]:
        """The key groups that have pieces here."""
        return list(self._places)

    def pieces(self, group: int) -> Iterator[bytes]:
        """The pieces of a key group, in the order in which they came."""
        for offset, length in self._places.get(group, ()):
            try:
                data = os.pread(self._file, length, offset)
            except OSError as error:
                raise self.failed("read from", error) from error
            if len(data) != length:
                raise self.failed("read from", EOFError(f"it ends at {offset + len(data)}"))
            yield data

    def failed(self, what: str, error: Exception) -> StateBackendError:
        """The error of a file that cannot be read or written."""
        return StateBackendError(
            f"{self._what} cannot be {what} {self._path}: {error}. Look at the space and the health of that disk, or "
            "set state.backend.rocksdb.localdir to another one."
        )


def _remove(path: Path, file: int) -> None:
    os.close(file)
    with suppress(OSError):
        path.unlink()
