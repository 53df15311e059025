"""The format of keyed state: one part per key group, plain msgpack.

A part is a log: its operations are applied in order, on top of the parts before it. A full part starts from an empty
key group, a delta's part from its base snapshot. Keys, values, elements and fields are columns, each a single array as
its codec's `encode_all` writes it, so that millions of them take few calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import msgspec

from rekindle.checkpoint.statefile import Part
from rekindle.errors import SerializationError
from rekindle.runtime.immutability import all_immutable
from rekindle.runtime.state.deferred_capture import Deferred
from rekindle.runtime.state.spec import Codec, StateKind, StateSpec

#: None among single values (operator state); no codec produces an empty string.
NONE_VALUE: Final = b""
# A list operation that replaces the list; else the length that it appends to.
REPLACE: Final = -1


class StatePart(msgspec.Struct, array_like=True, frozen=True):
    """Operations on one state in one key group, in their order; a key may have several.

    Operations of value-like states are an array of values, nil where a value was removed.
    """

    name: str
    kind: StateKind
    type_name: str
    keys: msgspec.Raw
    operations: msgspec.Raw
    #: What keys and values were written with (`type_schema.decode_state_schema`).
    schema: bytes


class ListOperations(msgspec.Struct, array_like=True, frozen=True):
    """Per key: REPLACE or the length that is appended to, and the number of its elements."""

    bases: list[int]
    lengths: list[int]
    elements: msgspec.Raw


class MapOperations(msgspec.Struct, array_like=True, frozen=True):
    """Per key: whether the map starts empty, and the number of its fields.

    `removed` are the indexes of removed fields; the other fields have one value each.
    """

    whole: list[bool]
    lengths: list[int]
    fields: msgspec.Raw
    removed: list[int]
    values: msgspec.Raw


_encode = msgspec.msgpack.Encoder().encode
_decode_part = msgspec.msgpack.Decoder(list[StatePart]).decode
_decode_lists = msgspec.msgpack.Decoder(ListOperations).decode
_decode_maps = msgspec.msgpack.Decoder(MapOperations).decode


def encoded(value: Any, codec: Codec) -> bytes:
    """Encode a single value."""
    return NONE_VALUE if value is None else codec.encode(value)


def decoded(data: bytes, codec: Codec) -> Any:
    """Decode a single value."""
    return None if data == NONE_VALUE else codec.decode(data)


class CapturedColumn:
    """Values captured at the cut: by reference if they are immutable, else encoded at once (I13)."""

    __slots__ = ("_codec", "_data", "values")

    def __init__(self, values: list[Any], codec: Codec, checked: bool = False) -> None:
        """`checked`: the values are immutable, or are encoded before user code runs again."""
        self.values = values
        self._codec = codec
        self._data: bytes | None = None
        if not checked and not all_immutable(values):
            self._data = codec.encode_all(values)
            self.values = []

    def encode(self) -> msgspec.Raw:
        """Encode the captured values; reads nothing that user code can still change."""
        return msgspec.Raw(self._data if self._data is not None else self._codec.encode_all(self.values))


class CapturedOperations(Protocol):
    """Operations on one kind of state, captured at the cut."""

    def encode(self) -> msgspec.Raw:
        """Encode the operations; may run on another thread while processing goes on."""
        ...


class CapturedLists:
    """Captured operations on list state."""

    __slots__ = ("bases", "elements", "lengths")

    def __init__(self, bases: list[int], lengths: list[int], elements: CapturedColumn) -> None:
        self.bases = bases
        self.lengths = lengths
        self.elements = elements

    def encode(self) -> msgspec.Raw:
        """Encode the operations."""
        return msgspec.Raw(_encode(ListOperations(self.bases, self.lengths, self.elements.encode())))


class CapturedMaps:
    """Captured operations on map state."""

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
        """Encode the operations."""
        operations = MapOperations(self.whole, self.lengths, self.fields.encode(), self.removed, self.values.encode())
        return msgspec.Raw(_encode(operations))


class CapturedState:
    """Operations on one state in one key group, captured at the cut, not yet encoded."""

    __slots__ = ("keys", "operations", "spec")

    def __init__(self, spec: StateSpec, keys: list[Any], operations: CapturedOperations) -> None:
        self.spec = spec
        self.keys = keys
        self.operations = operations

    def encode(self, key_codec: Codec) -> StatePart:
        """Encode the captured values; reads nothing that user code can still change."""
        spec = self.spec
        keys = msgspec.Raw(key_codec.encode_all(self.keys))
        schema = spec.stored_schema(key_codec.schema)
        return StatePart(spec.name, spec.kind, spec.type_name, keys, self.operations.encode(), schema)


class GroupCapture(Protocol):
    """A whole key group, captured at the cut."""

    key_group: int

    def encode(self) -> Part:
        """Encode the part; may run on another thread while processing goes on."""
        ...


class CapturedGroup:
    """One key group's part of a snapshot: captured at the cut, encoded later, on any thread."""

    __slots__ = ("_carried", "_key_codec", "deferred", "key_group", "states")

    def __init__(self, key_group: int, key_codec: Codec, carried: Iterable[StatePart] = ()) -> None:
        self.key_group = key_group
        self.states: list[CapturedState] = []
        #: States whose rows are read when they are encoded.
        self.deferred: list[Deferred[CapturedState | None]] = []
        self._key_codec = key_codec
        self._carried = list(carried)

    def encode(self) -> bytes:
        """Encode the part."""
        later = [deferred.result() for deferred in self.deferred]
        states = [state.encode(self._key_codec) for state in (*self.states, *later) if state is not None]
        return encode_group(self._carried + states)

    def __bool__(self) -> bool:
        return bool(self.states or self._carried or self.deferred)


class CapturedDelta:
    """The changes since a completed snapshot, captured at the cut: one part per key group that changed."""

    __slots__ = ("_deferred", "_groups", "_key_codec", "whole")

    def __init__(
        self,
        groups: dict[int, CapturedGroup],
        whole: list[GroupCapture],
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
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""
        for group in self.groups:
            yield group.key_group, group.encode()


def encode_group(states: list[StatePart]) -> bytes:
    """Encode the part of a key group."""
    return _encode(states)


class PieceList(Protocol):
    """Keeps pieces of data in order; they may be read several times."""

    def append(self, piece: bytes, /) -> None: ...
    def __iter__(self) -> Iterator[bytes]: ...


class GroupPieces:
    """The encoded part of a large key group, state by state: it need not be in memory in one piece.

    >>> state = StatePart("count", StateKind.VALUE, "long", msgspec.Raw(b"\\x90"), msgspec.Raw(b"\\x90"), b"")
    >>> counts = 0, 15, 16, 70_000
    >>> all(b"".join(GroupPieces([state] * count, [])) == encode_group([state] * count) for count in counts)
    True
    """

    def __init__(self, states: Iterable[StatePart], kept: PieceList) -> None:
        """`kept` is where the encoded states are kept."""
        self._kept = kept
        count = length = 0
        for state in states:
            encoded = _encode(state)
            kept.append(encoded)
            count += 1
            length += len(encoded)
        self._begin = _array_header(count)
        self._length = length + len(self._begin)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        yield self._begin
        yield from self._kept


def _array_header(length: int) -> bytes:
    """How msgpack begins an array."""
    if length < 16:
        return bytes([0x90 | length])
    return b"\xdc" + length.to_bytes(2) if length < 1 << 16 else b"\xdd" + length.to_bytes(4)


def decode_part(key_group: int, data: bytes) -> list[StatePart]:
    """Decode the operations of a part, per state; their values stay encoded."""
    try:
        return _decode_part(data)
    except msgspec.DecodeError as error:
        raise SerializationError(f"The state of key group {key_group} is damaged: {error}") from error


def list_operations(part: StatePart) -> ListOperations:
    """Decode the operations of a list state."""
    return _decode_lists(part.operations)


def map_operations(part: StatePart) -> MapOperations:
    """Decode the operations of a map state."""
    return _decode_maps(part.operations)
