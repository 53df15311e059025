"""One subtask's state, read from the store, verified, and shared out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rekindle.checkpoint.manifest import Blob, KeyedPart
from rekindle.checkpoint.part_formats import SourceState, TaskState, encode_operator_part
from rekindle.checkpoint.redistribute import operator_share, source_share, task_share, whole_source
from rekindle.checkpoint.rescale import SubtaskShare
from rekindle.checkpoint.statefile import read_blob, read_blobs, read_pieces
from rekindle.checkpoint.store.port import Store


@dataclass(frozen=True)
class RestoredSubtask:
    """What an operator's subtask restores. Keyed parts are read as they are asked for: see `read_parts`."""

    finished: bool
    operator_state: bytes | None
    raw_operator: list[bytes]
    source: SourceState | None
    task: TaskState | None
    #: Each to be read once, piece by piece: `committables.read_committable`.
    committables: list[Iterator[bytes]]
    in_flight: list[bytes]


def read_parts(store: Store, root: str, parts: Sequence[KeyedPart]) -> Iterator[tuple[int, bytes]]:
    """(key group, part) for `restore` of a keyed backend or of timers, in the order that these need."""
    groups = (part.key_group for part in parts)
    yield from zip(groups, read_blobs(store, root, [part.blob for part in parts]), strict=True)


def read_subtask(store: Store, root: str, restore: SubtaskShare, name: str) -> RestoredSubtask:
    """Everything but the keyed parts, which are larger; `name` is the operator's, for errors."""
    return RestoredSubtask(
        finished=restore.finished,
        operator_state=_operator_state(store, root, restore),
        raw_operator=list(read_blobs(store, root, restore.raw_operator)),
        source=_source(store, root, restore, name),
        task=_task(store, root, restore),
        committables=[read_pieces(store, root, blob) for blob in restore.committables],
        in_flight=_read(store, root, restore.in_flight),
    )


def _operator_state(store: Store, root: str, restore: SubtaskShare) -> bytes | None:
    blobs = restore.operator_state
    if not blobs:
        return None
    parts = [encode_operator_part([]) if blob is None else read_blob(store, root, blob) for blob in blobs]
    if len(parts) == 1 and not restore.rescaled:
        return parts[0]
    return operator_share(parts, restore.parallelism, restore.subtask)


def _source(store: Store, root: str, restore: SubtaskShare, name: str) -> SourceState | None:
    if restore.rescaled and restore.finished:
        return SourceState([]) if restore.source or restore.all_sources else None
    states, everybody = (
        [SourceState.decode(data) for data in _read(store, root, blobs)]
        for blobs in (restore.source, restore.all_sources)
    )
    if everybody:
        own = None if restore.rescaled else states[0] if states else SourceState([])
        return whole_source(everybody, own, name, restore.parallelism, restore.subtask)
    if not states or not restore.rescaled:
        return states[0] if states else None
    return source_share(states, name, restore.parallelism, restore.subtask)


def _task(store: Store, root: str, restore: SubtaskShare) -> TaskState | None:
    states = [TaskState.decode(data) for data in _read(store, root, restore.task)]
    if not states or not restore.rescaled:
        return states[0] if states else None
    return task_share(states)


def _read(store: Store, root: str, blobs: Sequence[Blob]) -> list[bytes]:
    return list(read_blobs(store, root, blobs))
