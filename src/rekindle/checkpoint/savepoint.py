"""Savepoints: everything that a manifest needs in one folder that can be moved and still restores (I17)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from rekindle.checkpoint.manifest import Blob, FileRef, KeyedPart, Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.paths import (
    StateFileName,
    below,
    metadata_path,
    new_savepoint_folder,
    savepoint_reference,
)
from rekindle.checkpoint.publish import put_metadata
from rekindle.checkpoint.resolve import LoadedCheckpoint
from rekindle.checkpoint.statefile import StateFileWriter, read_blobs
from rekindle.checkpoint.store import Store
from rekindle.errors import StoreError


def copy_to_savepoint(source: Store, checkpoint: LoadedCheckpoint, target: Store) -> str:
    """Copy a checkpoint or savepoint into a new folder at the root of `target`, verified on the way; its path.

    The folder is complete when its `_metadata` is there, and needs nothing outside it. When the copy fails, what was
    written is removed.
    """
    manifest = checkpoint.manifest
    folder = new_savepoint_folder(manifest.job_id)
    written: list[str] = []
    try:
        operators = [
            msgspec.structs.replace(
                operator,
                subtasks=[
                    _copied(source, checkpoint, target, folder, operator, subtask, written)
                    for subtask in operator.subtasks
                ],
            )
            for operator in manifest.operators
        ]
        put_metadata(target, folder, as_savepoint(manifest, operators))
    except BaseException:
        with suppress(StoreError):
            target.delete(metadata_path(folder), *written)
        raise
    return folder


def as_savepoint(manifest: Manifest, operators: list[OperatorState]) -> Manifest:
    """The savepoint's manifest for operators whose references are relative to the savepoint's folder."""
    return msgspec.structs.replace(manifest, kind=ManifestKind.SAVEPOINT, operators=operators)


def _copied(
    source: Store,
    checkpoint: LoadedCheckpoint,
    target: Store,
    folder: str,
    operator: OperatorState,
    subtask: SubtaskState,
    written: list[str],
) -> SubtaskState:
    manifest = checkpoint.manifest
    blobs = list(dict.fromkeys(blob for blob in subtask.blobs() if isinstance(blob, FileRef)))
    if not blobs:
        return subtask
    name = StateFileName.of(manifest.checkpoint_id, manifest.attempt, operator.uid, subtask.subtask)
    reference = savepoint_reference(name)
    written.append(below(folder, reference))
    writer = StateFileWriter(target, folder, reference)
    parts: Iterator[tuple[FileRef, bytes]] = zip(blobs, read_blobs(source, checkpoint.root, blobs), strict=True)
    return _with_blobs(subtask, dict(writer.write(parts)))


def _with_blobs(subtask: SubtaskState, moved: dict[FileRef, Blob]) -> SubtaskState:
    """The same state with its references replaced."""

    def new(blob: Blob) -> Blob:
        return moved[blob] if isinstance(blob, FileRef) else blob

    def optional(blob: Blob | None) -> Blob | None:
        return None if blob is None else new(blob)

    def parts(old: list[KeyedPart]) -> list[KeyedPart]:
        return [msgspec.structs.replace(part, blob=new(part.blob)) for part in old]

    return msgspec.structs.replace(
        subtask,
        keyed=parts(subtask.keyed),
        timers=parts(subtask.timers),
        raw_keyed=parts(subtask.raw_keyed),
        operator_state=optional(subtask.operator_state),
        raw_operator=list(map(new, subtask.raw_operator)),
        source=optional(subtask.source),
        task=optional(subtask.task),
        committables=list(map(new, subtask.committables)),
        new_bytes=subtask.full_bytes,
    )
