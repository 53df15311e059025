"""The timers of one operator on disk, and their snapshots: encoded entries go into the parts, group by group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from rekindle.runtime.state.rocksdb.entry_keys import ungrouped_prefix
from rekindle.runtime.state.rocksdb.far_timers import FarTimers
from rekindle.runtime.state.rocksdb.group_spill import GroupSpill
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_timer_queue import StoredTimerQueue
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries
from rekindle.runtime.state.rocksdb.timer_log import TimerSegment, last_changes
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.runtime.state.spec import Codec
from rekindle.runtime.timers import InternalTimers, TimerCapture

_SORTED_TIMERS: Final = 1 << 14
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, RawTimer]]).decode


@dataclass(frozen=True)
class TimerPlace:
    """The place of an operator's timers in the database of its slot, and how many may be in memory."""

    database: ScratchDatabase
    operator: int
    limits: TimerLimits


class StoredTimers(InternalTimers):
    """Event-time and processing-time timers of one operator in one subtask, on disk."""

    def __init__(
        self,
        max_parallelism: int,
        key_groups: range,
        place: TimerPlace,
        *,
        key_codec: Codec | None = None,
        namespace_codec: Codec | None = None,
        allow_pickle: bool = True,
    ) -> None:
        super().__init__(
            max_parallelism,
            key_groups,
            key_codec=key_codec,
            namespace_codec=namespace_codec,
            allow_pickle=allow_pickle,
        )
        self._folder = place.database.folder
        self._entries = TimerEntries(max_parallelism, self._key_codec, self._namespace_codec)
        self._stored = self._queue(place, 0), self._queue(place, 1)
        self._use(*self._stored)

    def _queue(self, place: TimerPlace, domain: int) -> StoredTimerQueue:
        prefix = ungrouped_prefix(place.operator, domain)
        far = FarTimers(place.database, prefix, self._entries, place.limits.waiting)
        return StoredTimerQueue(far, self._folder, self._entries, place.limits)

    def snapshot(self, also: Collection[int] = ()) -> TimerCapture:
        """Capture all timers, without a cut."""
        return WholeTimers(self._folder, self._entries, [queue.capture() for queue in self._stored], also)

    def snapshot_whole(self, snapshot_id: int, since_completed_id: int | None, also: Collection[int]) -> TimerCapture:
        """Cut: capture all timers. `also` are key groups with stored timers: they get a part even if it is empty."""
        captured = self.snapshot(also)
        for queue in self._stored:
            queue.changes.cut(snapshot_id, since_completed_id, whole=True)
        return captured

    def snapshot_delta(self, snapshot_id: int, since_completed_id: int) -> TimerCapture | None:
        """Cut: capture the changes since the completed snapshot; None, without a cut, if they are not known."""
        for queue in self._stored:
            queue.flush()
        if not all(queue.changes.reaches(since_completed_id) for queue in self._stored):
            return None
        segments = [queue.changes.cut(snapshot_id, since_completed_id, whole=False) for queue in self._stored]
        return ChangedTimers(self._entries, segments)


class WholeTimers:
    """All timers at a cut. They come by time, so `encode` sorts them into key groups through a file."""

    def __init__(
        self,
        folder: Path,
        entries: TimerEntries,
        domains: Sequence[Iterable[tuple[int, RawTimer]]],
        also: Collection[int],
    ) -> None:
        self._folder = folder
        self._entries = entries
        self._domains = domains
        self._also = also

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""
        file = GroupSpill(self._folder, "Timers of a snapshot")
        for domain, timers in enumerate(self._domains):
            remaining = iter(timers)
            while some := list(islice(remaining, _SORTED_TIMERS)):
                file.append(_pieces(domain, some))
        for group in sorted({*file.groups(), *self._also}):
            yield group, self._part(file, group)

    def _part(self, file: GroupSpill, group: int) -> bytes:
        kinds: tuple[list[RawTimer], ...] = ([], [], [], [])
        for piece in file.pieces(group):
            for domain, timer in _decode(piece):
                kinds[domain].append(timer)
        return self._entries.part(kinds)


def _pieces(domain: int, timers: Iterable[tuple[int, RawTimer]]) -> Iterator[tuple[int, bytes]]:
    by_group: dict[int, list[tuple[int, RawTimer]]] = {}
    for group, timer in timers:
        by_group.setdefault(group, []).append((domain, timer))
    return ((group, _encode(own)) for group, own in by_group.items())


class ChangedTimers:
    """The timers that were set and removed since a completed snapshot."""

    def __init__(self, entries: TimerEntries, segments: Sequence[Sequence[TimerSegment]]) -> None:
        """`segments`: of event time, and of processing time."""
        self._entries = entries
        self._segments = segments

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""
        groups = {group for domain in self._segments for segment in domain for group in segment.groups()}
        for group in sorted(groups):
            (event, gone_event), (processing, gone_processing) = (
                last_changes(domain, group) for domain in self._segments
            )
            yield group, self._entries.part((event, processing, gone_event, gone_processing))
