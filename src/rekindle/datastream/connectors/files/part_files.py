"""Files in progress: records are buffered in memory and written in large pieces, durably when the file is finished.

A file of rows is opened and closed again for each piece, so that a sink may have thousands of buckets at once.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, BinaryIO

from rekindle.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from rekindle.datastream.connectors.files.folders import disk_faults
from rekindle.datastream.connectors.files.names import WriterId

#: The limits of the buffers of all files of a writer together: bytes of row files, records of bulk files.
_ROW_BYTES = 64 << 20
_BULK_RECORDS = 1 << 18
#: The limits of the buffer of one file, which is written in one piece.
_PIECE_BYTES = 1 << 20
_PIECE_RECORDS = 1 << 16


class Part(ABC):
    """One file in progress."""

    def __init__(self, folder: str, name: str, writer_id: WriterId, now_ms: int) -> None:
        self.folder = folder
        self.name = name
        self.staging = writer_id.staging_name(name)
        self.path = os.path.join(folder, self.staging)
        self.begun_ms = self.written_ms = now_ms
        #: Whether a record was added since `written_ms` was last set.
        self.touched = True
        #: The number of bytes written to the disk.
        self.size = 0

    @abstractmethod
    def add(self, element: Any) -> int:
        """Add a record. Returns the size of the buffer, in bytes (rows) or records (bulk)."""

    @abstractmethod
    def write_out(self) -> None:
        """Write the buffer to the file."""

    @abstractmethod
    def finish(self) -> None:
        """Write the buffer, sync and close the file. Afterwards `size` is the file's size."""

    def total(self) -> int:
        """Return the file's size with its buffer in bytes, as far as it is known."""
        return self.size

    def discard(self) -> None:
        """Delete the file, which will never be committed."""
        with suppress(OSError):
            os.unlink(self.path)

    def _create(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


class RowPart(Part):
    """A file whose records are encoded one by one."""

    def __init__(self, folder: str, name: str, writer_id: WriterId, now_ms: int, encoder: Encoder) -> None:
        super().__init__(folder, name, writer_id, now_ms)
        self._encode = encoder.encode
        self._buffer: list[bytes] = [encoder.header] if encoder.header else []
        self._bytes = len(encoder.header)

    @staticmethod
    def piece(parts: int) -> int:
        """Return how many bytes of one file may be buffered while there are `parts` files."""
        return max(4096, min(_PIECE_BYTES, _ROW_BYTES // parts))

    def add(self, element: Any) -> int:
        data = self._encode(element)
        self._buffer.append(data)
        self._bytes += len(data)
        return self._bytes

    def total(self) -> int:
        return self.size + self._bytes

    def write_out(self) -> None:
        self._write(sync=False)

    def finish(self) -> None:
        self._write(sync=True)

    def _write(self, sync: bool) -> None:
        with disk_faults(self.path):
            opened = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC) if self.size else self._create()
            try:
                unwritten = memoryview(b"".join(self._buffer))
                while unwritten:
                    unwritten = unwritten[os.write(opened, unwritten) :]
                self.size += self._bytes
                if sync:
                    os.fsync(opened)
            finally:
                os.close(opened)
        self._buffer, self._bytes = [], 0


class BulkPart(Part):
    """A file whose records are written many at a time. It is readable only after it is finished."""

    def __init__(self, folder: str, name: str, writer_id: WriterId, now_ms: int, factory: BulkWriterFactory) -> None:
        super().__init__(folder, name, writer_id, now_ms)
        self._factory = factory
        self._buffer: list[Any] = []
        self._file: BinaryIO | None = None
        self._writer: BulkWriter | None = None

    @staticmethod
    def piece(parts: int) -> int:
        """Return how many records of one file may be buffered while there are `parts` files."""
        return max(256, min(_PIECE_RECORDS, _BULK_RECORDS // parts))

    def add(self, element: Any) -> int:
        self._buffer.append(element)
        return len(self._buffer)

    def write_out(self) -> None:
        with disk_faults(self.path):
            if self._writer is None:
                self._file = os.fdopen(self._create(), "wb")
                self._writer = self._factory.create(self._file)
            self._writer.add_elements(self._buffer)
        self._buffer = []

    def finish(self) -> None:
        self.write_out()
        assert self._writer is not None
        assert self._file is not None
        with disk_faults(self.path):
            self._writer.finish()
            self._file.flush()
            self.size = os.fstat(self._file.fileno()).st_size
            os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        super().discard()
        with suppress(Exception):  # after a failure the writer may be in any state
            if self._writer is not None:
                self._writer.finish()
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
