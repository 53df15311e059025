"""Write keyed state and timers from a DataFrame: rows are encoded, brought together by subtask, and written as files.

Two steps in Spark: each row becomes its key group, its encoded key and its cells; then the task that gets a subtask's
rows, in the order of key groups, writes their parts. The driver gets references to the parts, not the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from rekindle.checkpoint.manifest import KeyedPart, PartKind
from rekindle.checkpoint.parts import by_key_group
from rekindle.checkpoint.paths import StateFileName, savepoint_reference
from rekindle.checkpoint.read_state import read_parts
from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.open_store import open_store
from rekindle.key_groups import key_group_range
from rekindle.snapshots.find_snapshot import Snapshot
from rekindle.snapshots.group_parts import GroupBuilder, Row
from rekindle.snapshots.row_encoder import EncodedRow, RowPlan

_ENCODED: Final = "subtask int, key_group int, key binary, cells binary"
_WRITTEN: Final = "subtask int, parts binary"
#: The key group of the row that each subtask has, so that a task also visits subtasks without rows.
_NO_GROUP: Final = -1
_decode_parts = msgspec.msgpack.Decoder(list[KeyedPart]).decode


@dataclass(frozen=True)
class Target:
    """The folder of the savepoint that is being written."""

    url: str
    options: Mapping[str, str]
    folder: str
    checkpoint_id: int
    uid: str


@dataclass(frozen=True)
class KeptParts:
    """The parts that an operator has now; a builder keeps the states that are not replaced."""

    snapshot: Snapshot
    parts: Sequence[KeyedPart]


def write_rows(
    df: DataFrame, plan: RowPlan, builder: GroupBuilder, target: Target, kept: KeptParts | None
) -> dict[int, list[KeyedPart]]:
    """Write the parts of an operator; subtask -> references to its parts."""
    encoded = df.mapInArrow(_Encoding(plan), _ENCODED)
    markers = df.sparkSession.range(plan.parallelism).selectExpr(
        "cast(id as int) subtask", f"{_NO_GROUP} key_group", "cast('' as binary) key", "cast('' as binary) cells"
    )
    by_subtask = encoded.union(markers).repartition(plan.parallelism, "subtask")
    ordered = by_subtask.sortWithinPartitions("subtask", "key_group")
    task = _Writing(builder, target, kept, plan.keys.max_parallelism, plan.parallelism)
    written = ordered.mapInArrow(task, _WRITTEN).collect()
    return {row.subtask: _decode_parts(bytes(row.parts)) for row in written}


class _Encoding:
    """Step 1, in a Spark task: rows to key groups, keys and cells."""

    def __init__(self, plan: RowPlan) -> None:
        self._plan = plan

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        encode = self._plan.encoder()
        for batch in batches:
            rows = [encode(row) for row in batch.to_pylist()]
            if rows:
                yield _batch(rows)


def _batch(rows: Sequence[EncodedRow]) -> Any:
    subtasks, groups, keys, cells = zip(*rows, strict=True)
    arrays = [pa.array(subtasks, pa.int32()), pa.array(groups, pa.int32()), pa.array(keys, pa.binary())]
    names = ["subtask", "key_group", "key", "cells"]
    return pa.RecordBatch.from_arrays([*arrays, pa.array(cells, pa.binary())], names=names)


class _Writing:
    """Step 2, in a Spark task: the sorted rows of some subtasks to one state file each."""

    def __init__(
        self, builder: GroupBuilder, target: Target, kept: KeptParts | None, max_parallelism: int, parallelism: int
    ) -> None:
        self._builder = builder
        self._target = target
        self._kept = kept
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for subtask, rows in groupby(_rows(batches), key=lambda row: row[0]):
            parts = msgspec.msgpack.encode(self._write(subtask, rows))
            arrays = [pa.array([subtask], pa.int32()), pa.array([parts], pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, names=["subtask", "parts"])

    def _write(self, subtask: int, rows: Iterable[EncodedRow]) -> list[KeyedPart]:
        target, context = self._target, TaskContext.get()
        # Each try of a task has a name of its own: the one that counts is the one that Spark takes the result of.
        attempt = 1 + (context.taskAttemptId() if context is not None else 0)
        name = StateFileName.of(target.checkpoint_id, attempt, target.uid, subtask)
        store = open_store(target.url, target.options)
        writer = StateFileWriter(store, target.folder, savepoint_reference(name))
        written = writer.write(self._parts(subtask, rows))
        return [KeyedPart(group, PartKind.FULL, target.checkpoint_id, blob) for group, blob in written]

    def _parts(self, subtask: int, rows: Iterable[EncodedRow]) -> Iterator[tuple[int, bytes]]:
        """(key group, part) of each key group of the subtask that has rows or keeps something."""
        kept = by_key_group(self._kept.parts) if self._kept is not None else {}
        own = {group: kept.get(group, []) for group in self._groups(subtask)}
        for group, of_group in groupby(rows, key=lambda row: row[1]):
            if group != _NO_GROUP:
                for before in [each for each in own if each < group]:
                    yield from self._part(before, [], own.pop(before))
                yield from self._part(group, [(key, cells) for _, _, key, cells in of_group], own.pop(group))
        for group in list(own):
            yield from self._part(group, [], own.pop(group))

    def _groups(self, subtask: int) -> range:
        return key_group_range(self._max_parallelism, self._parallelism, subtask)

    def _part(self, group: int, rows: list[Row], kept: Sequence[KeyedPart]) -> Iterator[tuple[int, bytes]]:
        old: list[bytes] = []
        if kept and self._kept is not None:
            snapshot = self._kept.snapshot
            old = [data for _, data in read_parts(snapshot.store, snapshot.root, kept)]
        part = self._builder.build(group, rows, old)
        if part is not None:
            yield group, part


def _rows(batches: Iterable[Any]) -> Iterator[EncodedRow]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
