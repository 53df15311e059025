"""The recorded input of a task that failed, as it lies beside the job's checkpoints. msgpack, never pickle (I20).

    magic (8 bytes) | format version (u16) | CRC-32 of the body (u32) | body

Records in it are encoded as on their way between tasks.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from rekindle.errors import CorruptCheckpointError
from rekindle.protocol import CheckpointOrder

MAGIC: Final = b"REKINPUT"
FORMAT_VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sHI")


class TimeRead(msgspec.Struct, array_like=True, frozen=True):
    """The times that a task read from its clock during an event, as columns of numbers (`runtime.recording`)."""

    ticks: bytes = b""
    firsts: bytes = b""
    walls: bytes = b""
    counts: bytes = b""


class Polled(msgspec.Struct, array_like=True, frozen=True):
    """The answer of a source's reader to one `poll`; its records are a chunk."""

    chunk: bytes
    splits: list[tuple[str, int]] | None = None
    finished: list[str] = []
    #: (tag, chunk) of values for side outputs.
    aside: list[tuple[str, bytes]] = []
    #: Whether the reader had no more.
    ended: bool = False
    #: Whether the records do not fit their declared type, so that they are pickled.
    pickled: bool = False


class Epoch(msgspec.Struct, tag="epoch"):
    """The task took part in an epoch, or began to."""

    max_records: int
    target_ms: float
    leave_after_ms: float | None
    aligned: dict[str, int]
    checkpoint: CheckpointOrder | None
    #: The heads of chains that had input left after the epoch before.
    backlogged: list[int] = []
    #: The number of records in the task's next slice: it reads its clock after each slice.
    slice_records: int = 1
    #: The chunks that arrived.
    chunks: list[bytes] = []
    #: The answer of its source's reader.
    polled: list[Polled] = []
    #: Whether the task had processed all input that was there.
    dry: bool = True
    #: The splits that the reader still had records of, if it said so.
    waiting_splits: list[str] | None = None
    #: The records that its source function emitted: chunks.
    emitted: list[tuple[bytes, bool]] = []
    time: TimeRead = TimeRead()


class Barrier(msgspec.Struct, tag="barrier"):
    """The task took its snapshot."""

    order: CheckpointOrder
    time: TimeRead = TimeRead()


class RecordedCompletion(msgspec.Struct, tag="completed"):
    """The task heard that a checkpoint is complete. `part`: all of it, all but the source, or the source alone."""

    id: int
    part: str
    time: TimeRead = TimeRead()


class RecordedAbort(msgspec.Struct, tag="aborted"):
    """The task heard that a checkpoint was aborted."""

    id: int
    time: TimeRead = TimeRead()


class SplitsAdded(msgspec.Struct, tag="splits"):
    """The driver found splits for the task's source."""

    splits: bytes
    time: TimeRead = TimeRead()


class Looked(msgspec.Struct, tag="looked"):
    """Between two epochs the task asked its operators when they need the next one."""

    time: TimeRead = TimeRead()


Event = Epoch | Barrier | RecordedCompletion | RecordedAbort | SplitsAdded | Looked


class Start(msgspec.Struct):
    """The start of a recorded task: the shares of its operators in the restored checkpoint, and its source's splits."""

    restored_id: int | None
    store_url: str | None = None
    root: str = ""
    #: Encoded `rescale.SubtaskShare`s.
    shares: list[bytes] = []
    splits: bytes = b""
    time: TimeRead = TimeRead()


class RecordedSegment(msgspec.Struct):
    """The events from a checkpoint's barrier, or from the start (None), to the next barrier."""

    checkpoint_id: int | None
    events: list[Event]


class RecordedFailure(msgspec.Struct, frozen=True):
    """The failure as it was reported."""

    operator: str
    summary: str
    traceback: str
    record: str | None


class Recording(msgspec.Struct):
    """The input of one failed task since its last completed checkpoint, with what else it needs to run again."""

    job_name: str
    job_id: str
    timeline: str
    #: The attempt's number over all drivers, and its number in its run.
    attempt: int
    restarts: int
    claimed_ms: int
    failed_ms: int
    task: str
    subtask: int
    parallelism: int
    #: The operators of the chain, the head first: uid and name.
    operators: list[tuple[str, str]]
    #: Operator uid -> number of key groups, of all operators of the job.
    max_parallelism: dict[str, int]
    #: Edge that chunks came over -> its name.
    edges: dict[int, str]
    #: The store and the folder of the job's own checkpoints.
    store_url: str
    root: str
    #: There while the recording reaches back to the task's start.
    start: Start | None
    segments: list[RecordedSegment]
    failure: RecordedFailure

    @property
    def bases(self) -> list[int | None]:
        """The checkpoints from which it can be replayed if they exist; None: a start without state."""
        return [
            self.start.restored_id
            if segment.checkpoint_id is None and self.start is not None
            else segment.checkpoint_id
            for segment in self.segments
        ]

    def events_since(self, place: int) -> Iterator[Event]:
        """The events from the segment at `place` on."""
        for segment in self.segments[place:]:
            yield from segment.events


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Recording).decode


def encode_recording(recording: Recording) -> Sequence[bytes]:
    """The recording as the blocks of a file."""
    body = _encode(recording)
    return [_HEADER.pack(MAGIC, FORMAT_VERSION, zlib.crc32(body)), body]


def decode_recording(data: bytes, where: str) -> Recording:
    """Decode a recording; CorruptCheckpointError, which names the file `where`, if the bytes are none.

    >>> decode_recording(b"PK", "orders/_replay/7.recording")
    Traceback (most recent call last):
    rekindle.errors.CorruptCheckpointError: orders/_replay/7.recording is not the recorded input of a task.
    """
    if len(data) < _HEADER.size or data[: len(MAGIC)] != MAGIC:
        raise CorruptCheckpointError(f"{where} is not the recorded input of a task.")
    _, version, checksum = _HEADER.unpack_from(data)
    if version != FORMAT_VERSION:
        raise CorruptCheckpointError(
            f"{where} has format {version}, which another version of Rekindle wrote: replay it with that version."
        )
    body = memoryview(data)[_HEADER.size :]
    if zlib.crc32(body) != checksum:
        raise CorruptCheckpointError(f"{where} is damaged: its checksum does not fit its content.")
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CorruptCheckpointError(f"{where} is damaged: {error}.") from error
