"""Read a subtask's share of a checkpoint from the store, and verify it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rekindle.checkpoint.manifest import KeyedPart
from rekindle.checkpoint.part_formats import SourceState, TaskState, encode_operator_part
from rekindle.checkpoint.redistribute import operator_share, source_share, task_share, whole_source
from rekindle.checkpoint.rescale import SubtaskShare
from rekindle.checkpoint.statefile import read_blob, read_blobs, read_pieces
from rekindle.checkpoint.store.port import Store


@dataclass(frozen=True)
class RestoredSubtask:
    """A subtask's share as it was read, without keyed parts: `read_parts` reads these one by one."""

    finished: bool
    operator_state: bytes | None
    raw_operator: list[bytes]
    source: SourceState | None
    task: TaskState | None
    #: Each is to be read once, piece by piece: `committables.read_committable`.
    committables: list[Iterator[bytes]]
    in_flight: list[bytes]


def read_parts(store: Store, root: str, parts: Sequence[KeyedPart]) -> Iterator[tuple[int, bytes]]:
    """Read (key group, part) pairs, in the order that `restore` of a keyed backend or of timers needs."""
    groups = (part.key_group for part in parts)
    yield from zip(groups, read_blobs(store, root, [part.blob for part in parts]), strict=True)


def read_subtask(store: Store, root: str, share: SubtaskShare, name: str) -> RestoredSubtask:
    """Read a share without its keyed parts, which are larger; `name` is the operator's, for error messages."""
    return RestoredSubtask(
        finished=share.own.finished,
        operator_state=_operator_state(store, root, share),
        raw_operator=list(read_blobs(store, root, share.own.raw_operator)),
        source=_source(store, root, share, name),
        task=_task(store, root, share),
        committables=[read_pieces(store, root, blob) for blob in share.own.committables],
        in_flight=list(read_blobs(store, root, share.saved("in_flight", of_all=share.regrouped))),
    )


def _operator_state(store: Store, root: str, share: SubtaskShare) -> bytes | None:
    """A subtask's lists; with another parallelism, or with union lists, out of those of all old subtasks."""
    if not (share.rescaled or share.own.union):
        return next(read_blobs(store, root, share.saved("operator_state", of_all=False)), None)
    blobs = [old.operator_state for old in share.old]
    if not any(blob is not None for blob in blobs):
        return None
    parts = [encode_operator_part([]) if blob is None else read_blob(store, root, blob) for blob in blobs]
    if len(parts) == 1 and not share.rescaled:
        return parts[0]
    return operator_share(parts, share.parallelism, share.subtask)


def _source(store: Store, root: str, share: SubtaskShare, name: str) -> SourceState | None:
    if not share.has_source or (share.rescaled and share.own.finished):
        return SourceState([]) if share.has_source else None
    own, everything = (
        [SourceState.decode(data) for data in read_blobs(store, root, share.saved("source", of_all=of_all))]
        for of_all in (False, share.rescaled or share.sees_all_splits)
    )
    if share.sees_all_splits:
        mine = None if share.rescaled else own[0] if own else SourceState([])
        return whole_source(everything, mine, name, share.parallelism, share.subtask)
    if share.rescaled:
        return source_share(everything, name, share.parallelism, share.subtask)
    return own[0] if own else None


def _task(store: Store, root: str, share: SubtaskShare) -> TaskState | None:
    blobs = share.saved("task", of_all=share.regrouped)
    states = [TaskState.decode(data) for data in read_blobs(store, root, blobs)]
    if not states or not share.regrouped:
        return states[0] if states else None
    return task_share(states)
