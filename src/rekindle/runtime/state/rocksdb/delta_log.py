"""The changes since the last completed snapshot (I12), as operations that a delta writes.

A part is a log: a key may stand in it several times. So the changes of each cut stay as they were captured, in a
segment, until a snapshot completes, and a delta is the segments since the completed one, one after the other. Rows that
leave the cache write their change into the open segment; above a limit it goes to a file.

While snapshots keep failing, segments pile up. Above the share of memory they go to files, and once they weigh more
than the state itself they are dropped: their key groups are *forgotten*, and the next snapshot writes these whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

import msgspec

from rekindle.errors import RekindleError
from rekindle.runtime.state.keyed_state_format import StatePart
from rekindle.runtime.state.rocksdb.group_spill import GroupSpill

_encode = msgspec.msgpack.Encoder().encode
_decode_parts = msgspec.msgpack.Decoder(list[StatePart]).decode
#: What an operation costs beside its bytes.
_OPERATION_BYTES: Final = 120
#: More segments than these cost more than key groups that are written whole.
_MOST_SEGMENTS: Final = 128


class Operations(Protocol):
    """Operations on one state in one key group, as elements."""

    def part(self) -> StatePart:
        """Encode them."""


class Segment:
    """The changes between two cuts: first those of rows that left the cache, then those of the rows in it."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """`most_bytes` are the most encoded operations that stay in memory once it is sealed."""
        self.snapshot_id: int | None = None
        self.bytes = 0
        self._most_bytes = most_bytes
        self._folder = folder
        self._waiting: dict[tuple[int, int], Operations] = {}
        self._file: GroupSpill | None = None
        self._encoded: dict[int, list[StatePart]] = {}
        #: Encoded operations in memory.
        self.encoded_bytes = 0
        self._lock = threading.Lock()

    # -- while it is open ---------------------------------------------------------------------------------------------

    def operations(self, group: int, state: int) -> Operations | None:
        """The operations on a state in a key group that wait in memory."""
        return self._waiting.get((group, state))

    def begin(self, group: int, state: int, operations: Operations) -> None:
        """Let operations on a state in a key group wait in memory."""
        self._waiting[group, state] = operations

    def add_part(self, group: int, part: StatePart) -> None:
        """Add encoded operations."""
        self.spill()
        self._spill_file().append([(group, _encode([part]))])

    def grow(self, operations: int, size: int) -> None:
        """Count what was added."""
        self.bytes += size + operations * _OPERATION_BYTES

    def spill(self) -> None:
        """Write what waits in memory to a file."""
        if not self._waiting:
            return
        self._spill_file().append(self._parts_in_memory())
        self._waiting.clear()
        self.bytes = 0

    def _spill_file(self) -> GroupSpill:
        if self._file is None:
            self._file = GroupSpill(self._folder, "Changes of state")
        return self._file

    def _parts_in_memory(self) -> Iterator[tuple[int, bytes]]:
        by_group: dict[int, list[Operations]] = {}
        for (group, _), operations in self._waiting.items():
            by_group.setdefault(group, []).append(operations)
        for group, each in by_group.items():
            yield group, _encode([operations.part() for operations in each])

    # -- once it is sealed --------------------------------------------------------------------------------------------

    def seal(self, snapshot_id: int, cached: Iterable[tuple[int, StatePart]]) -> None:
        """Close the segment for a snapshot, with the changes of the rows in the cache, by key group."""
        self.snapshot_id = snapshot_id
        logged = [(group, operations.part()) for (group, _), operations in self._waiting.items()]
        self._waiting.clear()
        for group, part in chain(logged, cached):
            self._encoded.setdefault(group, []).append(part)
            self.encoded_bytes += len(part.keys) + len(part.operations)

    def groups(self) -> set[int]:
        """The key groups that changed."""
        with self._lock:
            spilled = self._file.groups() if self._file is not None else ()
            return {*spilled, *self._encoded}

    def parts(self, group: int) -> list[StatePart]:
        """The operations of a key group, in order; on any thread."""
        with self._lock:
            return self._spilled_parts(group) + self._encoded.get(group, [])

    def _spilled_parts(self, group: int) -> list[StatePart]:
        if self._file is None:
            return []
        try:
            return [part for piece in self._file.pieces(group) for part in _decode_parts(piece)]
        except msgspec.DecodeError as error:
            raise self._file.failed("read from", error) from error

    def bound_encoded(self) -> None:
        """Move the encoded operations to a file if they are too large for memory, where they stay for long."""
        if self.encoded_bytes > self._most_bytes:
            self.spill_encoded()

    def spill_encoded(self) -> None:
        """Move the encoded operations to a file."""
        with self._lock:
            for group, parts in list(self._encoded.items()):
                self._spill_file().append([(group, _encode(parts))])
                del self._encoded[group]  # at once: if the next one fails, this one is not there twice
            self.encoded_bytes = 0

    @property
    def bytes_on_disk(self) -> int:
        """The length of its file."""
        return self._file.length if self._file is not None else 0


class DeltaLog:
    """The open segment, and the sealed ones of snapshots that are not completed."""

    def __init__(self, folder: Path, most_bytes: int, state_bytes: Callable[[], int]) -> None:
        """`most_bytes` are the log's share of memory, `state_bytes` tells about the size of the whole state."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._state_bytes = state_bytes
        self._sealed: list[Segment] = []
        self._forgotten: dict[int, int] = {}  # key group -> the newest snapshot whose changes were dropped
        self.open = Segment(folder, most_bytes)

    def bound(self) -> None:
        """Spill the open segment if it is too large for memory."""
        if self.open.bytes > self._most_bytes:
            self.open.spill()

    def bound_sealed(self, since_completed_id: int | None) -> frozenset[int]:
        """Bound what snapshots that did not complete have left; return the key groups that must be written whole.

        Call it before `cut`.
        """
        if since_completed_id is not None:
            self.completed(since_completed_id)
        in_memory = sum(segment.encoded_bytes for segment in self._sealed)
        if in_memory > self._most_bytes:
            for segment in self._sealed:
                segment.spill_encoded()
        size = sum(segment.bytes_on_disk for segment in self._sealed) + min(in_memory, self._most_bytes)
        if len(self._sealed) >= _MOST_SEGMENTS or size > self._most_bytes + self._state_bytes():
            self._drop_sealed()
        return frozenset(self._forgotten)

    def _drop_sealed(self) -> None:
        for segment in self._sealed:  # oldest first
            assert segment.snapshot_id is not None
            self._forgotten.update(dict.fromkeys(segment.groups(), segment.snapshot_id))
        self._sealed = []

    def cut(self, snapshot_id: int, cached: Iterable[tuple[int, StatePart]]) -> Sequence[Segment]:
        """Seal the open segment; return the segments since the completed snapshot that are not dropped."""
        newest = self._sealed[-1].snapshot_id or 0 if self._sealed else max(self._forgotten.values(), default=0)
        if newest >= snapshot_id:
            raise RekindleError(f"Snapshot {snapshot_id} was asked for after snapshot {newest}.")
        self.open.seal(snapshot_id, cached)
        self._sealed.append(self.open)
        self.open = Segment(self._folder, self._most_bytes)
        return tuple(self._sealed)

    def completed(self, snapshot_id: int) -> None:
        """Drop the segments of a completed snapshot and of older ones."""
        self._sealed = [segment for segment in self._sealed if (segment.snapshot_id or 0) > snapshot_id]
        self._forgotten = {group: newest for group, newest in self._forgotten.items() if newest > snapshot_id}

    def forget(self) -> None:
        """Drop all changes."""
        self._sealed, self._forgotten = [], {}
        self.open = Segment(self._folder, self._most_bytes)
