"""Keyed state as bytes: one part per key group, plain msgpack, a format version in front.

A part is a log: its operations are applied in order, on top of the parts before it. A full snapshot's part starts from
nothing, a delta's part from the snapshot it stands on. None as a value is written as the empty string, which no codec
produces; nil stands for "removed".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from rekindle.errors import SerializationError
from rekindle.runtime.state.immutable import is_immutable
from rekindle.runtime.state.spec import Codec, StateKind, StateSpec

FORMAT_VERSION: Final = 1
NONE_VALUE: Final = b""
# A list operation that replaces the list; else the length that it appends to.
REPLACE: Final = -1


class StatePart(msgspec.Struct, array_like=True, frozen=True):
    """Operations on one state in one key group; keys and operations go in pairs."""

    name: str
    kind: StateKind
    type_name: str
    fingerprint: str
    keys: list[bytes]
    operations: msgspec.Raw


class GroupPart(msgspec.Struct, array_like=True, frozen=True):
    """Everything that one snapshot says about one key group of one operator."""

    version: int
    states: list[StatePart]


# value-like: the value, nil when removed
ValueOperations = list[bytes | None]
# list: (REPLACE or the length before, elements)
ListOperations = list[tuple[int, list[bytes]]]
# map: (whether the map starts empty, fields with values, nil when removed)
MapOperations = list[tuple[bool, list[tuple[bytes, bytes | None]]]]

_encode = msgspec.msgpack.Encoder().encode
_decode_part = msgspec.msgpack.Decoder(GroupPart).decode
_decode_values = msgspec.msgpack.Decoder(ValueOperations).decode
_decode_lists = msgspec.msgpack.Decoder(ListOperations).decode
_decode_maps = msgspec.msgpack.Decoder(MapOperations).decode


class Encoded:
    """A value that was mutable at the cut and therefore encoded there (I13)."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Removed:
    """Stands for a removed map entry in captured operations."""


REMOVED: Final = Removed()


def capture(value: Any, codec: Codec) -> Any:
    """The value itself when nobody can change it any more, else its encoding."""
    return value if is_immutable(value) else Encoded(codec.encode(value))


def encoded(captured: Any, codec: Codec) -> bytes:
    """The bytes of a captured value."""
    if type(captured) is Encoded:
        return captured.data
    return NONE_VALUE if captured is None else codec.encode(captured)


def decoded(data: bytes, codec: Codec) -> Any:
    """The value behind the bytes of an operation."""
    return None if data == NONE_VALUE else codec.decode(data)


@dataclass
class CapturedState:
    """Operations on one state in one key group, taken at the cut, not yet encoded."""

    spec: StateSpec
    keys: list[Any]
    operations: list[Any]

    def encode(self, key_codec: Codec) -> StatePart:
        """To bytes; reads nothing that user code can still change."""
        operations = self._encoded_operations()
        keys = list(map(key_codec.encode, self.keys))
        spec = self.spec
        raw = msgspec.Raw(_encode(operations))
        return StatePart(spec.name, spec.kind, spec.type_name, spec.fingerprint, keys, raw)

    def _encoded_operations(self) -> ValueOperations | ListOperations | MapOperations:
        values, fields = self.spec.values, self.spec.fields
        if self.spec.kind is StateKind.LIST:
            return [(base, [encoded(value, values) for value in elements]) for base, elements in self.operations]
        if self.spec.kind is StateKind.MAP:
            assert fields is not None
            return [
                (
                    whole,
                    [
                        (encoded(field, fields), None if value is REMOVED else encoded(value, values))
                        for field, value in entries
                    ],
                )
                for whole, entries in self.operations
            ]
        return [None if value is None else encoded(value, values) for value in self.operations]


class CapturedGroup:
    """One key group's part of a snapshot: taken at the cut, encoded whenever, on any thread."""

    __slots__ = ("_carried", "_key_codec", "key_group", "states")

    def __init__(self, key_group: int, key_codec: Codec, carried: Iterable[StatePart] = ()) -> None:
        self.key_group = key_group
        self.states: list[CapturedState] = []
        self._key_codec = key_codec
        self._carried = list(carried)

    def encode(self) -> bytes:
        """The part's bytes."""
        states = [state.encode(self._key_codec) for state in self.states]
        return _encode(GroupPart(FORMAT_VERSION, self._carried + states))

    def __bool__(self) -> bool:
        return bool(self.states or self._carried)


def decode_part(key_group: int, data: bytes) -> list[StatePart]:
    """The operations of a part, per state, values still encoded."""
    try:
        part = _decode_part(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"The state of key group {key_group} is damaged: {error}") from error
    if part.version != FORMAT_VERSION:
        raise SerializationError(
            f"The state of key group {key_group} has format {part.version}; this version of Rekindle reads "
            f"{FORMAT_VERSION}: use the version that wrote it."
        )
    return part.states


def value_operations(part: StatePart) -> ValueOperations:
    """Operations of a value, reducing or aggregating state."""
    return _decode_values(part.operations)


def list_operations(part: StatePart) -> ListOperations:
    """Operations of a list state."""
    return _decode_lists(part.operations)


def map_operations(part: StatePart) -> MapOperations:
    """Operations of a map state."""
    return _decode_maps(part.operations)
