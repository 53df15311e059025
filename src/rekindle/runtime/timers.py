"""The timers of one operator in one subtask: one per key, namespace, time and domain; due timers come in order.

Timers are kept in buckets by time, the distinct times in a heap. Timers of the same time fire in the order of their
keys' canonical bytes (I1), which are computed only when they fire: registering costs two dict operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.runtime.key_bytes import canonical_bytes
from rekindle.runtime.state.spec import Codec
from rekindle.runtime.timer_parts import (
    CHANGES_ALLOWED,
    CapturedTimers,
    Timer,
    TimerChanges,
    TimerLists,
    decode_timers,
)
from rekindle.serde import value_codec_for

__all__ = ["CapturedTimers", "DomainTimers", "InternalTimers", "Timer", "TimerCapture", "TimerQueue"]

_STALE_ALLOWED: Final = 64

# (key, namespace) in order of registration; the values mean nothing.
_Bucket = dict[tuple[Any, Any], None]


class TrackedChanges(Protocol):
    """The changes of timers since the last completed snapshot."""

    def completed(self, snapshot_id: int) -> None:
        """Drop the changes of a completed snapshot and of older ones."""

    def aborted(self, snapshot_id: int) -> None:
        """Keep an aborted snapshot's changes for the next one."""


class DomainTimers(Protocol):
    """The timers of one domain: event time or processing time, in memory or on disk."""

    @property
    def changes(self) -> TrackedChanges:
        """The changes since the last completed snapshot."""

    def register(self, time: int, key: Any, namespace: Any = None) -> None:
        """Set a timer; setting it again changes nothing."""

    def delete(self, time: int, key: Any, namespace: Any = None) -> None:
        """Remove a timer, if it is there."""

    def next_time(self) -> int | None:
        """The time of the first timer."""

    def due(self, limit: int) -> Iterator[Timer]:
        """Remove and yield the timers that are due at `limit`, by (time, key bytes)."""

    def drop_due(self, limit: int) -> None:
        """Remove the timers that are due at `limit`, without yielding them: the caller has handled them itself."""

    def drain(self) -> Iterator[Timer]:
        """Remove and yield all current timers, by (time, key bytes); timers that are set meanwhile are dropped."""

    def all(self) -> Iterator[Timer]:
        """Every timer, in no order."""

    def load(self, timers: Iterable[Timer]) -> None:
        """Set restored timers. Call `loaded` after the last of them, before any other method but `delete`."""

    def loaded(self) -> None:
        """Finish a restore: all timers are set; changes are tracked from here on."""

    def __len__(self) -> int:
        """The number of timers."""


class TimerCapture(Protocol):
    """Timers captured at a cut."""

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""


class TimerQueue:
    """The timers of one domain, in memory."""

    __slots__ = ("_buckets", "_firing", "_heap", "_most_changes", "changes")

    def __init__(self) -> None:
        self.changes = TimerChanges()
        self._most_changes = CHANGES_ALLOWED
        self._buckets: dict[int, _Bucket] = {}
        # Every time in `_buckets` that is not firing right now, and stale times whose bucket is gone.
        self._heap: list[int] = []
        self._firing: set[int] = set()

    def register(self, time: int, key: Any, namespace: Any = None) -> None:
        """Set a timer; setting it again changes nothing."""
        bucket = self._buckets.get(time)
        if bucket is None:
            bucket = self._buckets[time] = {}
            heappush(self._heap, time)
        entry = key, namespace
        if entry not in bucket:
            bucket[entry] = None
            touched = self.changes.open
            if touched is not None:
                touched[time, key, namespace] = None
                if len(touched) > self._most_changes:
                    self._bound_changes(len(touched))

    def load(self, timers: Iterable[Timer]) -> None:
        """Set restored timers. Call `loaded` after the last of them, before any other method."""
        buckets = self._buckets
        for time, key, namespace in timers:
            bucket = buckets.get(time)
            if bucket is None:
                buckets[time] = {(key, namespace): None}
            else:
                bucket[key, namespace] = None

    def loaded(self) -> None:
        """Finish a restore: all timers are set; changes are tracked from here on."""
        self._heap[:] = self._buckets
        heapify(self._heap)
        self.changes.restored()

    def delete(self, time: int, key: Any, namespace: Any = None) -> None:
        """Remove a timer, if it is there."""
        bucket = self._buckets.get(time)
        if bucket is None or (key, namespace) not in bucket:
            return
        del bucket[key, namespace]
        if self.changes.open is not None:
            self.changes.open[time, key, namespace] = None
        if not bucket and time not in self._firing:
            del self._buckets[time]
            if len(self._heap) > 2 * len(self._buckets) + _STALE_ALLOWED:
                self._heap[:] = self._buckets
                heapify(self._heap)

    def next_time(self) -> int | None:
        """The time of the first timer."""
        heap = self._heap
        while heap and heap[0] not in self._buckets:
            heappop(heap)
        return heap[0] if heap else None

    def due(self, limit: int) -> Iterator[Timer]:
        """Remove and yield the timers that are due at `limit`, by (time, key bytes).

        The handler of a timer may set and delete others meanwhile: a new timer that is due at `limit` too comes in this
        round, one of the current time after the others of this time, and an earlier one before the rest of them. A
        timer that is deleted and set again keeps its place.
        """
        buckets, heap, changes = self._buckets, self._heap, self.changes
        firing: list[tuple[int, _Bucket, list[tuple[Any, Any]]]] = []
        try:
            while True:
                # Mostly a time has a single timer: that needs no bookkeeping.
                while heap and not firing and heap[0] <= limit:
                    only = buckets.get(heap[0])
                    if only is not None and len(only) != 1:
                        break
                    time = heappop(heap)
                    if only is None:
                        continue
                    ((key, namespace),) = only
                    del buckets[time]
                    if changes.open is not None:
                        changes.open[time, key, namespace] = None
                    yield time, key, namespace
                first = self.next_time()
                if first is not None and first <= limit and (not firing or first < firing[-1][0]):
                    heappop(self._heap)
                    bucket = self._buckets[first]
                    firing.append((first, bucket, _last_to_first(bucket)))
                    self._firing.add(first)
                if not firing:
                    return
                time, bucket, waiting = firing[-1]
                if waiting:
                    entry = waiting.pop()
                    if entry in bucket:
                        del bucket[entry]
                        timer = time, entry[0], entry[1]
                        if self.changes.open is not None:
                            self.changes.open[timer] = None
                        yield timer
                elif bucket:
                    waiting.extend(_last_to_first(bucket))
                else:
                    firing.pop()
                    self._firing.discard(time)
                    del self._buckets[time]
        finally:
            for time, bucket, _ in firing:
                self._firing.discard(time)
                if bucket:
                    heappush(self._heap, time)
                else:
                    del self._buckets[time]

    def drop_due(self, limit: int) -> None:
        """Remove the timers that are due at `limit`, without yielding them: the caller has handled them itself."""
        while (first := self.next_time()) is not None and first <= limit:
            heappop(self._heap)
            bucket = self._buckets.pop(first)
            touched = self.changes.open
            if touched is not None:
                for key, namespace in bucket:
                    touched[first, key, namespace] = None
                if len(touched) > self._most_changes:
                    self._bound_changes(len(touched))

    def drain(self) -> Iterator[Timer]:
        """Remove and yield all current timers, by (time, key bytes); timers that are set meanwhile are dropped."""
        return self._drained([(time, _last_to_first(self._buckets[time])) for time in sorted(self._buckets)])

    def _drained(self, waiting: list[tuple[int, list[tuple[Any, Any]]]]) -> Iterator[Timer]:
        for time, entries in waiting:
            for key, namespace in reversed(entries):
                if (key, namespace) in self._buckets.get(time, ()):
                    self.delete(time, key, namespace)
                    yield time, key, namespace
        self.drop_due(MAX_WATERMARK)

    def all(self) -> Iterator[Timer]:
        """Every timer, in no order."""
        for time, bucket in self._buckets.items():
            for key, namespace in bucket:
                yield time, key, namespace

    def split(self, timers: Iterable[Timer]) -> tuple[list[Timer], list[Timer]]:
        """Split timers into those that are set and those that are not."""
        there: list[Timer] = []
        gone: list[Timer] = []
        for timer in timers:
            time, key, namespace = timer
            (there if (key, namespace) in self._buckets.get(time, ()) else gone).append(timer)
        return there, gone

    def _bound_changes(self, touched: int) -> None:
        self._most_changes = 2 * len(self) + CHANGES_ALLOWED
        if touched > self._most_changes:
            self.changes.give_up()

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))


def _last_to_first(bucket: _Bucket) -> list[tuple[Any, Any]]:
    return sorted(bucket, key=_order, reverse=True)


def _order(entry: tuple[Any, Any]) -> tuple[bytes, bytes]:
    key, namespace = entry
    return canonical_bytes(key), canonical_bytes(namespace)


class InternalTimers:
    """Event-time and processing-time timers of one operator in one subtask."""

    def __init__(
        self,
        max_parallelism: int,
        key_groups: range,
        *,
        key_codec: Codec | None = None,
        namespace_codec: Codec | None = None,
        allow_pickle: bool = True,
    ) -> None:
        """The codecs write keys and namespaces into snapshots: by default tagged."""
        self.key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._allow_pickle = allow_pickle
        self._key_codec = key_codec or value_codec_for(None, allow_pickle=allow_pickle)
        self._namespace_codec = namespace_codec or value_codec_for(None, allow_pickle=allow_pickle)
        self._held = TimerQueue(), TimerQueue()
        self._use(*self._held)

    def _use(self, event: DomainTimers, processing: DomainTimers) -> None:
        self.event, self.processing = event, processing
        # Bound methods: these are called per record.
        self.register_event_time: Callable[..., None] = event.register
        self.delete_event_time: Callable[..., None] = event.delete
        self.register_processing_time: Callable[..., None] = processing.register
        self.delete_processing_time: Callable[..., None] = processing.delete

    def advance_watermark(self, watermark: int) -> Iterator[Timer]:
        """Event-time timers at or before the watermark, in order, removed as they come."""
        return self.event.due(watermark)

    def due_processing_time(self, now: int) -> Iterator[Timer]:
        """Processing-time timers at or before `now`, in order, removed as they come."""
        return self.processing.due(now)

    def next_event_time(self) -> int | None:
        """The time of the first event-time timer."""
        return self.event.next_time()

    def next_processing_time(self) -> int | None:
        """The time of the first processing-time timer."""
        return self.processing.next_time()

    def any(self) -> bool:
        """Whether any timer is set."""
        return self.next_event_time() is not None or self.next_processing_time() is not None

    def snapshot(self, also: Collection[int] = ()) -> TimerCapture:
        """Capture all timers, without a cut; keys are immutable, so references are enough (I13)."""
        return self._captured(TimerLists(list(self.event.all()), list(self.processing.all())), also)

    def snapshot_whole(self, snapshot_id: int, since_completed_id: int | None, also: Collection[int]) -> TimerCapture:
        """Cut: capture all timers. `also` are key groups with stored timers: they get a part even if it is empty."""
        for queue in self._held:
            queue.changes.cut(snapshot_id, since_completed_id, whole=True)
        return self.snapshot(also)

    def snapshot_delta(self, snapshot_id: int, since_completed_id: int) -> TimerCapture | None:
        """Cut: capture the changes since the completed snapshot; None, without a cut, if they are not known."""
        if not all(queue.changes.reaches(since_completed_id) for queue in self._held):
            return None
        (event, removed_event), (processing, removed_processing) = (
            queue.split(queue.changes.cut(snapshot_id, since_completed_id, whole=False)) for queue in self._held
        )
        return self._captured(TimerLists(event, processing, removed_event, removed_processing))

    def snapshot_completed(self, snapshot_id: int) -> None:
        """The snapshot is durable: later deltas build on it."""
        self.event.changes.completed(snapshot_id)
        self.processing.changes.completed(snapshot_id)

    def snapshot_aborted(self, snapshot_id: int) -> None:
        """The snapshot counts as never triggered: the next delta covers its changes too."""
        self.event.changes.aborted(snapshot_id)
        self.processing.changes.aborted(snapshot_id)

    def _captured(self, timers: TimerLists, also: Collection[int] = ()) -> CapturedTimers:
        return CapturedTimers(timers, self._max_parallelism, self._key_codec, self._namespace_codec, also)

    def restore(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Load (key group, part): for each key group the full part first, then its deltas in order.

        Parts of key groups that this subtask does not own are skipped.
        """
        for group, data in parts:
            if group not in self.key_groups:
                continue
            timers = decode_timers(group, data, self._key_codec, self._namespace_codec, allow_pickle=self._allow_pickle)
            for queue, added, removed in (
                (self.event, timers.event, timers.removed_event),
                (self.processing, timers.processing, timers.removed_processing),
            ):
                queue.load(added)
                for timer in removed:
                    queue.delete(*timer)
        for queue in (self.event, self.processing):
            queue.loaded()
