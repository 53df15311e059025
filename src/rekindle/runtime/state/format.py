"""Keyed state as bytes: one part per key group, plain msgpack, a format version in front.

A part is a log: its operations are applied in order, on top of the parts before it. A full snapshot's part starts from
nothing, a delta's part from the snapshot it stands on. Keys, values, elements and fields are columns, each a single
array as its codec's `encode_all` writes it, so that millions of them take few calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import msgspec

from rekindle.errors import SerializationError
from rekindle.runtime.state.deferred import Deferred
from rekindle.runtime.state.immutable import all_immutable
from rekindle.runtime.state.spec import Codec, StateKind, StateSpec

FORMAT_VERSION: Final = 2
#: None among single values (operator state); no codec produces an empty string.
NONE_VALUE: Final = b""
# A list operation that replaces the list; else the length that it appends to.
REPLACE: Final = -1


class StatePart(msgspec.Struct, array_like=True, frozen=True):
    """Operations on one state in one key group; keys and operations go in pairs.

    Operations of value-like states are an array of values, nil where a value was removed.
    """

    name: str
    kind: StateKind
    type_name: str
    fingerprint: str
    keys: msgspec.Raw
    operations: msgspec.Raw


class GroupPart(msgspec.Struct, array_like=True, frozen=True):
    """Everything that one snapshot says about one key group of one operator."""

    version: int
    states: list[StatePart]


class ListOperations(msgspec.Struct, array_like=True, frozen=True):
    """Per key: REPLACE or the length that it appends to, and how many of the elements are its own."""

    bases: list[int]
    lengths: list[int]
    elements: msgspec.Raw


class MapOperations(msgspec.Struct, array_like=True, frozen=True):
    """Per key: whether the map starts empty, and how many of the fields are its own.

    `removed` are the places of the fields that were removed; the others have one value each.
    """

    whole: list[bool]
    lengths: list[int]
    fields: msgspec.Raw
    removed: list[int]
    values: msgspec.Raw


_encode = msgspec.msgpack.Encoder().encode
_decode_part = msgspec.msgpack.Decoder(GroupPart).decode
_decode_lists = msgspec.msgpack.Decoder(ListOperations).decode
_decode_maps = msgspec.msgpack.Decoder(MapOperations).decode


def encoded(value: Any, codec: Codec) -> bytes:
    """The bytes of a single value."""
    return NONE_VALUE if value is None else codec.encode(value)


def decoded(data: bytes, codec: Codec) -> Any:
    """The value behind the bytes of a single value."""
    return None if data == NONE_VALUE else codec.decode(data)


class CapturedColumn:
    """Values at the cut: themselves when nobody can change them any more, else encoded there (I13)."""

    __slots__ = ("_codec", "_data", "values")

    def __init__(self, values: list[Any], codec: Codec, checked: bool = False) -> None:
        """`checked`: nobody can change them."""
        self.values = values
        self._codec = codec
        self._data: bytes | None = None
        if not checked and not all_immutable(values):
            self._data = codec.encode_all(values)
            self.values = []

    def encode(self) -> msgspec.Raw:
        """To bytes; reads nothing that user code can still change."""
        return msgspec.Raw(self._data if self._data is not None else self._codec.encode_all(self.values))


class CapturedOperations(Protocol):
    """Operations of one kind of state, taken at the cut."""

    def encode(self) -> msgspec.Raw:
        """To bytes; may run on another thread while processing goes on."""
        ...


class CapturedLists:
    """Operations on list states."""

    __slots__ = ("bases", "elements", "lengths")

    def __init__(self, bases: list[int], lengths: list[int], elements: CapturedColumn) -> None:
        self.bases = bases
        self.lengths = lengths
        self.elements = elements

    def encode(self) -> msgspec.Raw:
        """To bytes."""
        return msgspec.Raw(_encode(ListOperations(self.bases, self.lengths, self.elements.encode())))


class CapturedMaps:
    """Operations on map states."""

    __slots__ = ("fields", "lengths", "removed", "values", "whole")

    def __init__(
        self,
        whole: list[bool],
        lengths: list[int],
        fields: CapturedColumn,
        removed: list[int],
        values: CapturedColumn,
    ) -> None:
        self.whole = whole
        self.lengths = lengths
        self.fields = fields
        self.removed = removed
        self.values = values

    def encode(self) -> msgspec.Raw:
        """To bytes."""
        operations = MapOperations(self.whole, self.lengths, self.fields.encode(), self.removed, self.values.encode())
        return msgspec.Raw(_encode(operations))


class CapturedState:
    """Operations on one state in one key group, taken at the cut, not yet encoded."""

    __slots__ = ("keys", "operations", "spec")

    def __init__(self, spec: StateSpec, keys: list[Any], operations: CapturedOperations) -> None:
        self.spec = spec
        self.keys = keys
        self.operations = operations

    def encode(self, key_codec: Codec) -> StatePart:
        """To bytes; reads nothing that user code can still change."""
        spec = self.spec
        keys = msgspec.Raw(key_codec.encode_all(self.keys))
        return StatePart(spec.name, spec.kind, spec.type_name, spec.fingerprint, keys, self.operations.encode())


class CapturedGroup:
    """One key group's part of a snapshot: taken at the cut, encoded whenever, on any thread."""

    __slots__ = ("_carried", "_key_codec", "deferred", "key_group", "states")

    def __init__(self, key_group: int, key_codec: Codec, carried: Iterable[StatePart] = ()) -> None:
        self.key_group = key_group
        self.states: list[CapturedState] = []
        #: States that are captured when they are needed.
        self.deferred: list[Deferred[CapturedState | None]] = []
        self._key_codec = key_codec
        self._carried = list(carried)

    def encode(self) -> bytes:
        """The part's bytes."""
        later = [deferred.result() for deferred in self.deferred]
        states = [state.encode(self._key_codec) for state in (*self.states, *later) if state is not None]
        return _encode(GroupPart(FORMAT_VERSION, self._carried + states))

    def __bool__(self) -> bool:
        return bool(self.states or self._carried or self.deferred)


class CapturedDelta:
    """The changes since a completed snapshot, captured at the cut: one part per key group that changed."""

    __slots__ = ("_deferred", "_groups", "_key_codec", "whole")

    def __init__(
        self,
        groups: dict[int, CapturedGroup],
        whole: list[CapturedGroup],
        deferred: list[Deferred[dict[int, CapturedState]]],
        key_codec: Codec,
    ) -> None:
        #: Key groups that are written whole, so that their changes are not in the delta.
        self.whole = whole
        self._groups = groups
        self._deferred = deferred
        self._key_codec = key_codec

    @property
    def groups(self) -> list[CapturedGroup]:
        """The key groups that changed, in order."""
        while self._deferred:
            for group, state in self._deferred.pop().result().items():
                if group not in self._groups:
                    self._groups[group] = CapturedGroup(group, self._key_codec)
                self._groups[group].states.append(state)
        return [self._groups[group] for group in sorted(self._groups)]

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """(key group, part), ready for the store; may run on another thread while processing goes on."""
        for group in self.groups:
            yield group.key_group, group.encode()


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


def list_operations(part: StatePart) -> ListOperations:
    """Operations of a list state."""
    return _decode_lists(part.operations)


def map_operations(part: StatePart) -> MapOperations:
    """Operations of a map state."""
    return _decode_maps(part.operations)
