"""Copy the state of subtasks into another folder, block by block: every checksum is compared on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec

from rekindle.checkpoint.manifest import Blob, KeyedPart, OperatorState, SubtaskState, blob_size
from rekindle.checkpoint.parts import measured
from rekindle.checkpoint.paths import StateFileName, savepoint_reference
from rekindle.checkpoint.statefile import Part, StateFileWriter, read_blobs, read_pieces
from rekindle.checkpoint.store.port import Store

# Larger blobs are not read as a whole.
_WHOLE_BYTES: Final = 8 << 20


@dataclass(frozen=True)
class _LargeBlob:
    """A blob that is read as it is written."""

    store: Store
    root: str
    blob: Blob

    def __len__(self) -> int:
        return blob_size(self.blob)

    def __iter__(self) -> Iterator[bytes]:
        return read_pieces(self.store, self.root, self.blob)


@dataclass(frozen=True)
class FolderCopy:
    """Copies state into a savepoint's folder: each subtask gets one file there, or none if its state is small."""

    source: Store
    source_root: str
    target: Store
    folder: str
    checkpoint_id: int
    attempt: int = 0

    def operator(self, state: OperatorState) -> OperatorState:
        """Copy an operator's state; the result names the new files."""
        subtasks = [self.subtask(state.uid, subtask) for subtask in state.subtasks]
        return msgspec.structs.replace(state, subtasks=subtasks)

    def subtask(self, uid: str, state: SubtaskState) -> SubtaskState:
        """Copy a subtask's state."""
        blobs = list(state.blobs())
        name = StateFileName.of(self.checkpoint_id, self.attempt, uid, state.subtask)
        writer = StateFileWriter(self.target, self.folder, savepoint_reference(name))
        copied = iter([blob for _, blob in writer.write(enumerate(self._parts(blobs)))])
        return measured(_with_blobs(state, copied))

    def _parts(self, blobs: list[Blob]) -> Iterator[Part]:
        for large, run in groupby(blobs, key=lambda blob: blob_size(blob) > _WHOLE_BYTES):
            if large:
                yield from (_LargeBlob(self.source, self.source_root, blob) for blob in run)
            else:
                yield from read_blobs(self.source, self.source_root, list(run))


def _with_blobs(state: SubtaskState, blobs: Iterator[Blob]) -> SubtaskState:
    """The same state with other blobs, which come in the order of `SubtaskState.blobs`."""
    changed: dict[str, Any] = {}
    for name in ("keyed", "timers", "raw_keyed"):
        parts: list[KeyedPart] = getattr(state, name)
        changed[name] = [msgspec.structs.replace(part, blob=next(blobs)) for part in parts]
    for name in ("operator_state", "source", "task", "in_flight"):
        changed[name] = next(blobs) if getattr(state, name) is not None else None
    for name in ("raw_operator", "committables"):
        changed[name] = [next(blobs) for _ in getattr(state, name)]
    return msgspec.structs.replace(state, **changed)
