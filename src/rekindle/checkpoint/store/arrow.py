"""The checkpoint store on HDFS, through pyarrow's file systems."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import fs

from rekindle.checkpoint.paths import checked_path
from rekindle.checkpoint.store.local import PARTIAL_SUFFIX
from rekindle.checkpoint.store.port import Data, FileEntry, blocks_of
from rekindle.errors import MissingFileError, StoreError


class ArrowStore:
    """A `Store` in a directory of a `pyarrow.fs.FileSystem`.

    Files appear by a rename. Arrow has no rename that fails if the target exists: `put_if_absent` looks first, which
    does not exclude a second writer.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     store = ArrowStore(fs.LocalFileSystem(), directory, "file://" + directory)
    ...     store.put("orders/a", b"hello")
    ...     store.read("orders/a", 1, 3), store.conditional
    (b'ell', False)
    """

    def __init__(self, files: fs.FileSystem, directory: str, url: str) -> None:
        self.url = url
        self.conditional = False
        self._files = files
        self._directory = directory.rstrip("/")

    @classmethod
    def open(cls, url: str) -> ArrowStore:
        """The store at an hdfs:// URL; Hadoop's client libraries must be on this machine."""
        try:
            files, directory = fs.FileSystem.from_uri(url)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"The store at '{url}' cannot be opened ({_first_line(error)}): HDFS needs Hadoop's client, found "
                "through HADOOP_HOME and CLASSPATH (`hadoop classpath --glob`)."
            ) from error
        return cls(files, directory, url.rstrip("/"))

    def put(self, path: str, data: Data) -> None:
        """Write a file; one of that name is replaced."""
        target = self._resolve(path)
        with self._faults("write", path), self._written(target, data) as partial:
            if self._info(target).type is not fs.FileType.NotFound:
                self._files.delete_file(target)
            self._files.move(partial, target)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file unless one of that name is found; a second writer at the same time is not noticed."""
        target = self._resolve(path)
        with self._faults("write", path):
            if self._info(target).type is not fs.FileType.NotFound:
                return False
            with self._written(target, data) as partial:
                self._files.move(partial, target)
        return True

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's bytes from `offset`, at most `length`."""
        target = self._resolve(path)
        with self._faults("read", path):
            if self._info(target).type is not fs.FileType.File:
                raise FileNotFoundError(target)
            with self._files.open_input_file(target) as file:
                size = file.size()
                end = size if length is None else min(size, offset + length)
                return bytes(file.read_at(end - offset, offset)) if end > offset else b""

    def list(self, prefix: str = "") -> list[FileEntry]:
        """Every file below `prefix`, by path."""
        start = self._resolve(prefix) if prefix else self._directory
        with self._faults("list", prefix or "."):
            found = self._files.get_file_info(fs.FileSelector(start, allow_not_found=True, recursive=True))
        return sorted(
            FileEntry(info.path[len(self._directory) + 1 :], info.size)
            for info in found
            if info.type is fs.FileType.File
        )

    def delete(self, *paths: str) -> None:
        """Remove files; folders stay."""
        for path in paths:
            target = self._resolve(path)
            with self._faults("delete", path), contextlib.suppress(FileNotFoundError):
                self._files.delete_file(target)

    def _resolve(self, path: str) -> str:
        return f"{self._directory}/{checked_path(path)}"

    def _info(self, target: str) -> Any:
        return self._files.get_file_info([target])[0]

    @contextlib.contextmanager
    def _written(self, target: str, data: Data) -> Iterator[str]:
        partial = f"{target}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}"
        self._files.create_dir(target.rpartition("/")[0], recursive=True)
        try:
            with self._files.open_output_stream(partial) as stream:
                for block in blocks_of(data):
                    stream.write(block)
            yield partial
        finally:
            with contextlib.suppress(OSError):
                if self._info(partial).type is not fs.FileType.NotFound:
                    self._files.delete_file(partial)

    @contextlib.contextmanager
    def _faults(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if verb != "read":
                raise StoreError(f"Cannot {verb} '{path}' at {self.url}: {_first_line(error)}.") from error
            raise MissingFileError(f"There is no file '{path}' at {self.url}.") from error
        except PermissionError as error:
            raise StoreError(
                f"{self.url} does not let this user {verb} '{path}': check the rights of the directory."
            ) from error
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"Cannot {verb} '{path}' at {self.url}: {_first_line(error)}.", retryable=True) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
