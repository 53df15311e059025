"""The parts of one subtask's state: captured, written to the store, put on top of the base checkpoint's parts (I12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rekindle.checkpoint.manifest import (
    BY_KEY_GROUP,
    LISTS,
    SINGLE,
    FileRef,
    KeyedPart,
    PartKind,
    SubtaskState,
    blob_size,
)
from rekindle.checkpoint.statefile import Part, PartWriter

#: (key group, part). An iterator encodes each part when it is asked for it.
GroupParts = Iterable[tuple[int, Part]]

#: The kind of a part and where it belongs: (field of `SubtaskState`, kind, key group or position).
_Tag = tuple[str, PartKind, int]


@dataclass
class CapturedOperator:
    """One operator's state, captured at the barrier and not yet written: Flink's `OperatorSnapshotFutures`.

    Parts are added under the names of `SubtaskState`'s fields. Their iterables are the futures: `write_subtask` reads
    them once, later and on another thread, and each part is encoded as it is written. `cancel` drops them.
    """

    subtask: int
    checkpoint_id: int
    #: The operator's uid, and its name with the subtask: for the state file and for messages.
    uid: str = ""
    name: str = ""
    #: Whether some of the lists in the operator state are union lists.
    union: bool = False
    #: Whether `in_flight` or `source` holds records in flight.
    has_in_flight: bool = False
    #: The time that the synchronous part took.
    sync_ms: float = 0.0
    #: Called with the written state before the driver hears of it; tells the files that the whole state consists of.
    on_written: Callable[[SubtaskState], Iterable[str]] = lambda state: state.file_bytes
    #: These files, once the state is written: those of the base checkpoint too.
    files: frozenset[str] = frozenset()
    #: Whether the parts were read or dropped: they can be read once.
    used: bool = False
    _parts: dict[str, list[tuple[PartKind, GroupParts]]] = field(default_factory=dict)

    def add_groups(self, name: str, parts: GroupParts, kind: PartKind = PartKind.FULL) -> None:
        """Add parts by key group."""
        assert name in BY_KEY_GROUP, name
        self._parts.setdefault(name, []).append((kind, parts))

    def add(self, name: str, data: bytes | None) -> None:
        """Add a single blob; None: there is none."""
        assert name in SINGLE, name
        if data is not None:
            self._parts[name] = [(PartKind.FULL, [(0, data)])]

    def add_list(self, name: str, data: Iterable[Part]) -> None:
        """Add a list of blobs."""
        assert name in LISTS, name
        self._parts[name] = [(PartKind.FULL, enumerate(data))]

    def cancel(self) -> None:
        """Drop all parts, so that captured state can be freed; they cannot be written any more."""
        self.used = True
        self._parts.clear()

    def tagged(self) -> Iterator[tuple[_Tag, Part]]:
        """Every part with its tag, in the order of the state file."""
        assert not self.used, f"the snapshot {self.checkpoint_id} was cancelled, or written before"
        self.used = True
        for name in (*BY_KEY_GROUP, *SINGLE, *LISTS):
            for kind, parts in self._parts.get(name, ()):
                for position, data in parts:
                    yield (name, kind, position), data


def write_subtask(writer: PartWriter, captured: CapturedOperator, *, finished: bool = False) -> SubtaskState:
    """Encode and store captured parts. The result names new parts only: `on_top_of` adds those of the base.

    `finished`: whether the subtask's input had ended (I9).
    """
    try:
        state = _written(writer, captured, finished)
        captured.files = frozenset(captured.on_written(state))
        return state
    finally:
        captured.cancel()  # free the parts, written or not


def _written(writer: PartWriter, captured: CapturedOperator, finished: bool) -> SubtaskState:
    fields: dict[str, Any] = {}
    for (name, kind, position), blob in writer.write(captured.tagged()):
        if name in SINGLE:
            fields[name] = blob
        elif name in LISTS:
            fields.setdefault(name, []).append(blob)
        else:
            fields.setdefault(name, []).append(KeyedPart(position, kind, captured.checkpoint_id, blob))
    whole = SubtaskState(
        captured.subtask, finished, union=captured.union, has_in_flight=captured.has_in_flight, **fields
    )
    return measured(whole)


def measured(state: SubtaskState) -> SubtaskState:
    """A state whose parts are all new, with the sizes that the manifest keeps."""
    size = sum(map(blob_size, state.blobs()))
    return msgspec.structs.replace(state, new_bytes=size, full_bytes=size, file_bytes=_file_bytes(state))


def _file_bytes(state: SubtaskState) -> dict[str, int]:
    """File -> bytes of it that the state refers to."""
    sizes: Counter[str] = Counter()
    for blob in state.blobs():
        if isinstance(blob, FileRef):
            sizes[blob.path] += blob.length
    return dict(sizes)


def on_top_of(base: SubtaskState | None, new: SubtaskState) -> SubtaskState:
    """A subtask's whole state: its new parts, and the keyed parts and timers of the base checkpoint.

    `base` is the same subtask's state in the completed checkpoint that the trigger named; None: there is no base.
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
    """The parts of a checkpoint: those of its base, with the new parts on top.

    A full part replaces all parts of its key group. A delta on a key group without parts becomes its full part.

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
