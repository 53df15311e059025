"""Lists and broadcast maps of an operator, made of rows: small, so the driver encodes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from rekindle.checkpoint.manifest import OperatorState, SubtaskState
from rekindle.checkpoint.part_formats import (
    ListDistribution,
    OperatorStatePart,
    decode_operator_part,
    encode_operator_part,
)
from rekindle.checkpoint.statefile import read_blob
from rekindle.common.type_system.fields import from_arrow
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor
from rekindle.runtime.state.keyed_state_format import NONE_VALUE
from rekindle.runtime.state.spec import list_spec, map_spec
from rekindle.snapshots.find_snapshot import Snapshot
from rekindle.snapshots.key_columns import KEY
from rekindle.snapshots.operator_tables import SUBTASK, VALUE, part_types
from rekindle.snapshots.shapes import Shape
from rekindle.snapshots.stored_state import ClassFreeCodec
from rekindle.snapshots.stored_types import StoredType
from rekindle.snapshots.stored_values import from_column

Encode = Callable[[Any], bytes]


def stored_list(part: OperatorStatePart, shape: Shape, rows: Sequence[Mapping[str, Any]]) -> OperatorStatePart:
    """The list of a checkpoint with other elements."""
    encode = _stored(part_types(part).values, shape)
    return msgspec.structs.replace(part, entries=[encode(row[VALUE]) for row in rows])


def described_list(
    descriptor: ListStateDescriptor, union: bool, rows: Sequence[Mapping[str, Any]]
) -> OperatorStatePart:
    """A list that a descriptor describes."""
    spec = list_spec(descriptor, allow_pickle=False)
    encode = _declared(descriptor.elem_type_info, spec.values.encode)
    way = ListDistribution.UNION if union else ListDistribution.SPLIT
    entries = [encode(row[VALUE]) for row in rows]
    return OperatorStatePart(spec.name, way, spec.type_name, entries, spec.stored_schema(None))


def stored_map(
    part: OperatorStatePart, shapes: tuple[Shape, Shape], rows: Sequence[Mapping[str, Any]]
) -> OperatorStatePart:
    """The broadcast map of a checkpoint with other entries."""
    types = part_types(part)
    return _map(part, _stored(types.fields, shapes[0]), _stored(types.values, shapes[1]), rows)


def described_map(descriptor: MapStateDescriptor, rows: Sequence[Mapping[str, Any]]) -> OperatorStatePart:
    """A broadcast map that a descriptor describes."""
    spec = map_spec(descriptor, allow_pickle=False)
    assert spec.fields is not None
    part = OperatorStatePart(spec.name, ListDistribution.BROADCAST, spec.type_name, [], spec.stored_schema(None))
    field = _declared(descriptor.key_type_info, spec.fields.encode)
    return _map(part, field, _declared(descriptor.value_type_info, spec.values.encode), rows)


def _map(part: OperatorStatePart, field: Encode, value: Encode, rows: Sequence[Mapping[str, Any]]) -> OperatorStatePart:
    entries = [data for row in rows for data in (field(row[KEY]), value(row[VALUE]))]
    return msgspec.structs.replace(part, entries=entries)


def _stored(stored: StoredType, shape: Shape) -> Encode:
    codec, convert = ClassFreeCodec(stored), from_column(shape, stored.tagged)
    return lambda value: NONE_VALUE if value is None else codec.encode(convert(value))


def _declared(type_info: TypeInformation, encode: Encode) -> Encode:
    convert = from_arrow(type_info) or (lambda value: value)
    return lambda value: NONE_VALUE if value is None else encode(convert(value))


def with_part(
    snapshot: Snapshot | None, state: OperatorState, part: OperatorStatePart, subtasks: Sequence[int | None]
) -> OperatorState:
    """The operator with this state in place of the one of the same name, in all subtasks.

    `subtasks` are those that the elements of a list belong to; None: they are dealt in turn.
    """
    changed = [
        _with_share(snapshot, subtask, part, _share(part, subtasks, subtask.subtask, state.parallelism))
        for subtask in state.subtasks
    ]
    return msgspec.structs.replace(state, subtasks=changed)


def _share(part: OperatorStatePart, subtasks: Sequence[int | None], subtask: int, parallelism: int) -> list[bytes]:
    if part.distribution is ListDistribution.BROADCAST:
        return part.entries
    owners = [index % parallelism if owner is None else owner for index, owner in enumerate(subtasks)]
    return [data for data, owner in zip(part.entries, owners, strict=True) if owner % parallelism == subtask]


def _with_share(
    snapshot: Snapshot | None, subtask: SubtaskState, part: OperatorStatePart, entries: list[bytes]
) -> SubtaskState:
    others: list[OperatorStatePart] = []
    blob = subtask.operator_state
    if blob is not None:
        data = blob if isinstance(blob, bytes) or snapshot is None else read_blob(snapshot.store, snapshot.root, blob)
        assert isinstance(data, bytes)
        others = [each for each in decode_operator_part(data) if each.name != part.name]
    parts = [*others, msgspec.structs.replace(part, entries=entries)]
    union = any(each.distribution is ListDistribution.UNION for each in parts)
    return msgspec.structs.replace(subtask, operator_state=encode_operator_part(parts), union=union)


def owners_of(rows: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """The subtask that each row of a list names."""
    return [row.get(SUBTASK) for row in rows]
