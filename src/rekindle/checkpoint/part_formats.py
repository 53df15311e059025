"""How operator state, source positions and task state are encoded in a checkpoint. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from rekindle.errors import SerializationError

FORMAT_VERSION: Final = 1


class Distribution(StrEnum):
    """Who gets what when an operator is restored, perhaps at another parallelism."""

    SPLIT = "split"
    UNION = "union"
    BROADCAST = "broadcast"


class OperatorStatePart(msgspec.Struct, array_like=True, frozen=True):
    """One state of one subtask: elements of a list, or (field, value) pairs of a broadcast map flattened."""

    name: str
    distribution: Distribution
    type_name: str
    fingerprint: str
    entries: list[bytes]


class _Part(msgspec.Struct, array_like=True, frozen=True):
    version: int
    states: list[OperatorStatePart]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Part).decode


def decode_operator_part(data: bytes) -> list[OperatorStatePart]:
    """The states of one subtask, entries still encoded."""
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
    """The states of one subtask as bytes."""
    return _encode(_Part(FORMAT_VERSION, list(states)))


def holds_union(data: bytes) -> bool:
    """Whether a subtask's part has lists that go to every subtask."""
    return any(state.distribution is Distribution.UNION for state in decode_operator_part(data))


class SplitState(msgspec.Struct, array_like=True, frozen=True):
    """A split of a source and how far it was read, both in the tagged encoding; None: the source has no splits."""

    split: bytes | None
    position: bytes
    #: The checkpoint that was the first to have this position; 0: not known.
    moved_at: int = 0


class SourceState(msgspec.Struct, array_like=True, frozen=True):
    """What a source's subtask has in a checkpoint.

    >>> SourceState.decode(SourceState([SplitState(b"s", b"p")]).encode()).splits
    [SplitState(split=b's', position=b'p', moved_at=0)]
    """

    splits: list[SplitState]
    version: int = FORMAT_VERSION
    #: Chunks that a source function had collected and its chain had no time for (unaligned checkpoints).
    in_flight: list[bytes] = []

    def encode(self) -> bytes:
        """As bytes."""
        return _encode(self)

    @staticmethod
    def decode(data: bytes) -> SourceState:
        """From bytes."""
        return _decoded(data, _decode_source, "The positions of a source")


class TaskState(msgspec.Struct, array_like=True, frozen=True):
    """What a task itself, beside its operators, has in a checkpoint (I1, I6)."""

    watermark: int
    idle: bool = False
    #: Channels, round-robin positions, generators: in the tagged encoding, for the same parallelism only.
    details: bytes | None = None
    version: int = FORMAT_VERSION

    def encode(self) -> bytes:
        """As bytes."""
        return _encode(self)

    @staticmethod
    def decode(data: bytes) -> TaskState:
        """From bytes."""
        return _decoded(data, _decode_task, "The watermarks of a task")


_S = TypeVar("_S", SourceState, TaskState)


def _decoded(data: bytes, decoder: msgspec.msgpack.Decoder[_S], what: str) -> _S:
    try:
        state = decoder.decode(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"{what} are damaged: {error}") from error
    if state.version != FORMAT_VERSION:
        raise SerializationError(
            f"{what} have format {state.version}; this version of Rekindle reads {FORMAT_VERSION}: use the version "
            "that wrote it."
        )
    return state


_decode_source = msgspec.msgpack.Decoder(SourceState)
_decode_task = msgspec.msgpack.Decoder(TaskState)
