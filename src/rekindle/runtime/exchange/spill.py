"""A buffer of rows that spills to disk above a limit (I5)."""

from __future__ import annotations

import tempfile
from typing import IO, NamedTuple


class SpillRange(NamedTuple):
    """The bytes of a row in the spill file."""

    offset: int
    length: int


class SpillBuffer:
    """Rows in the order of `append`; rows above `limit_bytes` lie in an unlinked temporary file.

    >>> rows = SpillBuffer(limit_bytes=4, directory=None)
    >>> kept = [rows.append(b"abc"), rows.append(b"defgh")]
    >>> [rows.read(each) for each in kept], rows.spilled_bytes
    ([b'abc', b'defgh'], 5)
    """

    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._limit_bytes = limit_bytes
        self._directory = directory
        self._in_memory_bytes = 0
        self._file: IO[bytes] | None = None
        self.spilled_bytes = 0

    def append(self, row: bytes) -> bytes | SpillRange:
        """Store a row; return the row itself or its range on disk, for `read`."""
        if self._in_memory_bytes + len(row) <= self._limit_bytes:
            self._in_memory_bytes += len(row)
            return row
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory, prefix="spill-")
        kept = SpillRange(self._file.seek(0, 2), len(row))
        self._file.write(row)
        self.spilled_bytes += len(row)
        return kept

    def read(self, kept: bytes | SpillRange) -> bytes:
        """Return the row that `append` stored."""
        if isinstance(kept, bytes):
            return kept
        assert self._file is not None
        self._file.seek(kept.offset)
        return self._file.read(kept.length)

    def clear(self) -> None:
        """Drop every row and release the disk space."""
        self._in_memory_bytes = self.spilled_bytes = 0
        if self._file is not None:
            self._file.close()
            self._file = None
