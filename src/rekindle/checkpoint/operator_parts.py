"""Operator state as bytes, and who gets what of it at another parallelism. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from rekindle.errors import SerializationError

FORMAT_VERSION: Final = 1

T = TypeVar("T")


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


# ---------------------------------------------------------------------------------------------------- redistribution


def split_share(lists: Sequence[Sequence[T]], parallelism: int, subtask: int) -> list[T]:
    """One subtask's elements of `redistribute_split`."""
    if len(lists) == parallelism:
        return list(lists[subtask])
    return [element for elements in lists for element in elements][subtask::parallelism]


def union_share(lists: Sequence[Sequence[T]], parallelism: int, subtask: int) -> list[T]:
    """One subtask's elements of `redistribute_union`."""
    return [element for elements in lists for element in elements]


def broadcast_share(lists: Sequence[Sequence[T]], parallelism: int, subtask: int) -> list[T]:
    """One subtask's elements of `redistribute_broadcast`."""
    return list(lists[subtask % len(lists)])


def redistribute_split(lists: Sequence[Sequence[T]], parallelism: int) -> list[list[T]]:
    """All elements, in order, dealt round robin; unchanged parallelism changes nothing.

    >>> redistribute_split([["a", "b", "c"], ["d"]], 3)
    [['a', 'd'], ['b'], ['c']]
    """
    return [split_share(lists, parallelism, subtask) for subtask in range(parallelism)]


def redistribute_union(lists: Sequence[Sequence[T]], parallelism: int) -> list[list[T]]:
    """All elements to everyone.

    >>> redistribute_union([["a"], ["b"]], 3)
    [['a', 'b'], ['a', 'b'], ['a', 'b']]
    """
    return [union_share(lists, parallelism, subtask) for subtask in range(parallelism)]


def redistribute_broadcast(lists: Sequence[Sequence[T]], parallelism: int) -> list[list[T]]:
    """Every subtask held the same: each new one takes that of an old one.

    >>> redistribute_broadcast([["a"], ["a"]], 3)
    [['a'], ['a'], ['a']]
    """
    return [broadcast_share(lists, parallelism, subtask) for subtask in range(parallelism)]


def operator_share(parts: Sequence[bytes], parallelism: int, subtask: int) -> bytes:
    """The parts of all old subtasks, in order, as the part of one new subtask."""
    decoded_parts = [{state.name: state for state in decode_operator_part(data)} for data in parts]
    names = dict.fromkeys(name for states in decoded_parts for name in states)
    result: list[OperatorStatePart] = []
    for name in names:
        held = [states.get(name) for states in decoded_parts]
        example = next(state for state in held if state is not None)
        if any(state is not None and state.distribution is not example.distribution for state in held):
            raise SerializationError(f"Operator state '{name}' was saved in different ways by different subtasks.")
        entries = _entries(example.distribution, held, parallelism, subtask)
        result.append(msgspec.structs.replace(example, entries=entries))
    return encode_operator_part(result)


def redistribute(parts: Sequence[bytes], parallelism: int) -> list[bytes]:
    """The parts of the old subtasks, in order, as parts for the new ones."""
    return [operator_share(parts, parallelism, subtask) for subtask in range(parallelism)]


def _entries(
    distribution: Distribution, held: Sequence[OperatorStatePart | None], parallelism: int, subtask: int
) -> list[bytes]:
    if distribution is Distribution.BROADCAST:
        return broadcast_share([state.entries for state in held if state is not None], parallelism, subtask)
    lists = [state.entries if state is not None else [] for state in held]
    share = split_share if distribution is Distribution.SPLIT else union_share
    return share(lists, parallelism, subtask)
