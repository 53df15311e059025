"""State files: the parts of a subtask's state in few large writes and reads, with a checksum per part."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, Protocol, TypeVar

from rekindle.checkpoint.manifest import Blob, FileRef
from rekindle.checkpoint.paths import below
from rekindle.checkpoint.store.port import Store
from rekindle.errors import CheckpointError, CorruptCheckpointError, MissingFileError

#: A subtask's state up to this size is kept in the manifest, without a file.
INLINE_BYTES: Final = 4 << 10
# Large, so that writes are few: each waits for the interpreter's lock beside a busy thread.
_BLOCK_BYTES: Final = 2 << 20
# Reading across a gap this small costs less than another read.
_GAP_BYTES: Final = 64 << 10
# Parts of many files are read side by side: together their blocks take no more.
_HELD_BYTES: Final = 32 << 20

T = TypeVar("T")


class Streamed(Protocol):
    """A part that is not in memory as a whole: its length is known, its content comes block by block."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...


Part = bytes | Streamed


class PartWriter(Protocol):
    """Stores parts of state; each part has a tag, which the writer passes through."""

    def write(self, parts: Iterable[tuple[T, Part]]) -> list[tuple[T, Blob]]:
        """Store the parts; returns tags and blobs for the manifest, in the same order."""
        ...


class StateFileWriter:
    """Writes the parts of one subtask to one file, or to the manifest if their total size is small.

    Parts are read one by one while the file is written, so that they need not all be in memory.

    >>> from rekindle.checkpoint.store.memory import MemoryStore
    >>> store = MemoryStore()
    >>> StateFileWriter(store, "orders/t", "shared/1-1-op-0.state", inline_bytes=3).write([("a", b"12"), ("b", b"34")])
    [('a', FileRef(path='shared/1-1-op-0.state', offset=0, length=2, crc32=1330857165)), ...]
    >>> store.read("orders/t/shared/1-1-op-0.state")
    b'1234'
    """

    def __init__(self, store: Store, root: str, reference: str, *, inline_bytes: int = INLINE_BYTES) -> None:
        """`root` is the manifest's, `reference` the file's path below it (`paths.shared_reference`)."""
        self._store = store
        self._path = below(root, reference)
        self._reference = reference
        self._inline_bytes = inline_bytes

    def write(self, parts: Iterable[tuple[T, Part]]) -> list[tuple[T, Blob]]:
        """Write the file durably, unless all parts fit into the manifest."""
        first: list[tuple[T, Part]] = []
        size = 0
        remaining = iter(parts)
        for tag, data in remaining:
            first.append((tag, data))
            size += len(data)
            if size > self._inline_bytes:
                break
        else:
            return [(tag, _whole(data)) for tag, data in first]
        written: list[tuple[T, Blob]] = []
        self._store.put(self._path, self._blocks(chain(first, remaining), written))
        return written

    def _blocks(self, parts: Iterable[tuple[T, Part]], written: list[tuple[T, Blob]]) -> Iterator[bytes]:
        block: list[bytes] = []
        waiting = offset = 0
        for tag, data in parts:
            length = checksum = 0
            for piece in (data,) if isinstance(data, bytes) else data:
                length += len(piece)
                checksum = zlib.crc32(piece, checksum)
                waiting += len(piece)
                block.append(piece)
                if waiting >= _BLOCK_BYTES:
                    yield b"".join(block)
                    block, waiting = [], 0
            written.append((tag, FileRef(self._reference, offset, length, checksum)))
            offset += length
        if block:
            yield b"".join(block)


class InlineWriter:
    """Writes the parts of one subtask to the manifest: for checkpoints in the driver's memory.

    >>> InlineWriter("'count' (1/2)", max_bytes=3).write([("a", b"12"), ("b", b"34")])
    Traceback (most recent call last):
    rekindle.errors.CheckpointError: The state of 'count' (1/2) is larger than 3 bytes, ...
    """

    def __init__(self, owner: str, max_bytes: int) -> None:
        self._owner = owner
        self._max_bytes = max_bytes

    def write(self, parts: Iterable[tuple[T, Part]]) -> list[tuple[T, Blob]]:
        """Keep the parts as blobs; CheckpointError, with the owner's name, if they are too large."""
        kept: list[tuple[T, Blob]] = []
        size = 0
        for tag, data in parts:
            size += len(data)
            if size > self._max_bytes:
                raise CheckpointError(
                    f"The state of {self._owner} is larger than {self._max_bytes} bytes, the maximum permitted "
                    "memory-backed state: set execution.checkpointing.dir to a directory, or give "
                    "JobManagerCheckpointStorage a larger max_state_size."
                )
            kept.append((tag, _whole(data)))
        return kept


def _whole(data: Part) -> bytes:
    return data if isinstance(data, bytes) else b"".join(data)


def read_blob(store: Store, root: str, blob: Blob) -> bytes:
    """Read a blob; CorruptCheckpointError if the bytes are not those that were written."""
    if not isinstance(blob, FileRef):
        return blob
    return _verified(_fetch(store, root, blob.path, blob.offset, blob.length), blob, root)


def read_blobs(store: Store, root: str, blobs: Sequence[Blob]) -> Iterator[bytes]:
    """Read blobs, in order. Neighbours in a file are read together, and each read is kept until its last blob.

    This is cheap if blobs follow the order of their files, as the parts of key groups do. A key group may have deltas
    in more than a hundred files: the more files, the less is read of each at once.
    """
    refs = [blob for blob in blobs if isinstance(blob, FileRef)]
    windows = _windows(refs)
    users = Counter(windows[ref] for ref in refs)
    held: dict[FileRef, bytes] = {}
    for blob in blobs:
        if not isinstance(blob, FileRef):
            yield blob
            continue
        window = windows[blob]
        if window not in held:
            held[window] = _fetch(store, root, window.path, window.offset, window.length)
        begin = blob.offset - window.offset
        data = held[window][begin : begin + blob.length]
        users[window] -= 1
        if not users[window]:
            del held[window]
        yield _verified(data, blob, root)


def read_pieces(store: Store, root: str, blob: Blob) -> Iterator[bytes]:
    """Read a large blob piece by piece; its checksum is compared after the last piece."""
    if not isinstance(blob, FileRef):
        yield blob
        return
    checksum = length = 0
    for begin in range(0, blob.length, _BLOCK_BYTES):
        piece = _fetch(store, root, blob.path, blob.offset + begin, min(_BLOCK_BYTES, blob.length - begin))
        checksum = zlib.crc32(piece, checksum)
        length += len(piece)
        yield piece
    _verify(blob, root, length, checksum)


def _windows(refs: Iterable[FileRef]) -> dict[FileRef, FileRef]:
    """Reference -> the larger piece of its file that is read for it and its neighbours."""
    unique = set(refs)
    files = len({ref.path for ref in unique})
    most_bytes = max(_GAP_BYTES, min(_BLOCK_BYTES, _HELD_BYTES // max(files, 1)))
    windows: dict[FileRef, FileRef] = {}
    group: list[FileRef] = []
    end = 0

    def close() -> None:
        if group:
            first = group[0]
            window = FileRef(first.path, first.offset, end - first.offset, 0)
            windows.update(dict.fromkeys(group, window))
            group.clear()

    for ref in sorted(unique, key=lambda ref: (ref.path, ref.offset, ref.length)):
        ref_end = ref.offset + ref.length
        if group and (
            ref.path != group[0].path or ref.offset > end + _GAP_BYTES or ref_end - group[0].offset > most_bytes
        ):
            close()
        end = max(end, ref_end) if group else ref_end
        group.append(ref)
    close()
    return windows


def _fetch(store: Store, root: str, reference: str, offset: int, length: int) -> bytes:
    path = below(root, reference)
    try:
        return store.read(path, offset, length)
    except MissingFileError as error:
        raise CorruptCheckpointError(f"The state file {path} is missing.") from error


def _verified(data: bytes, ref: FileRef, root: str) -> bytes:
    _verify(ref, root, len(data), zlib.crc32(data))
    return data


def _verify(ref: FileRef, root: str, length: int, checksum: int) -> None:
    path = below(root, ref.path)
    if length != ref.length:
        raise CorruptCheckpointError(f"The state file {path} is truncated: it ends within bytes that are needed.")
    if checksum != ref.crc32:
        raise CorruptCheckpointError(
            f"The state file {path} is damaged: the checksum of the {ref.length} bytes at {ref.offset} does not fit."
        )
