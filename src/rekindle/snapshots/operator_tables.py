"""Operator state as tables: lists, broadcast maps, source positions and watermarks. They are small: one split each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import OperatorState
from rekindle.checkpoint.part_formats import (
    ListDistribution,
    OperatorStatePart,
    SourceState,
    TaskState,
    decode_operator_part,
)
from rekindle.checkpoint.statefile import read_blob
from rekindle.errors import IncompatibleStateError
from rekindle.runtime.state.keyed_state_format import NONE_VALUE
from rekindle.snapshots.column_values import to_column
from rekindle.snapshots.key_columns import KEY
from rekindle.snapshots.settle import settled
from rekindle.snapshots.shapes import BOOLEAN, INT, LONG, STRING, UNKNOWN, JsonShape, Shape
from rekindle.snapshots.stored_state import ClassFreeCodec
from rekindle.snapshots.stored_types import UNTYPED, StateTypes, StoredType, state_types
from rekindle.snapshots.table import ListedTable, ReadOptions, StateTable, TableColumn

SUBTASK = "subtask"
VALUE = "value"


def operator_parts(snapshot: LoadedCheckpoint, operator: OperatorState) -> Iterator[tuple[int, OperatorStatePart]]:
    """The operator states of each subtask."""
    for subtask in operator.subtasks:
        if subtask.operator_state is not None:
            data = read_blob(snapshot.store, snapshot.root, subtask.operator_state)
            for part in decode_operator_part(data):
                yield subtask.subtask, part


def part_types(part: OperatorStatePart) -> StateTypes:
    """The types of an operator state."""
    return state_types(part.schema)


def list_table(snapshot: LoadedCheckpoint, operator: OperatorState, name: str, options: ReadOptions) -> StateTable:
    """The elements of a list, split or union, of all subtasks."""
    parts = _named(snapshot, operator, name, ListDistribution.SPLIT, ListDistribution.UNION)
    elements = [(subtask, data) for subtask, part in parts for data in part.entries]
    shape, values = _shown(part_types(parts[0][1]).values, [data for _, data in elements], options)
    columns = [TableColumn(SUBTASK, INT), TableColumn(VALUE, shape)]
    return ListedTable(columns, [(subtask, value) for (subtask, _), value in zip(elements, values, strict=True)])


def broadcast_table(snapshot: LoadedCheckpoint, operator: OperatorState, name: str, options: ReadOptions) -> StateTable:
    """The entries of a broadcast map, which is the same in every subtask."""
    _, part = _named(snapshot, operator, name, ListDistribution.BROADCAST)[0]
    types = part_types(part)
    key, keys = _shown(types.fields, part.entries[::2], options)
    value, values = _shown(types.values, part.entries[1::2], options)
    return ListedTable([TableColumn(KEY, key), TableColumn(VALUE, value)], list(zip(keys, values, strict=True)))


def _named(
    snapshot: LoadedCheckpoint, operator: OperatorState, name: str, *ways: ListDistribution
) -> list[tuple[int, OperatorStatePart]]:
    parts = list(operator_parts(snapshot, operator))
    found = [(subtask, part) for subtask, part in parts if part.name == name and part.distribution in ways]
    if not found:
        there = ", ".join(sorted({f"'{part.name}' ({part.distribution})" for _, part in parts})) or "none"
        raise IncompatibleStateError(
            f"Operator '{operator.name}' has no {' or '.join(ways)} state '{name}': its operator state is {there}."
        )
    return found


def _shown(stored: StoredType, data: Sequence[bytes], options: ReadOptions) -> tuple[Shape, list[Any]]:
    codec = ClassFreeCodec(stored, options.allow_pickle)
    values = [None if each == NONE_VALUE else codec.decode(each) for each in data]
    shape = JsonShape() if options.untyped_as_json and stored.tagged else settled(stored.shape, values)
    return shape, list(map(to_column(shape), values))


def positions_table(snapshot: LoadedCheckpoint, operators: Sequence[OperatorState], options: ReadOptions) -> StateTable:
    """Split and position of each source's subtasks; of several sources as JSON, because their types differ."""
    codec = ClassFreeCodec(UNTYPED, options.allow_pickle)
    found = []
    for operator in operators:
        for subtask in operator.subtasks:
            if subtask.source is not None:
                state = SourceState.decode(read_blob(snapshot.store, snapshot.root, subtask.source))
                for each in state.splits:
                    split = None if each.split is None else codec.decode(each.split)
                    found.append((operator, subtask, split, codec.decode(each.position)))
    as_json = options.untyped_as_json or len({operator.uid for operator, *_ in found}) != 1
    split, position = (
        JsonShape() if as_json else settled(UNKNOWN, [each[index] for each in found]) for index in (2, 3)
    )
    show_split, show_position = to_column(split), to_column(position)
    return ListedTable(
        [
            *(TableColumn(name, STRING) for name in ("operator_id", "name")),
            TableColumn(SUBTASK, INT),
            TableColumn("finished", BOOLEAN),
            TableColumn("split", split),
            TableColumn("position", position),
        ],
        [
            (operator.uid, operator.name, subtask.subtask, subtask.finished, show_split(a), show_position(b))
            for operator, subtask, a, b in found
        ],
    )


def watermarks_table(snapshot: LoadedCheckpoint, operators: Sequence[OperatorState]) -> StateTable:
    """The watermark of each task, under the operator that its chain begins with."""
    rows: list[tuple[Any, ...]] = []
    for operator in operators:
        for subtask in operator.subtasks:
            if subtask.task is not None:
                task = TaskState.decode(read_blob(snapshot.store, snapshot.root, subtask.task))
                rows.append((operator.uid, operator.name, subtask.subtask, task.watermark, task.idle))
    columns = [*(TableColumn(name, STRING) for name in ("operator_id", "name")), TableColumn(SUBTASK, INT)]
    return ListedTable([*columns, TableColumn("watermark_ms", LONG), TableColumn("idle", BOOLEAN)], rows)
