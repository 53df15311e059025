"""The timers of one domain that were set or removed between two cuts (I12), bounded in memory: the rest is in files.

A delta is the segments since the completed snapshot; the last change of a timer counts.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from rekindle.runtime.state.rocksdb.group_spill import GroupSpill
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries
from rekindle.runtime.timer_parts import Timer

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[RawTimer]).decode


class TimerSegment:
    """Changes in order: timer -> whether it is set."""

    def __init__(self, folder: Path, entries: TimerEntries, most_held: int) -> None:
        self._folder = folder
        self._entries = entries
        self._most_held = most_held
        #: The earlier changes.
        self._files: list[GroupSpill] = []
        self._held: dict[Timer, bool] = {}
        self._encoded: dict[int, list[RawTimer]] | None = None
        self._lock = threading.Lock()
        self._count = 0

    def __setitem__(self, timer: Timer, there: bool) -> None:
        held = self._held
        self._count += timer not in held
        held[timer] = there
        if len(held) > self._most_held:
            self.spill()

    def __len__(self) -> int:
        """The changes so far, in memory and in files; a timer counts once or more often."""
        return self._count

    def spill(self) -> None:
        """Write the changes in memory to a file."""
        with self._lock:
            self._write(self._in_memory())
            self._held, self._encoded = {}, None

    def append(self, timers: Iterable[tuple[int, RawTimer]]) -> None:
        """Write encoded changes to a file, with their key groups."""
        self._write(_by_group(timers))

    def _write(self, by_group: Mapping[int, list[RawTimer]]) -> None:
        if by_group:
            if not self._files:
                self._files.append(GroupSpill(self._folder, "Timers on their way to a checkpoint"))
            self._files[-1].append((group, _encode(timers)) for group, timers in by_group.items())

    def _in_memory(self) -> dict[int, list[RawTimer]]:
        if self._encoded is None:
            self._encoded = _by_group(self._entries.raw(self._held))
        return self._encoded

    def joined(self, later: TimerSegment) -> TimerSegment:
        """One segment of this one, whose snapshot was aborted, and of the one after it; both may still be read."""
        self.spill()
        both = TimerSegment(self._folder, self._entries, self._most_held)
        both._files = self._files + later._files
        both._held = later._held
        both._count = self._count + later._count
        return both

    # -- on any thread, once nothing is added any more ----------------------------------------------------------------

    def groups(self) -> set[int]:
        """The key groups whose timers changed."""
        with self._lock:
            return set(self._in_memory()).union(*(file.groups() for file in self._files))

    def changes(self, group: int) -> list[RawTimer]:
        """The changes of a key group, in order."""
        with self._lock:
            spilled = [timer for file in self._files for timer in _spilled(file, group)]
            return spilled + self._in_memory().get(group, [])


def _by_group(timers: Iterable[tuple[int, RawTimer]]) -> dict[int, list[RawTimer]]:
    by_group: dict[int, list[RawTimer]] = {}
    for group, timer in timers:
        by_group.setdefault(group, []).append(timer)
    return by_group


def _spilled(file: GroupSpill, group: int) -> Iterator[RawTimer]:
    try:
        for piece in file.pieces(group):
            yield from _decode(piece)
    except msgspec.DecodeError as error:
        raise file.failed("read from", error) from error


class LoggedTimers:
    """The changes of segments, captured at a cut."""

    def __init__(
        self, entries: TimerEntries, domains: Sequence[Sequence[TimerSegment]], also: Collection[int] = ()
    ) -> None:
        """`domains`: of event time, and of processing time. Key groups in `also` get a part in any case."""
        self._entries = entries
        self._domains = domains
        self._also = also

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""
        groups = {group for segments in self._domains for segment in segments for group in segment.groups()}
        for group in sorted(groups.union(self._also)):
            event, processing = (_last_changes(segments, group) for segments in self._domains)
            yield group, self._entries.part([event[True], processing[True], event[False], processing[False]])


def _last_changes(segments: Iterable[TimerSegment], group: int) -> dict[bool, list[RawTimer]]:
    """The timers of a key group that are set (True), and those that are gone, after the changes of all segments."""
    last = {timer.position: timer for segment in segments for timer in segment.changes(group)}
    found: dict[bool, list[RawTimer]] = {True: [], False: []}
    for timer in last.values():
        found[timer.is_set].append(timer)
    return found
