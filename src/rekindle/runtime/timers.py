"""The timers of one operator in one subtask: one per key, namespace, time and domain; due timers come in order.

Timers are kept in buckets by time, the distinct times in a heap. Timers of the same time fire in the order of their
keys' canonical bytes (I1), which are computed only when they fire: registering costs two dict operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from functools import reduce
from heapq import heapify, heappop, heappush
from operator import ior, or_
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

__all__ = ["CapturedTimers", "InternalTimers", "Timer", "TimerCapture", "TimerQueue"]

_STALE_ALLOWED: Final = 64

#: (key, namespace)
Entry = tuple[Any, Any]
#: Entries in order of registration; the values mean nothing.
Bucket = dict[Entry, None]


class TimerCapture(Protocol):
    """Timers captured at a cut."""

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """Encode (key group, part) pairs; may run on another thread while processing goes on."""


class Round:
    """The timers of one time that fire, in order."""

    __slots__ = ("bucket", "time", "waiting")

    def __init__(self, time: int, bucket: Bucket) -> None:
        self.time = time
        self.bucket = bucket
        #: Those that have not fired yet, the last one first; some may have been deleted.
        self.waiting = _last_to_first(bucket)


class TimerQueue:
    """The timers of one domain: event time or processing time; in memory.

    A queue on disk is a subclass that has only the first timers here: those before its horizon.
    """

    __slots__ = ("_buckets", "_firing", "_heap", "_most_changes", "changes")
    #: The time of the first timer that is elsewhere: here there is none.
    _horizon_time = MAX_WATERMARK + 1

    def __init__(self) -> None:
        self.changes: TimerChanges[Any] = TimerChanges(dict[Timer, bool], or_)
        self._most_changes = CHANGES_ALLOWED
        self._buckets: dict[int, Bucket] = {}
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
                touched[time, key, namespace] = True
                if len(touched) > self._most_changes:
                    self._bound_changes()

    def delete(self, time: int, key: Any, namespace: Any = None) -> None:
        """Remove a timer, if it is there."""
        bucket = self._buckets.get(time)
        if bucket is None or (key, namespace) not in bucket:
            return
        del bucket[key, namespace]
        if self.changes.open is not None:
            self.changes.open[time, key, namespace] = False
        if not bucket and time not in self._firing:
            del self._buckets[time]
            if len(self._heap) > 2 * len(self._buckets) + _STALE_ALLOWED:
                self._find_times()

    def load(self, timers: Iterable[Timer]) -> None:
        """Set restored timers. Call `loaded` after the last of them, before any other method but `delete`."""
        buckets = self._buckets
        for time, key, namespace in timers:
            bucket = buckets.get(time)
            if bucket is None:
                buckets[time] = {(key, namespace): None}
            else:
                bucket[key, namespace] = None

    def loaded(self) -> None:
        """Finish a restore: all timers are set; changes are tracked from here on."""
        self._find_times()
        self.changes.restored()

    def _find_times(self) -> None:
        """Put the times of `_buckets` into the heap, and no others."""
        self._heap[:] = self._buckets.keys() - self._firing if self._firing else self._buckets
        heapify(self._heap)

    def _bound_changes(self) -> None:
        """Give the changes up if they are far more than the timers."""
        touched = self.changes.open
        if touched is not None and len(touched) > self._most_changes:
            self._most_changes = 2 * len(self) + CHANGES_ALLOWED
            if len(touched) > self._most_changes:
                self.changes.give_up()

    # -- firing -------------------------------------------------------------------------------------------------------

    def next_time(self) -> int | None:
        """The time of the first timer; while some fire, of the first one at another time."""
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
        rounds: list[Round] = []
        try:
            while True:
                if not rounds:
                    yield from self._due_alone(limit)
                first = self.next_time()
                if first is not None and first <= limit and (not rounds or first < rounds[-1].time):
                    rounds.append(self._begin(first))
                if not rounds:
                    return
                if (yield from self._fire(rounds[-1])):
                    self._end(rounds.pop())
        finally:
            for unfinished in rounds:
                self._end(unfinished)
            self._bound_changes()

    def _due_alone(self, limit: int) -> Iterator[Timer]:
        """Remove and yield due timers as long as the first one has a time of its own: that needs no bookkeeping."""
        buckets, heap, changes = self._buckets, self._heap, self.changes
        while heap and heap[0] <= limit:
            time = heap[0]
            only = buckets.get(time)
            if only is not None and (len(only) != 1 or time == self._horizon_time):
                return
            heappop(heap)
            if only is None:
                continue
            ((key, namespace),) = only
            del buckets[time]
            timer = time, key, namespace
            if (touched := changes.open) is not None:
                touched[timer] = False
            yield timer

    def _begin(self, time: int) -> Round:
        heappop(self._heap)
        self._firing.add(time)
        return Round(time, self._buckets[time])

    def _fire(self, current: Round) -> Generator[Timer, None, bool]:
        """Remove and yield the timers of a time, from one round after the other; False if an earlier one is set."""
        time, bucket, waiting, heap = current.time, current.bucket, current.waiting, self._heap
        while waiting or self._refill(current):
            entry = waiting.pop()
            if entry in bucket:
                del bucket[entry]
                timer = time, entry[0], entry[1]
                if (touched := self.changes.open) is not None:
                    touched[timer] = False
                yield timer
                if heap and heap[0] < time:
                    return False
        return True

    def _refill(self, current: Round) -> bool:
        """Begin the next round of a time with the timers that were set meanwhile; return whether there are any."""
        current.waiting += _last_to_first(current.bucket)
        return bool(current.waiting)

    def _end(self, ended: Round) -> None:
        """Leave a time that fired; if the handler of a timer failed, there may be timers left."""
        self._firing.discard(ended.time)
        if ended.bucket:
            heappush(self._heap, ended.time)
        else:
            del self._buckets[ended.time]

    def drop_due(self, limit: int) -> None:
        """Remove the timers that are due at `limit`, without yielding them: the caller has handled them itself."""
        while (first := self.next_time()) is not None and first <= limit:
            heappop(self._heap)
            self._drop(first, self._buckets.pop(first))
        self._bound_changes()

    def _drop(self, time: int, bucket: Bucket) -> None:
        if (touched := self.changes.open) is not None:
            for key, namespace in bucket:
                touched[time, key, namespace] = False

    def drain(self) -> Iterator[Timer]:
        """Remove and yield all current timers, by (time, key bytes); timers that are set meanwhile are dropped."""
        return self._drained(self._in_order())

    def _in_order(self) -> Iterable[Timer]:
        """The timers as they are now, by (time, key bytes)."""
        ordered = [(time, _last_to_first(self._buckets[time])) for time in sorted(self._buckets)]
        return ((time, *entry) for time, entries in ordered for entry in reversed(entries))

    def _drained(self, timers: Iterable[Timer]) -> Iterator[Timer]:
        for timer in timers:
            if self._contains(timer):
                self.delete(*timer)
                yield timer
        self.drop_due(MAX_WATERMARK)

    # -- all timers ---------------------------------------------------------------------------------------------------

    def _contains(self, timer: Timer) -> bool:
        time, key, namespace = timer
        return (key, namespace) in self._buckets.get(time, ())

    def all(self) -> Iterator[Timer]:
        """Every timer, in no order."""
        for time, bucket in self._buckets.items():
            for key, namespace in bucket:
                yield time, key, namespace

    def __len__(self) -> int:
        """The number of timers."""
        return sum(map(len, self._buckets.values()))


def _last_to_first(bucket: Bucket) -> list[Entry]:
    return sorted(bucket, key=_order, reverse=True) if len(bucket) > 1 else list(bucket)


def _order(entry: Entry) -> tuple[bytes, bytes]:
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
        self._use(TimerQueue(), TimerQueue())

    def _use(self, event: TimerQueue, processing: TimerQueue) -> None:
        self.event, self.processing = self._queues = event, processing
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
        captured = self.snapshot(also)
        for queue in self._queues:
            queue.changes.cut(snapshot_id, since_completed_id, whole=True)
        return captured

    def snapshot_delta(self, snapshot_id: int, since_completed_id: int) -> TimerCapture | None:
        """Cut: capture the changes since the completed snapshot; None, without a cut, if they are not known."""
        if not all(queue.changes.reaches(since_completed_id) for queue in self._queues):
            return None
        cuts = [queue.changes.cut(snapshot_id, since_completed_id, whole=False) for queue in self._queues]
        return self._captured_changes(cuts)

    def _captured_changes(self, domains: Sequence[Sequence[Any]]) -> TimerCapture:
        """Capture the changes of segments of event time, and of processing time."""
        (event, removed_event), (processing, removed_processing) = map(_last_changes, domains)
        return self._captured(TimerLists(event, processing, removed_event, removed_processing))

    def snapshot_completed(self, snapshot_id: int) -> None:
        """The snapshot is durable: later deltas build on it."""
        for queue in self._queues:
            queue.changes.completed(snapshot_id)

    def snapshot_aborted(self, snapshot_id: int) -> None:
        """The snapshot counts as never triggered: the next delta covers its changes too."""
        for queue in self._queues:
            queue.changes.aborted(snapshot_id)

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
        for queue in self._queues:
            queue.loaded()


def _last_changes(segments: Sequence[dict[Timer, bool]]) -> tuple[list[Timer], list[Timer]]:
    """The timers that are set, and those that are gone, after all changes."""
    last: dict[Timer, bool] = reduce(ior, segments, {})
    return [timer for timer, there in last.items() if there], [timer for timer, there in last.items() if not there]
