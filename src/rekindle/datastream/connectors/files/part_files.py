"""Files in progress: records wait in memory and are written in large pieces; finished, a file is whole on the disk.

A file of rows is opened for each piece and closed again: so a sink may have thousands of buckets at once.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, BinaryIO

from rekindle.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from rekindle.datastream.connectors.files.folders import disk_faults
from rekindle.datastream.connectors.files.names import Writing

#: Memory of all files of a writer together, before pieces are written.
_ROW_BYTES = 64 << 20
_BULK_RECORDS = 1 << 18
#: Of one file: what is written at once.
_PIECE_BYTES = 1 << 20
_PIECE_RECORDS = 1 << 16


class Part(ABC):
    """One file in progress."""

    def __init__(self, folder: str, name: str, writing: Writing, now_ms: int) -> None:
        self.folder = folder
        self.name = name
        self.staging = writing.staging_name(name)
        self.path = os.path.join(folder, self.staging)
        self.begun_ms = self.written_ms = now_ms
        #: Whether a record came since `written_ms` was looked at.
        self.touched = True
        #: Bytes that were written to the disk.
        self.size = 0

    @abstractmethod
    def add(self, element: Any) -> int:
        """Take a record; how much waits in memory now, in the unit of `piece`."""

    @abstractmethod
    def write_out(self) -> None:
        """Write what waits."""

    @abstractmethod
    def finish(self) -> None:
        """Write everything, durably, and close; `size` is then the file's."""

    def total(self) -> int:
        """Bytes of the file, as far as they are known."""
        return self.size

    def discard(self) -> None:
        """It will never be committed."""
        with suppress(OSError):
            os.unlink(self.path)

    def _create(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


class RowPart(Part):
    """A file of records that are encoded one by one."""

    def __init__(self, folder: str, name: str, writing: Writing, now_ms: int, encoder: Encoder) -> None:
        super().__init__(folder, name, writing, now_ms)
        self._encode = encoder.encode
        self._waiting: list[bytes] = [encoder.header] if encoder.header else []
        self._bytes = len(encoder.header)

    @staticmethod
    def piece(parts: int) -> int:
        """How many bytes of one file may wait, with so many files."""
        return max(4096, min(_PIECE_BYTES, _ROW_BYTES // parts))

    def add(self, element: Any) -> int:
        data = self._encode(element)
        self._waiting.append(data)
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
                waiting = memoryview(b"".join(self._waiting))
                while waiting:
                    waiting = waiting[os.write(opened, waiting) :]
                self.size += self._bytes
                if sync:
                    os.fsync(opened)
            finally:
                os.close(opened)
        self._waiting, self._bytes = [], 0


class BulkPart(Part):
    """A file of records that are written many at a time, and complete only when it is finished."""

    def __init__(self, folder: str, name: str, writing: Writing, now_ms: int, factory: BulkWriterFactory) -> None:
        super().__init__(folder, name, writing, now_ms)
        self._factory = factory
        self._waiting: list[Any] = []
        self._file: BinaryIO | None = None
        self._writer: BulkWriter | None = None

    @staticmethod
    def piece(parts: int) -> int:
        """How many records of one file may wait, with so many files."""
        return max(256, min(_PIECE_RECORDS, _BULK_RECORDS // parts))

    def add(self, element: Any) -> int:
        self._waiting.append(element)
        return len(self._waiting)

    def write_out(self) -> None:
        with disk_faults(self.path):
            if self._writer is None:
                self._file = os.fdopen(self._create(), "wb")
                self._writer = self._factory.create(self._file)
            self._writer.add_elements(self._waiting)
        self._waiting = []

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
        with suppress(Exception):  # after a failure a writer may be in any state
            if self._writer is not None:
                self._writer.finish()
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
