"""Streams of a file's bytes from an offset on: plain, decompressed, or recoded to UTF-8."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from rekindle.datastream.connectors.files.listing import FoundFile
from rekindle.errors import ConnectorError, GraphError

BLOCK_BYTES = 1 << 20
_DECOMPRESSORS: dict[str, Callable[[str], Any]] = {
    ".gz": lambda path: gzip.open(path, "rb"),
    ".gzip": lambda path: gzip.open(path, "rb"),
    ".bz2": lambda path: bz2.open(path, "rb"),
    ".xz": lambda path: lzma.open(path, "rb"),
}


class ByteStream(Protocol):
    """A stream of bytes, as `LineReader` needs it."""

    def read(self, length: int) -> bytes:
        """Return the next bytes, at most `length`; no bytes at the end."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def is_compressed(path: str) -> bool:
    """Return whether the file name has the suffix of a compressed file, which must be read from its beginning.

    >>> is_compressed("/data/orders.JSON.GZ")
    True
    """
    return os.path.splitext(path)[1].lower() in _DECOMPRESSORS


def checked_charset(where: str, charset: Any) -> str:
    """Return Python's canonical name of a character set. Refuses a name that Python does not know."""
    try:
        return codecs.lookup(charset).name
    except (LookupError, TypeError):
        raise GraphError(f"{where}: {charset!r} is no character set that Python knows; try 'UTF-8'.") from None


def has_newline_bytes(charset: str) -> bool:
    """Return whether a newline is the single byte 10 in this character set. Not so in UTF-16 and UTF-32.

    >>> has_newline_bytes("utf-8"), has_newline_bytes("utf-16")
    (True, False)
    """
    return "\n".encode(charset) == b"\n"


def open_stream(path: str, size: int, offset: int, charset: str) -> ByteStream:
    """Open the file's content from `offset` on.

    Offsets count the bytes that `read` returns, after decompression and recoding. So in a compressed or recoded file,
    all bytes before the offset are read and skipped.
    """
    if has_newline_bytes(charset) and not is_compressed(path):
        return _PlainStream(path, size, offset)
    stream: ByteStream = _DecompressedStream(path) if is_compressed(path) else _PlainStream(path, size, 0)
    if not has_newline_bytes(charset):
        stream = _RecodedStream(path, stream, charset)
    while offset > 0:
        skipped = stream.read(min(offset, BLOCK_BYTES))
        if not skipped:
            break
        offset -= len(skipped)
    return stream


def opened(path: str, open_file: Callable[[str], Any]) -> Any:
    """Open a file. If it cannot be opened, the error names the file."""
    try:
        return open_file(path)
    except FileNotFoundError:
        raise ConnectorError(
            f"The file {path} is gone: files must stay where they are until they are read, and until the checkpoint "
            "after that is complete."
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConnectorError(f"The file {path} cannot be read: {reason}.") from error


def check_unchanged(file: FoundFile | Any, size_now: int) -> None:
    """Refuse a file that is shorter than when it was found, because positions in it are no longer valid."""
    if size_now < file.size:
        raise ConnectorError(
            f"The file {file.path} had {file.size} bytes when it was found and has {size_now} now: files must not "
            "change once they are there."
        )


class _PlainStream:
    """The bytes of a plain file, up to the size at which it was found. Bytes appended later are not read."""

    def __init__(self, path: str, size: int, offset: int) -> None:
        self._path = path
        self._file = opened(path, lambda name: open(name, "rb", buffering=0))
        check_unchanged(FoundFile(path, size, 0), os.fstat(self._file.fileno()).st_size)
        self._file.seek(offset)
        self._left = max(0, size - offset)

    def read(self, length: int) -> bytes:
        try:
            data: bytes = self._file.read(min(length, self._left))
        except OSError as error:
            raise ConnectorError(f"The file {self._path} cannot be read: {error.strerror}.") from error
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()


class _DecompressedStream:
    """The content of a compressed file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = opened(path, _DECOMPRESSORS[os.path.splitext(path)[1].lower()])

    def read(self, length: int) -> bytes:
        try:
            data: bytes = self._file.read(length)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ConnectorError(f"The compressed file {self._path} is damaged or cut off: {error}.") from error
        return data

    def close(self) -> None:
        self._file.close()


class _RecodedStream:
    """The text of a stream in another character set, recoded to UTF-8."""

    def __init__(self, path: str, stream: ByteStream, charset: str) -> None:
        self._path = path
        self._stream = stream
        self._charset = charset
        self._decoder = codecs.getincrementaldecoder(charset)()
        self._read = 0  # bytes read from the file
        self._ready = b""

    def read(self, length: int) -> bytes:
        while not self._ready:
            block = self._stream.read(length)
            pending = len(self._decoder.getstate()[0])
            try:
                self._ready = self._decoder.decode(block, final=not block).encode("utf-8")
            except UnicodeDecodeError as error:
                raise undecodable(self._path, self._charset, self._read - pending + error.start) from error
            self._read += len(block)
            if not block:
                break
        data, self._ready = self._ready[:length], self._ready[length:]
        return data

    def close(self) -> None:
        self._stream.close()


def undecodable(path: str, charset: str, offset: int) -> ConnectorError:
    """Return the error for bytes that are not text in the given character set."""
    where = "of the unpacked content" if is_compressed(path) else "of the file"
    return ConnectorError(
        f"{path} is not {charset.upper()} text at offset {offset} {where}: give the format its charset, or repair it."
    )
