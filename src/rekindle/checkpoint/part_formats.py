"""The formats of operator state, source positions and task state in a checkpoint. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from rekindle.errors import SerializationError

FORMAT_VERSION: Final = 1


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
    #: Empty if there is a schema: older versions wrote the type's canonical name instead.
    fingerprint: str
    entries: list[bytes]
    #: The schema of the entries (`type_schema.decode_state_schema`); empty in parts of older versions.
    schema: bytes = b""


class _Part(msgspec.Struct, array_like=True, frozen=True):
    version: int
    states: list[OperatorStatePart]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Part).decode


def decode_operator_part(data: bytes) -> list[OperatorStatePart]:
    """Decode the states of one subtask; their entries stay encoded."""
    try:
        part = _decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"An operator's state is damaged: {error}") from error
    if part.version != FORMAT_VERSION:
        raise SerializationError(
            f"An operator's state has format {part.version}; this version of Rekindle reads {FORMAT_VERSION}: "
            "use the version that wrote it."
        )
    return part.states


def encode_operator_part(states: Sequence[OperatorStatePart]) -> bytes:
    """Encode the states of one subtask."""
    return _encode(_Part(FORMAT_VERSION, list(states)))


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
    version: int = FORMAT_VERSION
    #: Chunks that a source function had collected and its chain had not processed (unaligned checkpoints).
    in_flight: list[bytes] = []
    #: The schema of the records in these chunks (`type_schema.decode_schema`); older versions wrote none.
    in_flight_schema: bytes = b""
    #: Whether records of other subtasks are among them: the parallelism has changed since they were collected.
    in_flight_of_others: bool = False

    def encode(self) -> bytes:
        """Encode the state."""
        return _encode(self)

    @staticmethod
    def decode(data: bytes) -> SourceState:
        """Decode the state; SerializationError if the bytes are damaged or have another format."""
        return _decoded(data, _decode_source, "The positions of a source")


class TaskState(msgspec.Struct, array_like=True, frozen=True):
    """The state of a task itself, beside its operators, in a checkpoint (I1, I6)."""

    watermark: int
    idle: bool = False
    #: Channels, round-robin positions, watermark generators, in the tagged encoding; for the same parallelism only.
    details: bytes | None = None
    version: int = FORMAT_VERSION

    def encode(self) -> bytes:
        """Encode the state."""
        return _encode(self)

    @staticmethod
    def decode(data: bytes) -> TaskState:
        """Decode the state; SerializationError if the bytes are damaged or have another format."""
        return _decoded(data, _decode_task, "The watermarks of a task")


_S = TypeVar("_S", SourceState, TaskState)


def _decoded(data: bytes, decoder: msgspec.msgpack.Decoder[_S], subject: str) -> _S:
    try:
        state = decoder.decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"{subject} are damaged: {error}") from error
    if state.version != FORMAT_VERSION:
        raise SerializationError(
            f"{subject} have format {state.version}; this version of Rekindle reads {FORMAT_VERSION}: use the version "
            "that wrote it."
        )
    return state


_decode_source = msgspec.msgpack.Decoder(SourceState)
_decode_task = msgspec.msgpack.Decoder(TaskState)
