"""The timers of one domain that were set or removed since the last completed snapshot (I12), bounded in memory.

The changes of each cut stay in a segment until a snapshot completes; a delta is the segments since the completed one,
the last change of a timer counts. Above a limit a segment goes to a file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from rekindle.runtime.state.rocksdb.group_spill import GroupSpill
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries
from rekindle.runtime.timer_parts import Timer

#: (timer, whether it was set)
Change = tuple[RawTimer, bool]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Change]).decode


class TimerSegment:
    """The changes between two cuts."""

    def __init__(self, folder: Path, entries: TimerEntries, most_held: int) -> None:
        self._folder = folder
        self._entries = entries
        self._most_held = most_held
        self._held: dict[Timer, bool] = {}
        self._file: GroupSpill | None = None
        self._encoded: dict[int, list[Change]] | None = None
        self._lock = threading.Lock()
        self._count = 0

    def note(self, timer: Timer, there: bool) -> None:
        """Note that a timer was set or removed."""
        held = self._held
        self._count += timer not in held
        held[timer] = there
        if len(held) > self._most_held:
            self.spill()

    def spill(self) -> None:
        """Write what is in memory to a file."""
        with self._lock:
            by_group = self._in_memory()
            if by_group:
                if self._file is None:
                    self._file = GroupSpill(self._folder, "Changes of timers")
                self._file.append((group, _encode(changes)) for group, changes in by_group.items())
            self._held, self._encoded = {}, None

    def _in_memory(self) -> dict[int, list[Change]]:
        if self._encoded is None:
            self._encoded = {}
            raw = self._entries.raw(list(self._held)) if self._held else []
            for (group, timer), there in zip(raw, self._held.values(), strict=True):
                self._encoded.setdefault(group, []).append((timer, there))
        return self._encoded

    def continue_from(self, earlier: TimerSegment) -> bool:
        """Begin with the changes of an earlier segment; False if this one has a file of its own already."""
        if self._file is not None:
            return False
        earlier.spill()
        self._file = earlier._file
        self._count += len(earlier)
        return True

    def groups(self) -> set[int]:
        """The key groups whose timers changed; on any thread, once nothing is noted any more."""
        with self._lock:
            return {*(self._file.groups() if self._file is not None else ()), *self._in_memory()}

    def changes(self, group: int) -> list[Change]:
        """The changes of a key group, in order; on any thread, once nothing is noted any more."""
        with self._lock:
            spilled = list(self._spilled(self._file, group)) if self._file is not None else []
            return spilled + self._in_memory().get(group, [])

    def _spilled(self, file: GroupSpill, group: int) -> Iterator[Change]:
        try:
            for piece in file.pieces(group):
                yield from _decode(piece)
        except msgspec.DecodeError as error:
            raise file.failed("read from", error) from error

    def __len__(self) -> int:
        """The changes so far, in memory and in the file; a timer counts once or more often."""
        return self._count


class TimerLog:
    """The open segment, and the sealed ones of snapshots that are not completed.

    Changes are tracked from a restore or a whole snapshot on.
    """

    def __init__(self, folder: Path, entries: TimerEntries, most_held: int) -> None:
        self._folder = folder
        self._entries = entries
        self._most_held = most_held
        #: None while changes are not tracked.
        self.open: TimerSegment | None = None
        self._sealed: list[tuple[int, TimerSegment]] = []
        # Deltas are possible on top of this snapshot and of later ones; None: of none.
        self._known_since: int | None = None

    def _new_segment(self) -> TimerSegment:
        return TimerSegment(self._folder, self._entries, self._most_held)

    def restored(self) -> None:
        """Track changes from a restore on: the restored snapshot is the next one's base."""
        self.open = self._new_segment()
        self._known_since = 0

    def reaches(self, since: int) -> bool:
        """Whether all changes since that completed snapshot were tracked."""
        return self.open is not None and self._known_since is not None and self._known_since <= since

    def cut(self, snapshot_id: int, since: int | None, whole: bool) -> list[TimerSegment]:
        """Seal the open segment; return the segments since the completed snapshot.

        `whole`: the snapshot holds all timers, so later deltas can build on it even if tracking was given up before.
        """
        if since is not None:
            self.completed(since)
        if self.open is not None:
            self._sealed.append((snapshot_id, self.open))
            self.open = self._new_segment()
        elif whole:
            self._known_since = snapshot_id
            self.open = self._new_segment()
        return [segment for _, segment in self._sealed]

    def completed(self, snapshot_id: int) -> None:
        """Drop the segments of a completed snapshot and of older ones."""
        self._sealed = [(sealed, segment) for sealed, segment in self._sealed if sealed > snapshot_id]

    def aborted(self, snapshot_id: int) -> None:
        """Let an aborted snapshot's changes wait on the disk for the next one."""
        for place, (sealed, segment) in enumerate(self._sealed):
            if sealed == snapshot_id:
                segment.spill()
                is_last = place == len(self._sealed) - 1
                if is_last and self.open is not None and self.open.continue_from(segment):
                    del self._sealed[place]
                return

    def give_up(self) -> None:
        """Stop tracking, and drop all changes."""
        self.open = None
        self._sealed.clear()
        self._known_since = None


def last_changes(segments: Sequence[TimerSegment], group: int) -> tuple[list[RawTimer], list[RawTimer]]:
    """The timers of a key group that are set, and those that are gone, after the changes of all segments."""
    last: dict[bytes, Change] = {}
    for segment in segments:
        for timer, there in segment.changes(group):
            last[timer.position] = timer, there
    there_now = [timer for timer, there in last.values() if there]
    return there_now, [timer for timer, there in last.values() if not there]
