"""A store whose state files are copied to the local disk while they are written, and read from there while they can.

A copy is the file's content and a trailer: length (u64) and CRC-32 (u32), little endian. It is compared as a whole
before its first use. A copy that is missing or damaged is no error: the store has the file. A copy that cannot be
written is none either.
"""

from __future__ import annotations

import logging
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

from rekindle.checkpoint.paths import StateFileName, is_partial
from rekindle.checkpoint.store.port import Data, FileEntry, Store, blocks_of

_LOG = logging.getLogger("rekindle.checkpoint")
_TRAILER: Final = Struct("<QI")
_BLOCK_BYTES: Final = 8 << 20


class CopiedStore:
    """A `Store` with copies of its state files in a local folder.

    >>> import tempfile
    >>> from rekindle.checkpoint.store.memory import MemoryStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = CopiedStore(MemoryStore(), Path(folder))
    ...     store.put("orders/t/shared/1-1-op-0.state", b"hello")
    ...     store.read("orders/t/shared/1-1-op-0.state", 1, 3), store.from_copies, store.from_store
    (b'ell', {'1-1-op-0.state'}, set())
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self.url = store.url
        self.conditional = store.conditional
        self._opened: dict[str, _Copy | None] = {}
        #: The state files that were read here, and those that the store had to give.
        self.from_copies: set[str] = set()
        self.from_store: set[str] = set()

    def put(self, path: str, data: Data) -> None:
        """Write a file to the store, and a copy of a state file to the local folder."""
        name = copy_name(path)
        if name is None:
            self._store.put(path, data)
            return
        copying = _Copying(self._folder, name)
        try:
            self._store.put(path, copying.passed_on(blocks_of(data)))
            copying.finish()
        finally:
            copying.clean_up()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file to the store; it is no state file."""
        return self._store.put_if_absent(path, data)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read from the copy, or from the store if there is no whole one."""
        name = copy_name(path)
        copy = self._copy(name) if name is not None else None
        if name is not None:
            (self.from_store if copy is None else self.from_copies).add(name)
        return self._store.read(path, offset, length) if copy is None else copy.read(offset, length)

    def list(self, prefix: str = "") -> list[FileEntry]:
        """List the store's files."""
        return self._store.list(prefix)

    def delete(self, *paths: str) -> None:
        """Delete files from the store; copies are removed when no checkpoint needs them."""
        self._store.delete(*paths)

    def _copy(self, name: str) -> _Copy | None:
        if name not in self._opened:
            self._opened[name] = _open_copy(self._folder / name)
        return self._opened[name]


def copy_name(path: str) -> str | None:
    """The name of the copy of a state file; None if the path is none.

    >>> copy_name("orders/t/shared/1-1-op-0.state"), copy_name("orders/t/chk-1/_metadata")
    ('1-1-op-0.state', None)
    """
    name = path.rpartition("/")[2]
    return name if StateFileName.parse(name) is not None and not is_partial(name) else None


class _Copying:
    """Writes a copy while its content passes by. Errors of the local disk end the copy, nothing else."""

    def __init__(self, folder: Path, name: str) -> None:
        self._target = folder / name
        self._partial = folder / f"{name}.{secrets.token_hex(4)}.part"
        self._length = self._checksum = 0
        self._file: BinaryIO | None = None
        try:
            descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._file = open(descriptor, "wb", buffering=0)
        except OSError as error:
            self._give_up(error)

    def passed_on(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The blocks, each written on its way."""
        for block in blocks:
            self._write(block)
            self._length += len(block)
            self._checksum = zlib.crc32(block, self._checksum)
            yield block

    def _write(self, block: bytes) -> None:
        if self._file is None:
            return
        view = memoryview(block)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self._give_up(error)

    def finish(self) -> None:
        """Give the copy its name: the store has the file now."""
        self._write(_TRAILER.pack(self._length, self._checksum))
        if self._file is not None:
            with suppress(OSError):
                os.replace(self._partial, self._target)

    def clean_up(self) -> None:
        """Close the file, and remove what did not get its name."""
        if self._file is not None:
            self._file.close()
        with suppress(OSError):
            self._partial.unlink(missing_ok=True)

    def _give_up(self, error: OSError) -> None:
        _LOG.warning("No local copy of %s is kept: %s. A restart will read it from the store.", self._target, error)
        self.clean_up()
        self._file = None


class _Copy:
    """A copy that was compared with its checksum; it stays open, so that it can be removed meanwhile."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._length = length

    def read(self, offset: int, length: int | None) -> bytes:
        most = max(0, self._length - offset)
        return os.pread(self._file.fileno(), most if length is None else min(length, most), offset)


def _open_copy(path: Path) -> _Copy | None:
    try:
        file = path.open("rb", buffering=0)
    except OSError:
        return None
    with suppress(OSError):
        length = os.fstat(file.fileno()).st_size - _TRAILER.size
        if length >= 0 and _trailer_of(file, length) == (length, _checksum_of(file, length)):
            return _Copy(file, length)
    _LOG.warning("The local copy %s is damaged: its file is read from the store.", path)
    file.close()
    return None


def _trailer_of(file: BinaryIO, length: int) -> tuple[int, int]:
    stored_length, checksum = _TRAILER.unpack(os.pread(file.fileno(), _TRAILER.size, length))
    return stored_length, checksum


def _checksum_of(file: BinaryIO, length: int) -> int:
    checksum = 0
    for offset in range(0, length, _BLOCK_BYTES):
        checksum = zlib.crc32(os.pread(file.fileno(), min(_BLOCK_BYTES, length - offset), offset), checksum)
    return checksum
