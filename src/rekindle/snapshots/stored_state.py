"""The states of one operator in a checkpoint: which there are, and how their values are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import msgspec

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import KeyedPart, OperatorState, blob_size
from rekindle.checkpoint.parts import by_key_group
from rekindle.checkpoint.read_state import read_parts
from rekindle.errors import IncompatibleStateError, SerializationError
from rekindle.runtime.state.keyed_state_format import StatePart, decode_part
from rekindle.runtime.state.spec import Buffer, StateKind, StateSpec
from rekindle.runtime.state.ttl.expiry import TimedCodec
from rekindle.serde.class_free_decoding import class_free_decoder, encode_tagged, frozen
from rekindle.snapshots.stored_types import StateTypes, StoredType, state_types

# The states of an operator are looked for in so many bytes of its parts.
_SURVEYED_BYTES: Final = 64 << 20
_encode: Final = msgspec.msgpack.Encoder().encode


class ClassFreeCodec:
    """A codec that needs no class of the program: values are decoded as `serde.class_free_decoding` says."""

    def __init__(self, stored: StoredType, allow_pickle: bool = False, as_keys: bool = False) -> None:
        self.schema = stored.schema
        self._made_with = stored, allow_pickle, as_keys
        self._decode = class_free_decoder(allow_pickle).decode
        self._encode_one = encode_tagged if stored.tagged else _encode
        self._as_keys = as_keys

    def __reduce__(self) -> tuple[Any, ...]:
        return ClassFreeCodec, self._made_with

    def encode(self, value: Any, /) -> bytes:
        """Encode one value."""
        return self._encode_one(value)

    def decode(self, data: Buffer, /) -> Any:
        """Decode one value."""
        try:
            value = self._decode(data)
        except msgspec.DecodeError as error:
            raise SerializationError(f"A stored value is damaged: {error}.") from error
        return frozen(value) if self._as_keys else value

    def encode_all(self, values: list[Any], /) -> bytes:
        """Encode values as one array."""
        return _encode([msgspec.Raw(self.encode(value)) for value in values])

    def decode_all(self, data: Buffer, /) -> list[Any]:
        """Decode the bytes of `encode_all`."""
        values = self.decode(data)
        if not isinstance(values, list | tuple):
            raise SerializationError("Stored values are damaged: they are no array.")
        return list(values)


@dataclass(frozen=True)
class SavedState:
    """A keyed state as the newest part of a checkpoint describes it."""

    name: str
    kind: StateKind
    type_name: str
    schema: bytes
    types: StateTypes

    @classmethod
    def of(cls, part: StatePart) -> SavedState:
        """The state that a part belongs to."""
        return cls(part.name, part.kind, part.type_name, part.schema, state_types(part.schema))

    def spec(self, allow_pickle: bool = False) -> StateSpec:
        """The spec with which the engine's own code loads the state, without the program's classes."""
        values: Any = ClassFreeCodec(self.types.values, allow_pickle)
        fields = ClassFreeCodec(self.types.fields, allow_pickle, as_keys=True)
        return StateSpec(
            self.name,
            self.kind,
            self.type_name,
            self.type_name,
            TimedCodec(values, lambda: 0) if self.types.timed else values,
            fields if self.kind is StateKind.MAP else None,
        )


def stored_states(
    snapshot: LoadedCheckpoint, operator: OperatorState, names: Sequence[str] | None = None
) -> list[SavedState]:
    """The keyed states of an operator, as its parts name them; with `names` these alone, in their order.

    Parts are read up to a limit, enough to see each state of any usual operator; until all `names` are found, all are.
    """
    found: dict[str, SavedState] = {}
    parts = keyed_parts(operator)
    sizes = list(accumulate(blob_size(part.blob) for part in parts))
    for index, _, part in state_parts(snapshot, parts):
        if sizes[index] > _SURVEYED_BYTES and (names is None or found.keys() >= set(names)):
            break
        found[part.name] = SavedState.of(part)
    return list(found.values()) if names is None else _chosen(found, names, operator)


def _chosen(found: Mapping[str, SavedState], names: Sequence[str], operator: OperatorState) -> list[SavedState]:
    unknown = [name for name in names if name not in found]
    if unknown:
        there = ", ".join(f"'{name}'" for name in found) or "none"
        raise IncompatibleStateError(f"Operator '{operator.name}' has no keyed state '{unknown[0]}': it has {there}.")
    return [found[name] for name in names]


def keyed_parts(operator: OperatorState) -> list[KeyedPart]:
    """The parts of an operator's keyed state, by key group, oldest first."""
    return in_order(part for subtask in operator.subtasks for part in subtask.keyed)


def in_order(parts: Iterable[KeyedPart]) -> list[KeyedPart]:
    """Parts by key group, oldest first."""
    return [part for group in by_key_group(parts).values() for part in group]


def state_parts(snapshot: LoadedCheckpoint, parts: Sequence[KeyedPart]) -> Iterator[tuple[int, int, StatePart]]:
    """Yield (index of the part, key group, operations on one state), in the order in which they apply."""
    for index, (group, data) in enumerate(read_parts(snapshot.store, snapshot.root, parts)):
        for part in decode_part(group, data):
            yield index, group, part
