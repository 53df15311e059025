"""The timers of one domain, on disk: the next ones in memory, all later ones in the database.

A position, the *horizon*, divides them: timers before it are near, in memory; timers from it on are far. If there are
too many near ones, the latest of them go to the database, and the horizon comes closer; when the near ones have fired,
the first far ones are read, and it moves on. The order is that of `TimerQueue`, also among timers of equal time (I1):
timers that are set for the very time that fires come in its next round. Only these stay in memory in any number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import chain
from pathlib import Path
from typing import Any, Final

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.runtime.state.rocksdb.far_timers import FarTimers
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries, time_of, timer_position
from rekindle.runtime.state.rocksdb.timer_log import TimerLog
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.runtime.timer_parts import CHANGES_ALLOWED, Timer

_STALE_ALLOWED: Final = 64
_Entry = tuple[Any, Any]

#: No timer is so late: all are near.
_NEVER: Final = MAX_WATERMARK + 1
#: No timer is so early: all are far.
_ALWAYS: Final = -MAX_WATERMARK - 2


@dataclass
class _Round:
    """The timers of one time that fire, in order."""

    time: int
    #: Near timers that have not fired yet, the last one first. Some may have been deleted.
    waiting: list[_Entry]
    #: Far timers that were deleted in this round, by position: if they are set again, they keep their place.
    deleted: dict[bytes, _Entry] = field(default_factory=dict)


class StoredTimerQueue:
    """The timers of one domain: event time or processing time."""

    def __init__(self, far: FarTimers, folder: Path, entries: TimerEntries, limits: TimerLimits) -> None:
        self.changes = TimerLog(folder, entries, limits.logged)
        self._far = far
        self._entries = entries
        self._limits = limits
        self._most_changes = CHANGES_ALLOWED
        self._horizon_time = _NEVER
        self._horizon = b""
        self._buckets: dict[int, dict[_Entry, None]] = {}
        self._heap: list[int] = []
        self._near = 0
        self._most_near = limits.near
        self._firing: dict[int, _Round] = {}

    # -- set and delete -----------------------------------------------------------------------------------------------

    def register(self, time: int, key: Any, namespace: Any = None) -> None:
        """Set a timer; setting it again changes nothing."""
        if time < self._horizon_time:
            self._add_near(time, (key, namespace))
        elif time > MAX_WATERMARK:
            timer_position(time, key, namespace)  # refuses the time
        elif time > self._horizon_time or time not in self._firing:
            if self._is_far(time, key, namespace):
                self._flush_if(self._far.set((time, key, namespace)))
            else:
                self._add_near(time, (key, namespace))
        else:
            self._register_while_firing(time, key, namespace)

    def _is_far(self, time: int, key: Any, namespace: Any) -> bool:
        return time > self._horizon_time or (
            time == self._horizon_time and timer_position(time, key, namespace) >= self._horizon
        )

    def _register_while_firing(self, time: int, key: Any, namespace: Any) -> None:
        """Set a timer of the horizon's time while that fires: a new one comes in the next round, so it stays near."""
        if not (self._is_far(time, key, namespace) and self._far.contains((time, key, namespace))):
            self._add_near(time, (key, namespace))

    def _add_near(self, time: int, entry: _Entry) -> None:
        bucket = self._buckets.get(time)
        if bucket is None:
            bucket = self._buckets[time] = {}
            heappush(self._heap, time)
        if entry not in bucket:
            bucket[entry] = None
            self._near += 1
            self._note((time, *entry), True)
            if self._near > self._most_near:
                self._send_latest_away()

    def delete(self, time: int, key: Any, namespace: Any = None) -> None:
        """Remove a timer, if it is there."""
        bucket = self._buckets.get(time)
        if bucket is not None and (key, namespace) in bucket:
            self._remove_near(time, bucket, (key, namespace))
        elif self._is_far(time, key, namespace):
            timer = time, key, namespace
            if time in self._firing:
                if not self._far.contains(timer):
                    return
                self._firing[time].deleted[timer_position(*timer)] = key, namespace
            self._flush_if(self._far.remove(timer))

    def _remove_near(self, time: int, bucket: dict[_Entry, None], entry: _Entry) -> None:
        del bucket[entry]
        self._near -= 1
        self._note((time, *entry), False)
        if not bucket and time not in self._firing:
            del self._buckets[time]
            if len(self._heap) > 2 * len(self._buckets) + _STALE_ALLOWED:
                self._heap[:] = [each for each in self._buckets if each not in self._firing]
                heapify(self._heap)

    # -- near and far -------------------------------------------------------------------------------------------------

    def _send_latest_away(self) -> None:
        """Move the later half of the near timers to the database; not those of times that fire."""
        excess = self._near - self._limits.near // 2
        last_firing = max(self._firing, default=_ALWAYS)
        leaving: list[tuple[bytes, Timer]] = []
        for time in sorted((each for each in self._buckets if each > last_firing), reverse=True):
            if len(leaving) >= excess:
                break
            leaving += self._take_last(time, excess - len(leaving))
        if leaving:
            self._far.add(leaving)
            self._near -= len(leaving)
            self._horizon = min(position for position, _ in leaving)
            self._horizon_time = time_of(self._horizon)
        self._most_near = max(self._limits.near, self._near + self._limits.near // 2 + 1)

    def _take_last(self, time: int, most: int) -> list[tuple[bytes, Timer]]:
        """Remove the last timers of a time from the near ones, with their positions."""
        bucket = self._buckets[time]
        placed = sorted((timer_position(time, *entry), entry) for entry in bucket) if len(bucket) > most else None
        if placed is None:
            del self._buckets[time]
            return [(timer_position(time, *entry), (time, *entry)) for entry in bucket]
        for _, entry in placed[-most:]:
            del bucket[entry]
        return [(position, (time, *entry)) for position, entry in placed[-most:]]

    def _bring_next(self) -> list[tuple[bytes, _Entry]]:
        """Move the first far timers to the near ones; return those of the horizon's time."""
        self.flush()
        begin = self._horizon_time
        page, after = self._far.take(self._horizon, self._limits.page)
        for _, (time, key, namespace) in page:
            bucket = self._buckets.get(time)
            if bucket is None:
                bucket = self._buckets[time] = {}
                heappush(self._heap, time)
            bucket[key, namespace] = None
        self._near += len(page)
        self._horizon = after or b""
        self._horizon_time = time_of(after) if after is not None else _NEVER
        return [(position, (key, namespace)) for position, (time, key, namespace) in page if time == begin]

    def flush(self) -> None:
        """Write the changes of far timers that wait."""
        for timer, there in self._far.flush():
            self._note(timer, there)

    def _flush_if(self, wanted: bool) -> None:
        if wanted:
            self.flush()

    def _note(self, timer: Timer, there: bool) -> None:
        segment = self.changes.open
        if segment is not None:
            segment.note(timer, there)
            if len(segment) > self._most_changes:
                self._most_changes = 2 * (self._near + self._far.count) + CHANGES_ALLOWED
                if len(segment) > self._most_changes:
                    self.changes.give_up()

    # -- firing -------------------------------------------------------------------------------------------------------

    def next_time(self) -> int | None:
        """The time of the first timer that does not fire already."""
        first = self._first_near()
        while first is None and self._horizon_time != _NEVER and not self._firing:
            self._bring_next()
            first = self._first_near()
        return first

    def _first_near(self) -> int | None:
        heap = self._heap
        while heap and heap[0] not in self._buckets:
            heappop(heap)
        return heap[0] if heap else None

    def due(self, limit: int) -> Iterator[Timer]:
        """Remove and yield the timers that are due at `limit`, by (time, key bytes), as `TimerQueue.due` does."""
        firing: list[_Round] = []
        try:
            while True:
                first = self.next_time()
                if first is not None and first <= limit and (not firing or first < firing[-1].time):
                    heappop(self._heap)
                    firing.append(_Round(first, _last_to_first(first, self._buckets[first])))
                    self._firing[first] = firing[-1]
                if not firing:
                    return
                timer = self._next_of(firing[-1])
                if timer is not None:
                    yield timer
                else:
                    self._end_round(firing.pop())
        finally:
            for unfinished in firing:
                self._end_round(unfinished)

    def _next_of(self, current: _Round) -> Timer | None:
        """Remove the next timer of a time that fires, from one round after the other; None if there is no more."""
        time, bucket = current.time, self._buckets[current.time]
        while True:
            while current.waiting:
                entry = current.waiting.pop()
                if entry in bucket:
                    self._remove_near(time, bucket, entry)
                    return time, *entry
            if self._horizon_time == time:
                self._continue_round(current)
            elif bucket:
                current.waiting = _last_to_first(time, bucket)
                current.deleted.clear()
            else:
                return None

    def _continue_round(self, current: _Round) -> None:
        """Bring the next far timers of a time that fires."""
        found = dict(self._bring_next())
        end = self._horizon if self._horizon_time == current.time else None
        for position in [each for each in current.deleted if end is None or each < end]:
            found[position] = current.deleted.pop(position)
        current.waiting = [found[position] for position in sorted(found, reverse=True)]

    def _end_round(self, ended: _Round) -> None:
        """Leave a time that fired; if the handler of a timer failed, there may be timers left."""
        time = ended.time
        del self._firing[time]
        bucket = self._buckets[time]
        for entry in list(bucket) if time == self._horizon_time else ():
            if self._is_far(time, *entry):  # set while its time fired
                del bucket[entry]
                self._near -= 1
                self._far.set((time, *entry))
        if bucket:
            heappush(self._heap, time)
        else:
            del self._buckets[time]

    def drop_due(self, limit: int) -> None:
        """Remove the timers that are due at `limit`, without yielding them."""
        while (first := self.next_time()) is not None and first <= limit:
            heappop(self._heap)
            bucket = self._buckets.pop(first)
            self._near -= len(bucket)
            for entry in bucket:
                self._note((first, *entry), False)

    def drain(self) -> Iterator[Timer]:
        """Remove and yield all current timers, by (time, key bytes); timers that are set meanwhile are dropped."""
        self.flush()
        times = sorted(self._buckets)
        near = [(time, *entry) for time in times for entry in reversed(_last_to_first(time, self._buckets[time]))]
        return self._drained(near, self._far.timers())

    def _drained(self, near: Iterable[Timer], far: Iterable[Timer]) -> Iterator[Timer]:
        for timers in (near, far):
            for timer in timers:
                if self._contains(timer):
                    self.delete(*timer)
                    yield timer
        self.drop_due(MAX_WATERMARK)

    def _contains(self, timer: Timer) -> bool:
        time, key, namespace = timer
        if (key, namespace) in self._buckets.get(time, ()):
            return True
        return self._is_far(time, key, namespace) and self._far.contains(timer)

    # -- all timers ---------------------------------------------------------------------------------------------------

    def _near_timers(self) -> list[Timer]:
        return [(time, *entry) for time, bucket in self._buckets.items() for entry in bucket]

    def all(self) -> Iterator[Timer]:
        """Every timer, in no order."""
        self.flush()
        return chain(self._near_timers(), self._far.timers())

    def capture(self) -> Iterable[tuple[int, RawTimer]]:
        """Every timer as it is now, with its key group; may be read on another thread."""
        self.flush()
        return chain(self._entries.raw(self._near_timers()), self._far.capture())

    def load(self, timers: Iterable[Timer]) -> None:
        """Set restored timers. Call `loaded` after the last of them, before any other method but `delete`."""
        self._horizon_time = _ALWAYS
        for timer in timers:
            self._flush_if(self._far.set(timer))

    def loaded(self) -> None:
        """Finish a restore: all timers are set; changes are tracked from here on."""
        if self._horizon_time == _ALWAYS:
            self._bring_next()
        self.changes.restored()

    def __len__(self) -> int:
        self.flush()
        return self._near + self._far.count


def _last_to_first(time: int, bucket: Collection[_Entry]) -> list[_Entry]:
    if len(bucket) < 2:
        return list(bucket)
    return sorted(bucket, key=lambda entry: timer_position(time, *entry), reverse=True)
