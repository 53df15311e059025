"""`_metadata`: the manifest of a checkpoint or savepoint. msgpack behind a header; never pickle (I20).

    magic (8 bytes) | format version (u16) | length of the body (u64) | CRC-32 of all this and the body (u32) | body

Everything is little endian. The format version is that of the whole checkpoint, of the manifest and of all state that
it refers to; any other is refused.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from rekindle.errors import CorruptCheckpointError

MAGIC: Final = b"REKINDLE"
#: The format that this version writes and reads.
FORMAT_VERSION: Final = 1
_LEADING: Final = struct.Struct("<8sHQ")
_CHECKSUM: Final = struct.Struct("<I")
HEADER_BYTES: Final = _LEADING.size + _CHECKSUM.size


class FileRef(msgspec.Struct, array_like=True, frozen=True):
    """Bytes in a state file; the path is relative to the manifest's root (`paths.root_of`)."""

    path: str
    offset: Annotated[int, msgspec.Meta(ge=0)]
    length: Annotated[int, msgspec.Meta(ge=0)]
    crc32: int


#: Bytes of state: in the manifest if they are few, else in a file.
Blob = bytes | FileRef


class PartKind(StrEnum):
    """Whether a part of a key group is complete, or changes the parts before it."""

    FULL = "full"
    DELTA = "delta"


class KeyedPart(msgspec.Struct, array_like=True, frozen=True):
    """One snapshot's part of one key group. `order` is the id of its checkpoint: parts are applied in this order."""

    key_group: int
    kind: PartKind
    order: int
    blob: Blob


#: The fields of `SubtaskState` that hold state, in the order of a state file: parts by key group, single blobs, lists.
BY_KEY_GROUP: Final = ("keyed", "timers", "raw_keyed")
SINGLE: Final = ("operator_state", "source", "task", "in_flight")
LISTS: Final = ("raw_operator", "committables")


class SubtaskState(msgspec.Struct, frozen=True):
    """The state of one subtask of an operator in a checkpoint.

    Every other type on the state's way is made of these fields: `CapturedOperator` fills them, `SubtaskShare` deals
    them out, `read_subtask` reads them.
    """

    subtask: int
    #: Whether its input had ended (I9).
    finished: bool = False
    keyed: list[KeyedPart] = []
    timers: list[KeyedPart] = []
    raw_keyed: list[KeyedPart] = []
    #: Lists and broadcast maps, as `part_formats.encode_operator_part` writes them.
    operator_state: Blob | None = None
    #: Whether some of these lists are union lists, which go to every subtask.
    union: bool = False
    raw_operator: list[Blob] = []
    #: Splits and positions, as `part_formats.SourceState` writes them.
    source: Blob | None = None
    #: Watermark, round-robin positions and the like, as `part_formats.TaskState` writes them.
    task: Blob | None = None
    #: Committables that a two-phase sink has not committed yet (I18).
    committables: list[Blob] = []
    #: Bytes that this checkpoint wrote, and bytes of all parts that it consists of.
    new_bytes: int = 0
    full_bytes: int = 0
    #: The size of each file that it refers to; `compaction` looks for files with few live bytes.
    file_bytes: dict[str, int] = {}
    #: Chunks that waited in front of the task, as `runtime.in_flight` writes them; with a chain's head.
    in_flight: Blob | None = None
    #: Whether records in flight are in `in_flight` or in `source`.
    has_in_flight: bool = False

    def blobs(self) -> Iterator[Blob]:
        """Every blob."""
        for name in BY_KEY_GROUP:
            for part in getattr(self, name):
                yield part.blob
        for name in SINGLE:
            if (blob := getattr(self, name)) is not None:
                yield blob
        for name in LISTS:
            yield from getattr(self, name)

    def holds(self, *fields: str) -> bool:
        """Whether there is state in one of these fields."""
        return any(getattr(self, name) not in (None, []) for name in fields)


class OperatorState(msgspec.Struct, frozen=True):
    """The subtasks of one operator, by index."""

    uid: str
    name: str
    parallelism: int
    max_parallelism: int
    subtasks: list[SubtaskState]
    #: The layout of the state that the engine keeps for the operator, as text (`OperatorDetails.state_layout`).
    layout: str = ""


class ManifestKind(StrEnum):
    """Whether the job or the user owns it."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"


class Manifest(msgspec.Struct, frozen=True):
    """A checkpoint or savepoint.

    >>> manifest = Manifest(ManifestKind.CHECKPOINT, 7, "0" * 32, "orders", "00000001-0a1b2c3d", 1, 1_700_000_000_000)
    >>> decode(encode(manifest)) == manifest
    True
    """

    kind: ManifestKind
    checkpoint_id: int
    job_id: str
    job_name: str
    timeline: str
    attempt: int
    timestamp_ms: int
    duration_ms: int = 0
    operators: list[OperatorState] = []
    format_version: int = FORMAT_VERSION
    #: `Claim.claimed_ms` of its attempt; 0 if no driver wrote it.
    claimed_ms: int = 0

    def blobs(self) -> Iterator[Blob]:
        """Every blob of every subtask."""
        for operator in self.operators:
            for subtask in operator.subtasks:
                yield from subtask.blobs()

    def references(self) -> Iterator[FileRef]:
        """Every reference into a file."""
        return (blob for blob in self.blobs() if isinstance(blob, FileRef))

    def files(self) -> dict[str, int]:
        """File that the manifest refers to -> length that it must have at least.

        >>> Manifest(ManifestKind.CHECKPOINT, 7, "", "", "", 1, 0).files()
        {}
        """
        needed: dict[str, int] = {}
        for ref in self.references():
            needed[ref.path] = max(needed.get(ref.path, 0), ref.offset + ref.length)
        return needed

    def new_bytes(self) -> int:
        """Bytes of state that this checkpoint wrote."""
        return sum(subtask.new_bytes for operator in self.operators for subtask in operator.subtasks)

    def full_bytes(self) -> int:
        """Bytes of state that this checkpoint consists of."""
        return sum(subtask.full_bytes for operator in self.operators for subtask in operator.subtasks)


_encode_body = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(Manifest).decode


def blob_size(blob: Blob) -> int:
    """Bytes of state behind a blob.

    >>> blob_size(b"abc"), blob_size(FileRef("shared/x", 10, 5, 0))
    (3, 5)
    """
    return blob.length if isinstance(blob, FileRef) else len(blob)


def encode(manifest: Manifest) -> bytes:
    """The bytes of `_metadata`."""
    body = _encode_body(manifest)
    leading = _LEADING.pack(MAGIC, FORMAT_VERSION, len(body))
    return leading + _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(leading))) + body


def decode(data: bytes, where: str = "The checkpoint's metadata") -> Manifest:
    """Decode a manifest; CorruptCheckpointError, which names the file `where`, if the bytes are not a manifest.

    >>> decode(b"PK is an archive, not a manifest", "orders/chk-7/_metadata")
    Traceback (most recent call last):
    rekindle.errors.CorruptCheckpointError: orders/chk-7/_metadata was not written by Rekindle.
    """
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise CorruptCheckpointError(f"{where} was not written by Rekindle.")
    if len(data) < HEADER_BYTES:
        raise CorruptCheckpointError(f"{where} is truncated: {len(data)} bytes are not even its header.")
    leading = data[: _LEADING.size]
    _, version, length = _LEADING.unpack(leading)
    (checksum,) = _CHECKSUM.unpack_from(data, _LEADING.size)
    body = memoryview(data)[HEADER_BYTES:]
    if version != FORMAT_VERSION:
        raise CorruptCheckpointError(
            f"{where} has format {version}, which another version of Rekindle wrote; this one reads format "
            f"{FORMAT_VERSION}: use the version that wrote it."
        )
    if len(body) < length:
        raise CorruptCheckpointError(f"{where} is truncated: {len(body)} of {length} bytes are there.")
    if len(body) > length or zlib.crc32(body, zlib.crc32(leading)) != checksum:
        raise CorruptCheckpointError(f"{where} is damaged: its checksum does not fit its content.")
    try:
        return _decode_body(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CorruptCheckpointError(f"{where} is damaged: {error}.") from error
