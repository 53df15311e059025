"""The parts of one subtask's state: written to the store, and combined with the parts of the base checkpoint (I12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from rekindle.checkpoint.manifest import Blob, FileRef, KeyedPart, PartKind, SubtaskState, blob_size
from rekindle.checkpoint.part_formats import holds_union
from rekindle.checkpoint.statefile import Part, PartWriter

#: (key group, part) as snapshots give them.
GroupParts = Iterable[tuple[int, bytes]]


@dataclass
class SubtaskParts:
    """What the futures of a snapshot brought. Parts of key groups may be generators: they are encoded as they are
    written, a delta or a full part for each key group that has something new.
    """

    subtask: int
    checkpoint_id: int
    finished: bool = False
    keyed_full: GroupParts = ()
    keyed_delta: GroupParts = ()
    timers: GroupParts = ()
    timers_delta: GroupParts = ()
    raw_keyed: GroupParts = ()
    operator_state: bytes | None = None
    raw_operator: list[bytes] = field(default_factory=list)
    source: bytes | None = None
    task: bytes | None = None
    in_flight: bytes | None = None
    has_in_flight: bool = False
    committables: Sequence[Part] = ()
    #: Told what was written, before anybody else is.
    on_written: Callable[[SubtaskState], None] = lambda state: None

    def tagged(self) -> Iterator[tuple[tuple[str, int], Part]]:
        """Every part as ((field of SubtaskState, key group or place), part), keyed ones in order of key group."""
        for name in ("keyed_full", "keyed_delta", "timers", "timers_delta", "raw_keyed"):
            for group, data in getattr(self, name):
                yield (name, group), data
        for name in ("operator_state", "source", "task", "in_flight"):
            data = getattr(self, name)
            if data is not None:
                yield (name, 0), data
        for name in ("raw_operator", "committables"):
            for place, data in enumerate(getattr(self, name)):
                yield (name, place), data


def write_subtask(writer: PartWriter, parts: SubtaskParts) -> SubtaskState:
    """Put the parts away; the answer holds what is new only, for `on_top_of` to complete."""
    blobs: dict[str, list[tuple[int, Blob]]] = {}
    for (name, place), blob in writer.write(parts.tagged()):
        blobs.setdefault(name, []).append((place, blob))

    def keyed(name: str, kind: PartKind) -> list[KeyedPart]:
        return [KeyedPart(group, kind, parts.checkpoint_id, blob) for group, blob in blobs.get(name, ())]

    def single(name: str) -> Blob | None:
        return blobs[name][0][1] if name in blobs else None

    state = SubtaskState(
        subtask=parts.subtask,
        finished=parts.finished,
        keyed=keyed("keyed_full", PartKind.FULL) + keyed("keyed_delta", PartKind.DELTA),
        timers=keyed("timers", PartKind.FULL) + keyed("timers_delta", PartKind.DELTA),
        raw_keyed=keyed("raw_keyed", PartKind.FULL),
        operator_state=single("operator_state"),
        union=parts.operator_state is not None and holds_union(parts.operator_state),
        raw_operator=[blob for _, blob in blobs.get("raw_operator", ())],
        source=single("source"),
        task=single("task"),
        in_flight=single("in_flight"),
        has_in_flight=parts.has_in_flight,
        committables=[blob for _, blob in blobs.get("committables", ())],
    )
    size = sum(map(blob_size, state.blobs()))
    state = msgspec.structs.replace(state, new_bytes=size, full_bytes=size, file_bytes=_file_bytes(state))
    parts.on_written(state)
    return state


def _file_bytes(state: SubtaskState) -> dict[str, int]:
    """Bytes per file that the state refers to."""
    sizes: Counter[str] = Counter()
    for blob in state.blobs():
        if isinstance(blob, FileRef):
            sizes[blob.path] += blob.length
    return dict(sizes)


def on_top_of(base: SubtaskState | None, new: SubtaskState) -> SubtaskState:
    """A subtask's whole state: its new parts, and the keyed parts and timers of the checkpoint that they stand on.

    `base` is the same subtask's state in the completed checkpoint that the snapshot's trigger named; None: the
    snapshot stands on nothing.
    """
    if base is not None and base.subtask != new.subtask:
        raise AssertionError(f"subtask {new.subtask} on top of subtask {base.subtask}")
    if base is None:
        base = SubtaskState(new.subtask)
    keyed = carried_over(base.keyed, new.keyed)
    timers = carried_over(base.timers, new.timers)
    whole = msgspec.structs.replace(new, keyed=keyed, timers=timers)
    needed = _file_bytes(whole)
    known = {**base.file_bytes, **new.file_bytes}
    return msgspec.structs.replace(
        whole,
        full_bytes=sum(map(blob_size, whole.blobs())),
        file_bytes={path: known.get(path, needed[path]) for path in needed},
    )


def by_key_group(parts: Iterable[KeyedPart]) -> dict[int, list[KeyedPart]]:
    """The parts of each key group, oldest first; key groups in order."""
    groups: dict[int, list[KeyedPart]] = {}
    for part in sorted(parts, key=lambda part: (part.key_group, part.order)):
        groups.setdefault(part.key_group, []).append(part)
    return groups


def carried_over(base: Iterable[KeyedPart], new: Iterable[KeyedPart]) -> list[KeyedPart]:
    """The parts of a checkpoint: those of the one it stands on, with what is new on top.

    A full part replaces everything before it. A delta on a key group that had nothing is all there is of it.

    >>> base = [KeyedPart(0, PartKind.FULL, 1, b"a"), KeyedPart(1, PartKind.FULL, 1, b"b")]
    >>> new = [KeyedPart(0, PartKind.DELTA, 2, b"c"), KeyedPart(1, PartKind.FULL, 2, b"d")]
    >>> [(part.key_group, part.blob) for part in carried_over(base, new)]
    [(0, b'a'), (0, b'c'), (1, b'd')]
    """
    groups = by_key_group(base)
    for group, parts in by_key_group(new).items():
        for part in parts:
            if part.kind is PartKind.FULL:
                groups[group] = [part]
            elif group not in groups:
                groups[group] = [msgspec.structs.replace(part, kind=PartKind.FULL)]
            else:
                assert part.order > groups[group][-1].order, f"key group {group}: a delta below its base"
                groups[group].append(part)
    return [part for group in sorted(groups) for part in groups[group]]
