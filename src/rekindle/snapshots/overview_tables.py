"""The overview of a checkpoint as tables: its metadata, its operators, their states."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import OperatorState, SubtaskState
from rekindle.checkpoint.part_formats import ListDistribution
from rekindle.checkpoint.paths import url_of
from rekindle.snapshots.operator_tables import operator_parts, part_types
from rekindle.snapshots.shapes import BOOLEAN, INT, LONG, STRING, Plain, PlainShape, Shape, described
from rekindle.snapshots.stored_state import stored_states
from rekindle.snapshots.stored_types import StoredType
from rekindle.snapshots.table import ListedTable, StateTable, TableColumn

_TIMESTAMP = PlainShape(Plain.TIMESTAMP)


def metadata_table(snapshot: LoadedCheckpoint) -> StateTable:
    """One row: the manifest's fields about the whole checkpoint."""
    manifest = snapshot.manifest
    taken = dt.datetime.fromtimestamp(manifest.timestamp_ms / 1000, dt.UTC)
    cells: list[tuple[str, Shape, Any]] = [
        ("path", STRING, url_of(snapshot.store, snapshot.path)),
        ("kind", STRING, str(manifest.kind)),
        ("checkpoint_id", LONG, manifest.checkpoint_id),
        ("job_name", STRING, manifest.job_name),
        ("job_id", STRING, manifest.job_id),
        ("timeline", STRING, manifest.timeline),
        ("attempt", INT, manifest.attempt),
        ("taken", _TIMESTAMP, taken),
        ("duration_ms", LONG, manifest.duration_ms),
        ("operators", INT, len(manifest.operators)),
        ("full_bytes", LONG, manifest.full_bytes()),
        ("new_bytes", LONG, manifest.new_bytes()),
        ("format_version", INT, manifest.format_version),
    ]
    return ListedTable([TableColumn(name, shape) for name, shape, _ in cells], [tuple(value for _, _, value in cells)])


def operators_table(snapshot: LoadedCheckpoint) -> StateTable:
    """A row per operator."""
    texts = [TableColumn(name, STRING) for name in ("operator_id", "name")]
    numbers = [TableColumn(name, INT) for name in ("parallelism", "max_parallelism", "finished_subtasks")]
    flags = [TableColumn(name, BOOLEAN) for name in ("keyed", "timers", "operator_state", "source", "in_flight")]
    sizes = [TableColumn("committables", INT), TableColumn("full_bytes", LONG), TableColumn("new_bytes", LONG)]
    columns = [*texts, *numbers, TableColumn("layout", STRING), *flags, *sizes]
    return ListedTable(columns, [_operator_row(operator) for operator in snapshot.manifest.operators])


def _operator_row(operator: OperatorState) -> tuple[Any, ...]:
    subtasks = operator.subtasks
    return (
        operator.uid,
        operator.name,
        operator.parallelism,
        operator.max_parallelism,
        sum(subtask.finished for subtask in subtasks),
        operator.layout,
        *(any(has) for has in zip(*map(_kinds, subtasks), strict=True)),
        sum(len(subtask.committables) for subtask in subtasks),
        sum(subtask.full_bytes for subtask in subtasks),
        sum(subtask.new_bytes for subtask in subtasks),
    )


def _kinds(subtask: SubtaskState) -> tuple[bool, ...]:
    keyed, timers = bool(subtask.keyed), bool(subtask.timers)
    return keyed, timers, subtask.operator_state is not None, subtask.source is not None, subtask.has_in_flight


_LIST_KINDS = {
    ListDistribution.SPLIT: "split list",
    ListDistribution.UNION: "union list",
    ListDistribution.BROADCAST: "broadcast map",
}


def states_table(snapshot: LoadedCheckpoint) -> StateTable:
    """A row per state, keyed and of operators, with its types."""
    names = ("operator_id", "operator", "state", "kind", "type", "column_type")
    columns = [*(TableColumn(name, STRING) for name in names), TableColumn("time_to_live", BOOLEAN)]
    rows = [row for operator in snapshot.manifest.operators for row in _state_rows(snapshot, operator)]
    return ListedTable(columns, rows)


def _state_rows(snapshot: LoadedCheckpoint, operator: OperatorState) -> Iterator[tuple[Any, ...]]:
    own = operator.uid, operator.name
    for state in stored_states(snapshot, operator):
        types = state.types
        yield *own, state.name, str(state.kind), state.type_name, _told(types.values), types.timed
    seen: set[str] = set()
    for _, part in operator_parts(snapshot, operator):
        if part.name not in seen:
            seen.add(part.name)
            kind, told = _LIST_KINDS[part.distribution], _told(part_types(part).values)
            yield *own, part.name, kind, part.type_name, told, False


def _told(stored: StoredType) -> str:
    """The shape of the values; `unknown`: reading the state settles it by its values."""
    return described(stored.shape)
