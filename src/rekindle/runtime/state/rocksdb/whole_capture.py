"""Key groups and deltas of a snapshot as they are written: read from the database and the delta log by the uploader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from rekindle.checkpoint.statefile import Part
from rekindle.runtime.state.keyed_state_format import GroupCapture, GroupPieces, StatePart, encode_group
from rekindle.runtime.state.rocksdb.delta_log import Segment
from rekindle.runtime.state.rocksdb.group_spill import GroupSpill
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_states import StoredState
from rekindle.system import return_free_memory

_DECODED_KEYS: Final = 1024
#: A larger part waits in a file, and is not copied into one piece.
_LARGE_BYTES: Final = 1 << 20


class ScannedGroup:
    """A whole key group as of a view of the database; encoded later, on any thread."""

    def __init__(
        self,
        key_group: int,
        database: ScratchDatabase,
        view: Any,
        states: Sequence[StoredState],
        carried: Iterable[StatePart],
    ) -> None:
        self.key_group = key_group
        self._database = database
        self._view = view
        self._states = states
        self._carried = carried

    def encode(self) -> Part:
        """Encode the part, some entries at a time."""
        kept = SpilledPieces(self._database.folder, self.key_group)
        pieces = GroupPieces(chain(self._carried, *map(self._scanned, self._states)), kept)
        return pieces if len(pieces) > _LARGE_BYTES else b"".join(pieces)

    def _scanned(self, state: StoredState) -> Iterator[StatePart]:
        return state.scanned_parts(self._database.scan(state.prefix(self.key_group), self._view))


class SpilledPieces:
    """The pieces of a key group's part: the first ones go to a file when they are many."""

    def __init__(self, folder: Path, key_group: int) -> None:
        self._folder = folder
        self._key_group = key_group
        self._file: GroupSpill | None = None
        self._held: list[bytes] = []
        self._held_bytes = 0

    def append(self, piece: bytes) -> None:
        """Add a piece."""
        self._held.append(piece)
        self._held_bytes += len(piece)
        if self._held_bytes > _LARGE_BYTES:
            self._file = self._file or GroupSpill(self._folder, "A key group on its way to a checkpoint")
            self._file.append((self._key_group, each) for each in self._held)
            self._held, self._held_bytes = [], 0

    def __iter__(self) -> Iterator[bytes]:
        if self._file is not None:
            yield from self._file.pieces(self._key_group)
        yield from self._held


class LoggedDelta:
    """The changes since a completed snapshot: one part per key group that changed."""

    def __init__(self, segments: Sequence[Segment], whole: list[GroupCapture]) -> None:
        #: Key groups that are written whole, so that their changes are not in the delta.
        self.whole = whole
        self._segments = segments
        self._without = frozenset(group.key_group for group in whole)

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""
        groups = {group for segment in self._segments for group in segment.groups()} - self._without
        for group in sorted(groups):
            parts = [part for segment in self._segments for part in segment.parts(group)]
            if parts:
                yield group, encode_group(parts)
        return_free_memory()


def keys_of(database: ScratchDatabase, view: Any, state: StoredState, group: int) -> Iterator[Any]:
    """The keys that have a value in a state, in one key group, as of a view of the database."""
    elements = state.scanned_keys(database.scan(state.prefix(group), view))
    while some := list(islice(elements, _DECODED_KEYS)):
        yield from state.keys.values(some)
