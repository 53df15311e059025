"""The formats of operator state, source positions and task state in a checkpoint. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from rekindle.errors import SerializationError


class ListDistribution(StrEnum):
    """The way in which the elements of a list are shared out among the subtasks of a restored operator."""

    SPLIT = "split"
    UNION = "union"
    BROADCAST = "broadcast"


class OperatorStatePart(msgspec.Struct, array_like=True, frozen=True):
    """One state of one subtask: the elements of a list, or the flattened (field, value) pairs of a broadcast map."""

    name: str
    distribution: ListDistribution
    type_name: str
    entries: list[bytes]
    #: The schema of the entries (`type_schema.decode_state_schema`).
    schema: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[OperatorStatePart]).decode


def decode_operator_part(data: bytes) -> list[OperatorStatePart]:
    """Decode the states of one subtask; their entries stay encoded."""
    try:
        return _decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"An operator's state is damaged: {error}") from error


def encode_operator_part(states: Sequence[OperatorStatePart]) -> bytes:
    """Encode the states of one subtask."""
    return _encode(list(states))


def holds_union(data: bytes) -> bool:
    """Whether a subtask's part has union lists, which go to every subtask."""
    return any(state.distribution is ListDistribution.UNION for state in decode_operator_part(data))


class SplitState(msgspec.Struct, array_like=True, frozen=True):
    """A split of a source and its read position, in the tagged encoding; `split` is None in a source without splits."""

    split: bytes | None
    position: bytes
    #: The first checkpoint with this position; 0: not known.
    moved_at: int = 0


class SourceState(msgspec.Struct, array_like=True, frozen=True):
    """The state of a source's subtask in a checkpoint.

    >>> SourceState.decode(SourceState([SplitState(b"s", b"p")]).encode()).splits
    [SplitState(split=b's', position=b'p', moved_at=0)]
    """

    splits: list[SplitState]
    #: Chunks that a source function had collected and its chain had not processed (unaligned checkpoints).
    in_flight: list[bytes] = []
    #: The schema of the records in these chunks (`type_schema.decode_schema`); empty if there are none.
    in_flight_schema: bytes = b""
    #: Whether records of other subtasks are among them: the parallelism has changed since they were collected.
    in_flight_of_others: bool = False

    def encode(self) -> bytes:
        """Encode the state."""
        return _encode(self)

    @staticmethod
    def decode(data: bytes) -> SourceState:
        """Decode the state; SerializationError if the bytes are damaged."""
        return _decoded(data, _decode_source, "The positions of a source")


class TaskState(msgspec.Struct, array_like=True, frozen=True):
    """The state of a task itself, beside its operators, in a checkpoint (I1, I6)."""

    watermark: int
    idle: bool = False
    #: Channels, round-robin positions, watermark generators, in the tagged encoding; for the same parallelism only.
    details: bytes | None = None

    def encode(self) -> bytes:
        """Encode the state."""
        return _encode(self)

    @staticmethod
    def decode(data: bytes) -> TaskState:
        """Decode the state; SerializationError if the bytes are damaged."""
        return _decoded(data, _decode_task, "The watermarks of a task")


_S = TypeVar("_S", SourceState, TaskState)


def _decoded(data: bytes, decoder: msgspec.msgpack.Decoder[_S], subject: str) -> _S:
    try:
        return decoder.decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"{subject} are damaged: {error}") from error


_decode_source = msgspec.msgpack.Decoder(SourceState)
_decode_task = msgspec.msgpack.Decoder(TaskState)
