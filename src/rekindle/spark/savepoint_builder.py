"""Build a new savepoint: state of an existing one is kept, changed or removed, state from DataFrames is added.

Nothing of the existing one is changed, and the new one needs no file of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from pyspark.sql import DataFrame

from rekindle.checkpoint.checkpoint_copy import empty_on_failure, new_place
from rekindle.checkpoint.copy_parts import FolderCopy
from rekindle.checkpoint.load_checkpoint import Location
from rekindle.checkpoint.manifest import KeyedPart, Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.parts import measured
from rekindle.checkpoint.paths import StateFileName, below, url_of
from rekindle.checkpoint.publish import put_metadata
from rekindle.checkpoint.store.open_store import absolute
from rekindle.checkpoint.store.options import StoreOptions, options_for
from rekindle.clock import Clock
from rekindle.snapshots.find_snapshot import Snapshot
from rekindle.snapshots.group_parts import GroupBuilder
from rekindle.snapshots.row_encoder import RowPlan
from rekindle.spark.keyed_writing import KeptParts, Target, write_rows

_FIRST_ID: Final = 1


@dataclass(frozen=True)
class RowsToWrite:
    """A DataFrame that becomes keyed state or timers of an operator: the field of `SubtaskState` is replaced."""

    field: str
    df: DataFrame
    plan: RowPlan
    builder: GroupBuilder


@dataclass
class OperatorDraft:
    """An operator of the new savepoint: its state without `rows`, and where that state lies now."""

    state: OperatorState
    #: None: the operator is new, and nothing of it lies in a file.
    origin: Snapshot | None = None
    rows: list[RowsToWrite] = field(default_factory=list)


@dataclass(frozen=True)
class SavepointBuilder:
    """Writes drafts of operators as a savepoint."""

    base: Snapshot | None
    options: StoreOptions
    clock: Clock

    def write(self, path: str, drafts: Sequence[OperatorDraft]) -> str:
        """Write the savepoint into a new folder; returns its URL. If it fails, the folder is left empty."""
        place = new_place(absolute(path), self.options)
        begun_ms = self.clock.wall_ms()
        with empty_on_failure(place):
            operators = [self._written(place, draft) for draft in drafts]
            put_metadata(place.store, place.path, self._manifest(operators, begun_ms))
        needed = {below(place.path, name) for each in operators for name in _files(each)}
        left_over = [
            entry.path for entry in place.store.list(place.path) if StateFileName.parse(entry.path) is not None
        ]
        place.store.delete(*(path for path in left_over if path not in needed))  # of tasks that Spark tried twice
        return url_of(place.store, place.path)

    def _written(self, place: Location, draft: OperatorDraft) -> OperatorState:
        state = draft.state
        replaced = {rows.field: self._write_rows(place, draft, rows) for rows in draft.rows}
        without = [_with_parts(subtask, dict.fromkeys(replaced, ())) for subtask in state.subtasks]
        kept = msgspec.structs.replace(state, subtasks=without)
        source, root = (draft.origin.store, draft.origin.root) if draft.origin is not None else (place.store, "")
        copied = FolderCopy(source, root, place.store, place.path, self._checkpoint_id).operator(kept)
        return msgspec.structs.replace(
            copied,
            subtasks=[
                measured(_with_parts(each, {name: parts.get(each.subtask, []) for name, parts in replaced.items()}))
                for each in copied.subtasks
            ],
        )

    def _write_rows(self, place: Location, draft: OperatorDraft, rows: RowsToWrite) -> dict[int, list[KeyedPart]]:
        parts = [part for subtask in draft.state.subtasks for part in getattr(subtask, rows.field)]
        kept = KeptParts(draft.origin, parts) if draft.origin is not None and parts else None
        options = options_for(place.store.url, self.options)
        target = Target(place.store.url, dict(options), place.path, self._checkpoint_id, draft.state.uid)
        return write_rows(rows.df, rows.plan, rows.builder, target, kept)

    @property
    def _checkpoint_id(self) -> int:
        return self.base.manifest.checkpoint_id if self.base is not None else _FIRST_ID

    def _manifest(self, operators: list[OperatorState], begun_ms: int) -> Manifest:
        now_ms = self.clock.wall_ms()
        if self.base is None:
            manifest = Manifest(ManifestKind.SAVEPOINT, _FIRST_ID, secrets.token_hex(16), "", "", 0, now_ms)
        else:
            manifest = self.base.manifest
        return msgspec.structs.replace(
            manifest,
            kind=ManifestKind.SAVEPOINT,
            timestamp_ms=now_ms,
            duration_ms=max(0, now_ms - begun_ms),
            operators=operators,
        )


def _files(operator: OperatorState) -> set[str]:
    return {name for subtask in operator.subtasks for name in subtask.file_bytes}


def _with_parts(subtask: SubtaskState, parts: Mapping[str, Sequence[KeyedPart]]) -> SubtaskState:
    return msgspec.structs.replace(subtask, **{name: list(own) for name, own in parts.items()})
