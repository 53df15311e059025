"""The spec of a registered state: name, kind and codecs, read from the user's descriptor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from rekindle.common.serializer import TypeSerializer
from rekindle.common.type_system.type_information import Converter
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rekindle.errors import RekindleError, StateAccessError
from rekindle.runtime.immutability import type_is_immutable
from rekindle.serde import value_codec_for
from rekindle.serde.serializer_codec import SerializerCodec
from rekindle.serde.type_schema import StateSchema, TypeSchema, encode_state_schema

if TYPE_CHECKING:
    from rekindle.runtime.state.ttl.expiry import TtlSettings


#: Errors that decoding bytes of another type may raise: from a codec, or from a class that is gone or changed.
UNREADABLE: Final = (
    msgspec.MsgspecError,
    RekindleError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ImportError,
)
# Bytes for a codec; a part holds them as raw msgpack.
Buffer = bytes | bytearray | memoryview | msgspec.Raw


class Codec(Protocol):
    """One value to bytes and back (`rekindle.serde.ValueCodec`)."""

    @property
    def schema(self) -> TypeSchema:
        """The schema of the values that it writes."""
        ...

    def encode(self, value: Any, /) -> bytes:
        """The value as bytes, never empty."""
        ...

    def decode(self, data: bytes, /) -> Any:
        """Decode the bytes that `encode` wrote."""
        ...

    def encode_all(self, values: list[Any], /) -> bytes:
        """Many values as one msgpack value; None stands for no value."""
        ...

    def decode_all(self, data: Buffer, /) -> list[Any]:
        """Decode the bytes that `encode_all` wrote."""
        ...


class StateKind(StrEnum):
    """The kind of a state; part of the snapshot format."""

    VALUE = "value"
    LIST = "list"
    MAP = "map"
    REDUCING = "reducing"
    AGGREGATING = "aggregating"

    @property
    def detailed(self) -> bool:
        """Whether changes inside a value are tracked (map entries, list appends)."""
        return self in (StateKind.LIST, StateKind.MAP)


@dataclass(frozen=True)
class StateSpec:
    """A state of one operator. `values` encodes its values, elements, accumulators or map values."""

    name: str
    kind: StateKind
    #: The type's name for messages, and its fingerprint, by which two registrations of a name are compared.
    type_name: str
    fingerprint: str
    values: Codec
    fields: Codec | None = None
    #: Whether the values' declared type is immutable.
    frozen: bool = False
    #: None: values do not expire and have no timestamps.
    ttl: TtlSettings | None = None
    #: Converters that give rows in values, and in the keys of a map, their field names; None: they contain no rows.
    shape: Converter | None = None
    shape_field: Converter | None = None
    #: Whether values of undeclared types may have been pickled.
    allow_pickle: bool = False
    #: Stored schema -> how it is read (`evolution.migrations`).
    migrations: dict[bytes, Any] = field(init=False, default_factory=dict, compare=False, repr=False)
    _stored: dict[TypeSchema | None, bytes] = field(init=False, default_factory=dict, compare=False, repr=False)

    def stored_schema(self, keys: TypeSchema | None) -> bytes:
        """The schema that is written beside the values; `keys` is that of the rows' keys, None in operator state."""
        stored = self._stored.get(keys)
        if stored is None:
            fields = None if self.fields is None else self.fields.schema
            schema = StateSchema(self.values.schema, fields, keys, timed=self.ttl is not None)
            stored = self._stored[keys] = encode_state_schema(schema)
        return stored

    def check_same(self, other: StateSpec) -> None:
        """Raise StateAccessError unless the other spec has the same kind, type and time to live."""
        if (self.kind, self.fingerprint) != (other.kind, other.fingerprint):
            raise StateAccessError(
                f"State '{self.name}' is already registered as {self.kind} state of {self.type_name}; "
                f"it cannot be {other.kind} state of {other.type_name} too: give one of them another name."
            )
        if self.ttl != other.ttl:
            raise StateAccessError(
                f"State '{self.name}' is already registered with another time to live: use one StateTtlConfig for it."
            )


def value_spec(descriptor: ValueStateDescriptor, allow_pickle: bool) -> StateSpec:
    """The spec of a value state."""
    return _spec(descriptor, StateKind.VALUE, descriptor.type_info, allow_pickle)


def list_spec(descriptor: ListStateDescriptor, allow_pickle: bool) -> StateSpec:
    """The spec of a list state: its elements are encoded one by one."""
    return _spec(descriptor, StateKind.LIST, descriptor.elem_type_info, allow_pickle)


def map_spec(descriptor: MapStateDescriptor, allow_pickle: bool) -> StateSpec:
    """The spec of a map state; also of broadcast state."""
    fields = _codec(descriptor.key_type_info, descriptor.get_key_serializer(), allow_pickle)
    spec = _spec(descriptor, StateKind.MAP, descriptor.value_type_info, allow_pickle, fields)
    return replace(spec, shape_field=descriptor.key_type_info.shaper())


def reducing_spec(descriptor: ReducingStateDescriptor, allow_pickle: bool) -> StateSpec:
    """The spec of a reducing state."""
    return _spec(descriptor, StateKind.REDUCING, descriptor.type_info, allow_pickle)


def aggregating_spec(descriptor: AggregatingStateDescriptor, allow_pickle: bool) -> StateSpec:
    """The spec of an aggregating state: it keeps the accumulator."""
    return _spec(descriptor, StateKind.AGGREGATING, descriptor.type_info, allow_pickle)


def _spec(
    descriptor: StateDescriptor,
    kind: StateKind,
    encoded: TypeInformation,
    allow_pickle: bool,
    fields: Codec | None = None,
) -> StateSpec:
    serializer = descriptor.get_serializer()
    values = _codec(encoded, serializer, allow_pickle)
    declared = descriptor.type_info
    custom = [each.schema for each in (fields, values) if isinstance(each, SerializerCodec)]
    return StateSpec(
        descriptor.name,
        kind,
        " by ".join(map(repr, (declared, *custom))),
        " ".join([declared.fingerprint(), *map(repr, custom)]),
        values,
        fields,
        frozen=type_is_immutable(encoded),
        shape=encoded.shaper(),
        allow_pickle=allow_pickle,
    )


def _codec(encoded: TypeInformation, serializer: TypeSerializer[Any] | None, allow_pickle: bool) -> Codec:
    declared = value_codec_for(encoded, allow_pickle=allow_pickle)
    return declared if serializer is None else SerializerCodec(serializer, declared)
