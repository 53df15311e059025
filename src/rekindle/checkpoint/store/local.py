"""The checkpoint store on a disk of this machine, or on one that every machine mounts.

A file is written under a temporary name, synced, and then linked or renamed to its final name; then the folder is
synced. So after a crash of the machine the file exists whole or not at all; `<name>.<random>.part` may be left over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

from rekindle.checkpoint.paths import checked_path
from rekindle.checkpoint.store.port import Data, FileEntry, blocks_of
from rekindle.errors import MissingFileError, StoreError
from rekindle.places import parse_place

PARTIAL_SUFFIX: Final = ".part"
#: State holds the job's data: other users of the machine may not read it.
OWNER_ONLY: Final = 0o600
#: The one option of a directory (`options_for`): permissions of its files, in octal digits.
PERMISSIONS: Final = "permissions"
_FULL: Final = {errno.EDQUOT, errno.EFBIG, errno.ENOSPC}
# Errors that may go away with time, or once an administrator has looked after the disk.
_RETRYABLE: Final = {
    *_FULL,
    errno.EAGAIN,
    errno.EBUSY,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ESTALE,
    errno.ETIMEDOUT,
}
_FOLDER_RACES: Final = 10


class LocalStore:
    """A `Store` in a directory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     store = LocalStore(Path(directory))
    ...     store.put("orders/a", b"hello")
    ...     store.read("orders/a", 1, 3), store.list()
    (b'ell', [FileEntry(path='orders/a', size=5)])
    """

    def __init__(self, directory: Path, file_mode: int = OWNER_ONLY) -> None:
        self.directory = directory
        self._file_mode = file_mode
        self.url = parse_place(str(directory.absolute())).url
        self.conditional = True

    def put(self, path: str, data: Data) -> None:
        """Write a file durably; one of that name is replaced."""
        target = self._resolve(path)
        with self._faults("write", path), self._written(target, data) as partial:
            os.replace(partial, target)
            _sync_folder(target.parent)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file durably unless there is one of that name."""
        target = self._resolve(path)
        with self._faults("write", path), self._written(target, data) as partial:
            try:
                os.link(partial, target)
            except OSError as error:
                # Over NFS the answer to a successful link may be lost: the number of links tells.
                if os.stat(partial).st_nlink != 2:
                    if isinstance(error, FileExistsError):
                        return False
                    raise
            _sync_folder(target.parent)
            return True

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's bytes from `offset`, at most `length`."""
        target = self._resolve(path)
        with self._faults("read", path), open(target, "rb") as file:
            file.seek(offset)
            return file.read() if length is None else file.read(length)

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Every file below `prefix`, by path."""
        start = self._resolve(prefix) if prefix else self.directory
        with self._faults("list", prefix or "."):
            return sorted(self._entries(start))

    def delete(self, *paths: str) -> None:
        """Remove files, and folders that become empty."""
        folders: dict[Path, None] = {}
        for path in paths:
            target = self._resolve(path)
            with self._faults("delete", path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(target)
                folders[target.parent] = None
        for folder in folders:
            self._prune(folder)

    # -- files and folders ---------------------------------------------------------------------------------------------

    def _resolve(self, path: str) -> Path:
        target = self.directory / checked_path(path)
        with self._faults("look up", path):
            inside = Path(os.path.realpath(target)).is_relative_to(os.path.realpath(self.directory))
        if not inside:
            raise StoreError(f"'{path}' leads out of the checkpoint directory {self.directory} through a link.")
        return target

    @contextlib.contextmanager
    def _written(self, target: Path, data: Data) -> Iterator[Path]:
        """Write and sync the content under a temporary name, which is removed afterwards."""
        partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
        try:
            with open(self._create(partial), "wb", buffering=0) as file:
                for block in blocks_of(data):
                    view = memoryview(block)
                    while view:
                        view = view[file.write(view) :]
                os.fsync(file.fileno())
            yield partial
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)

    def _create(self, partial: Path) -> int:
        """Create the file and its folders; try again if another process deletes an empty folder meanwhile."""
        made = False
        for _ in range(_FOLDER_RACES):
            with contextlib.suppress(FileNotFoundError):
                _make_folders(partial.parent, _folder_mode(self._file_mode))
                made = True
                return os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, self._file_mode)
        if not made:
            raise StoreError(f"The folder {partial.parent} cannot be made: choose a directory on another file system.")
        raise StoreError(f"The folder {partial.parent} goes away as soon as it is made.", retryable=True)

    def _entries(self, folder: Path) -> Iterator[FileEntry]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._entries(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                        size = entry.stat(follow_symlinks=False).st_size
                        yield FileEntry(os.path.relpath(entry.path, self.directory), size)

    def _prune(self, folder: Path) -> None:
        while folder != self.directory and folder.is_relative_to(self.directory):
            try:
                os.rmdir(folder)
            except OSError:  # not empty, or gone
                return
            folder = folder.parent

    @contextlib.contextmanager
    def _faults(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._fail(verb, path, error)

    def _fail(self, verb: str, path: str, error: OSError) -> NoReturn:
        reason = (error.strerror or str(error)).lower()
        if verb == "read" and error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
            raise MissingFileError(f"There is no file '{path}' in {self.directory}.") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and verb == "write":
            raise StoreError(
                f"The checkpoint directory {self.directory} cannot be written ({reason}): make it writable for this "
                "user, or name another one."
            ) from error
        advice = " Free space there, or name another directory." if error.errno in _FULL else ""
        raise StoreError(
            f"Cannot {verb} '{path}' in {self.directory}: {reason}.{advice}", retryable=error.errno in _RETRYABLE
        ) from error


def _folder_mode(file_mode: int) -> int:
    """Permissions of a folder: users who may read its files may list it."""
    return file_mode | (file_mode & 0o444) >> 2


def _make_folders(folder: Path, mode: int) -> None:
    """Make the folder and those above it, and sync each into its parent."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        try:
            os.mkdir(new, mode)
        except FileExistsError:
            if not new.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{new} is not a directory") from None
        _sync_folder(new.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
