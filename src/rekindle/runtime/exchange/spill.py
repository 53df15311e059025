"""A buffer of chunks that spills to disk above a limit (I5)."""

from __future__ import annotations

import tempfile
from typing import IO, NamedTuple


class SpillRange(NamedTuple):
    """The bytes of a chunk in the spill file."""

    offset: int
    length: int


class SpillBuffer:
    """Chunks in the order of `append`; chunks above `limit_bytes` lie in an unlinked temporary file.

    >>> chunks = SpillBuffer(limit_bytes=4, directory=None)
    >>> kept = [chunks.append(b"abc"), chunks.append(b"defgh")]
    >>> [chunks.read(each) for each in kept], chunks.spilled_bytes
    ([b'abc', b'defgh'], 5)
    """

    def __init__(self, limit_bytes: int, directory: str | None) -> None:
        self._limit_bytes = limit_bytes
        self._directory = directory
        self._in_memory_bytes = 0
        self._file: IO[bytes] | None = None
        self.spilled_bytes = 0

    def append(self, chunk: bytes) -> bytes | SpillRange:
        """Store a chunk; return the chunk itself or its range on disk, for `read`."""
        if self._in_memory_bytes + len(chunk) <= self._limit_bytes:
            self._in_memory_bytes += len(chunk)
            return chunk
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory, prefix="spill-")
        kept = SpillRange(self._file.seek(0, 2), len(chunk))
        self._file.write(chunk)
        self.spilled_bytes += len(chunk)
        return kept

    def read(self, kept: bytes | SpillRange) -> bytes:
        """Return the chunk that `append` stored."""
        if isinstance(kept, bytes):
            return kept
        assert self._file is not None
        self._file.seek(kept.offset)
        return self._file.read(kept.length)

    def clear(self) -> None:
        """Drop every chunk and release the disk space."""
        self._in_memory_bytes = self.spilled_bytes = 0
        if self._file is not None:
            self._file.close()
            self._file = None
