"""Committables in a checkpoint: a short head, followed by the content of the committable's file if it has one (I18).

Each committable is one part of a subtask's state, so that it goes whole to one subtask at any parallelism.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import msgspec

from rekindle.errors import CheckpointError, CorruptCheckpointError, SerializationError

_BLOCK_BYTES: Final = 4 << 20
_LENGTH: Final = struct.Struct("<I")


class CommittableHead(msgspec.Struct, array_like=True, frozen=True):
    """A committable without the content of its file."""

    #: The checkpoint at whose barrier the writer handed it over.
    checkpoint_id: int
    #: How often its commit was tried before.
    retries: int
    #: The committable as bytes, by the sink's serializer or the tagged codec; for a file, its metadata.
    payload: bytes
    #: The name of the file whose content follows the head.
    file_name: str | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CommittableHead).decode


@dataclass(frozen=True)
class StoredCommittable:
    """A committable on its way into a checkpoint; its file is read as it is written, block by block.

    >>> [bytes(block) for block in StoredCommittable(CommittableHead(7, 0, b"x"))]
    [b'\\x07\\x00\\x00\\x00\\x94\\x07\\x00\\xc4\\x01x\\xc0']
    """

    head: CommittableHead
    path: str | None = None

    def __len__(self) -> int:
        return len(_framed(self.head)) + (os.stat(self.path).st_size if self.path is not None else 0)

    def __iter__(self) -> Iterator[bytes]:
        yield _framed(self.head)
        if self.path is not None:
            yield from _content(self.path)


def read_committable(pieces: Iterator[bytes], target: str) -> CommittableHead:
    """Read a committable; write the content of its file, if it has one, to the path `target`."""
    held = _at_least(_LENGTH.size, b"", pieces)
    length = _LENGTH.size + _LENGTH.unpack_from(held)[0]
    held = _at_least(length, held, pieces)
    head = _decoded(held[_LENGTH.size : length])
    if head.file_name is None:
        for _ in pieces:  # the checksum is compared after the last piece
            pass
        return head
    with open(target, "wb") as file:
        file.write(held[length:])
        _write_all(file, pieces)
    return head


def _framed(head: CommittableHead) -> bytes:
    data = _encode(head)
    return _LENGTH.pack(len(data)) + data


def _content(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block
    except FileNotFoundError:
        raise CheckpointError(
            f"The file {path}, which waits to be committed, is gone: a committer copies or links it, and leaves it "
            "where it is."
        ) from None


def _at_least(size: int, held: bytes, pieces: Iterator[bytes]) -> bytes:
    while len(held) < size:
        piece = next(pieces, None)
        if piece is None:
            raise CorruptCheckpointError("A committable in the checkpoint ends too early.")
        held += piece
    return held


def _decoded(data: bytes) -> CommittableHead:
    try:
        return _decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"A committable in the checkpoint is damaged: {error}") from error


def _write_all(file: BinaryIO, pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        file.write(piece)
