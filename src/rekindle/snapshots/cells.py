"""Cells: the state of one key as bytes, on its way from a DataFrame's row into a part of a key group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from rekindle.common.type_system.fields import from_arrow
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rekindle.errors import TypeMismatchError
from rekindle.runtime.state.spec import (
    StateKind,
    StateSpec,
    aggregating_spec,
    list_spec,
    map_spec,
    reducing_spec,
    value_spec,
)
from rekindle.runtime.state.ttl.expiry import timed_spec, ttl_of
from rekindle.serde.type_schema import TypeSchema
from rekindle.snapshots.state_columns import LAST_ACCESS, VALUE, StateColumn
from rekindle.snapshots.stored_state import ClassFreeCodec


class Cell(msgspec.Struct, array_like=True, frozen=True):
    """The values, elements or entries of one key's state, each encoded; the times of last access if it has any."""

    values: list[msgspec.Raw]
    fields: list[msgspec.Raw] = []
    times: list[int] = []


@dataclass(frozen=True)
class StateHead:
    """A state as its parts describe it."""

    name: str
    kind: StateKind
    type_name: str
    schema: bytes
    timed: bool


class CellWriter:
    """Encodes the values of one state's column."""

    def __init__(
        self, head: StateHead, value: Callable[[Any], bytes], field: Callable[[Any], bytes] | None, now_ms: int
    ) -> None:
        self.head = head
        self._value = value
        self._field = field
        self._now_ms = now_ms

    def cell(self, column: Any) -> Cell | None:
        """The cell of a column's value; None if the key has no such state."""
        if column is None or (self.head.kind.detailed and not column):
            return None
        fields: list[msgspec.Raw] = []
        if self.head.kind is StateKind.MAP:
            assert self._field is not None
            pairs = list(column.items() if isinstance(column, Mapping) else column)
            fields = [msgspec.Raw(self._field(field)) for field, _ in pairs]
            held = [value for _, value in pairs]
        else:
            held = list(column) if self.head.kind is StateKind.LIST else [column]
        times = [self._time(value) for value in held] if self.head.timed else []
        return Cell([msgspec.Raw(self._value(_without_time(value, self.head))) for value in held], fields, times)

    def _time(self, value: Any) -> int:
        return int(value[LAST_ACCESS]) if _has_time(value) else self._now_ms


def _has_time(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {LAST_ACCESS, VALUE}


def _without_time(value: Any, head: StateHead) -> Any:
    return value[VALUE] if head.timed and _has_time(value) else value


def stored_writer(column: StateColumn, now_ms: int) -> CellWriter:
    """The writer of a state that a checkpoint has: in the same form, without the program's classes."""
    state, types = column.state, column.state.types
    head = StateHead(state.name, state.kind, state.type_name, state.schema, types.timed)
    value, field = column.stored_value(), column.stored_field()
    value_codec, field_codec = ClassFreeCodec(types.values), ClassFreeCodec(types.fields)
    return CellWriter(
        head, lambda each: value_codec.encode(value(each)), lambda each: field_codec.encode(field(each)), now_ms
    )


def described_writer(descriptor: StateDescriptor, keys: TypeSchema, now_ms: int) -> CellWriter:
    """The writer of a state that a descriptor describes, as the program will."""
    spec = _spec(descriptor)
    codecs = spec.values, spec.fields
    ttl = ttl_of(descriptor)
    if ttl is not None:
        spec = timed_spec(spec, ttl, lambda: now_ms)
    head = StateHead(spec.name, spec.kind, spec.type_name, spec.stored_schema(keys), ttl is not None)
    value_type, field_type = _types(descriptor)
    values, fields = codecs
    return CellWriter(
        head,
        _encoder(value_type, values.encode),
        None if fields is None or field_type is None else _encoder(field_type, fields.encode),
        now_ms,
    )


def _encoder(type_info: TypeInformation, encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    convert = from_arrow(type_info)
    return encode if convert is None else lambda value: encode(convert(value))


def _types(descriptor: StateDescriptor) -> tuple[TypeInformation, TypeInformation | None]:
    match descriptor:
        case ListStateDescriptor():
            return descriptor.elem_type_info, None
        case MapStateDescriptor():
            return descriptor.value_type_info, descriptor.key_type_info
    return descriptor.type_info, None


def _spec(descriptor: StateDescriptor) -> StateSpec:
    match descriptor:
        case ValueStateDescriptor():
            return value_spec(descriptor, allow_pickle=False)
        case ListStateDescriptor():
            return list_spec(descriptor, allow_pickle=False)
        case MapStateDescriptor():
            return map_spec(descriptor, allow_pickle=False)
        case ReducingStateDescriptor():
            return reducing_spec(descriptor, allow_pickle=False)
        case AggregatingStateDescriptor():
            return aggregating_spec(descriptor, allow_pickle=False)
    raise TypeMismatchError(f"{descriptor!r} is no descriptor of keyed state: use ValueStateDescriptor and the like.")
