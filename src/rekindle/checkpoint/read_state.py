"""Read a subtask's share of a checkpoint from the store, and verify it."""

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
        finished=share.finished,
        operator_state=_operator_state(store, root, share),
        raw_operator=list(read_blobs(store, root, share.raw_operator)),
        source=_source(store, root, share, name),
        task=_task(store, root, share),
        committables=[read_pieces(store, root, blob) for blob in share.committables],
        in_flight=_read(store, root, share.in_flight),
    )


def _operator_state(store: Store, root: str, share: SubtaskShare) -> bytes | None:
    blobs = share.operator_state
    if not blobs:
        return None
    parts = [encode_operator_part([]) if blob is None else read_blob(store, root, blob) for blob in blobs]
    if len(parts) == 1 and not share.rescaled:
        return parts[0]
    return operator_share(parts, share.parallelism, share.subtask)


def _source(store: Store, root: str, share: SubtaskShare, name: str) -> SourceState | None:
    if share.rescaled and share.finished:
        return SourceState([]) if share.source or share.all_sources else None
    states, all_states = (
        [SourceState.decode(data) for data in _read(store, root, blobs)] for blobs in (share.source, share.all_sources)
    )
    if all_states:
        own = None if share.rescaled else states[0] if states else SourceState([])
        return whole_source(all_states, own, name, share.parallelism, share.subtask)
    if not states or not share.rescaled:
        return states[0] if states else None
    return source_share(states, name, share.parallelism, share.subtask)


def _task(store: Store, root: str, share: SubtaskShare) -> TaskState | None:
    states = [TaskState.decode(data) for data in _read(store, root, share.task)]
    if not states or not share.regrouped:
        return states[0] if states else None
    return task_share(states)


def _read(store: Store, root: str, blobs: Sequence[Blob]) -> list[bytes]:
    return list(read_blobs(store, root, blobs))
