"""The timers of one operator on disk, and their snapshots: encoded entries go into the parts, group by group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rekindle.runtime.state.rocksdb.entry_keys import ungrouped_prefix
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_timer_queue import StoredTimerQueue
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries
from rekindle.runtime.state.rocksdb.timer_log import LoggedTimers, TimerSegment
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.runtime.state.spec import Codec
from rekindle.runtime.timers import InternalTimers, TimerCapture


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
        return StoredTimerQueue(place.database, prefix, self._entries, place.limits)

    def snapshot(self, also: Collection[int] = ()) -> TimerCapture:
        """Capture all timers, without a cut."""
        return WholeTimers(self._folder, self._entries, [queue.capture() for queue in self._stored], also)

    def snapshot_delta(self, snapshot_id: int, since_completed_id: int) -> TimerCapture | None:
        """Cut: capture the changes since the completed snapshot; None, without a cut, if they are not known."""
        for queue in self._stored:
            queue.flush()
        return super().snapshot_delta(snapshot_id, since_completed_id)

    def _captured_changes(self, domains: Sequence[Sequence[TimerSegment]]) -> TimerCapture:
        return LoggedTimers(self._entries, domains)


class WholeTimers:
    """All timers at a cut. They come by time, so `encode` sorts them into key groups through a file."""

    def __init__(
        self,
        folder: Path,
        entries: TimerEntries,
        domains: Sequence[Iterable[list[tuple[int, RawTimer]]]],
        also: Collection[int],
    ) -> None:
        self._folder = folder
        self._entries = entries
        self._domains = domains
        self._also = also

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""
        yield from LoggedTimers(self._entries, [[self._sorted(each)] for each in self._domains], self._also).encode()

    def _sorted(self, blocks: Iterable[list[tuple[int, RawTimer]]]) -> TimerSegment:
        segment = TimerSegment(self._folder, self._entries, most_held=0)
        for block in blocks:
            segment.append(block)
        return segment
