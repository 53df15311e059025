"""The timers of one domain, on disk: the first ones in memory, as a bounded cache in front of the ordered database.

A position, the *horizon*, divides them: timers before it are near, in memory; timers from it on are far. If there are
too many near ones, the latest of them go to the database, and the horizon comes closer; when the near ones have fired,
the first far ones are read, and it moves on. The order is that of `TimerQueue`, also among timers of equal time (I1):
timers that are set for the very time that fires come in its next round. Only these stay in memory in any number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from rekindle.common.watermark_strategy import MAX_WATERMARK
from rekindle.runtime.state.rocksdb.far_timers import FarTimers
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries, time_of, timer_position
from rekindle.runtime.state.rocksdb.timer_log import TimerSegment
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.runtime.timer_parts import Timer, TimerChanges
from rekindle.runtime.timers import Bucket, Entry, Round, TimerQueue

#: No timer is so late: all are near.
_NEVER: Final = MAX_WATERMARK + 1
#: No timer is so early: all are far.
_ALWAYS: Final = -MAX_WATERMARK - 2


class StoredTimerQueue(TimerQueue):
    """The timers of one domain: event time or processing time."""

    def __init__(self, database: ScratchDatabase, prefix: bytes, entries: TimerEntries, limits: TimerLimits) -> None:
        super().__init__()
        new_segment = partial(TimerSegment, database.folder, entries, limits.logged)
        self.changes = TimerChanges(new_segment, TimerSegment.joined)
        self._far = FarTimers(database, prefix, entries, limits.waiting, self._note)
        self._entries = entries
        self._limits = limits
        self._near = 0
        self._most_near = limits.near
        self._horizon_time = _NEVER
        self._horizon = b""
        #: Far timers of the time that fires which a handler deleted: if they are set again, they keep their place.
        self._deleted: dict[bytes, Entry] = {}

    # -- set and delete -----------------------------------------------------------------------------------------------

    def register(self, time: int, key: Any, namespace: Any = None) -> None:
        """Set a timer; setting it again changes nothing."""
        timer = time, key, namespace
        if time < self._horizon_time or not self._is_far(timer) or self._comes_in_next_round(timer):
            self._register_near(timer)
        else:
            self._far.set(timer)

    def _register_near(self, timer: Timer) -> None:
        if not super()._contains(timer):
            super().register(*timer)
            self._near += 1
            if self._near > self._most_near:
                self._send_latest_away()

    def delete(self, time: int, key: Any, namespace: Any = None) -> None:
        """Remove a timer, if it is there."""
        timer = time, key, namespace
        if super()._contains(timer):
            super().delete(time, key, namespace)
            self._near -= 1
        elif time >= self._horizon_time and self._is_far(timer):
            if time in self._firing:
                if not self._far.contains(timer):
                    return
                self._deleted[timer_position(*timer)] = key, namespace
            self._far.set(timer, False)

    def _is_far(self, timer: Timer) -> bool:
        time = timer[0]
        if time > MAX_WATERMARK or time == self._horizon_time:
            return timer_position(*timer) >= self._horizon  # refuses a time that no clock shows
        return time > self._horizon_time

    def _comes_in_next_round(self, timer: Timer) -> bool:
        """Whether this is a new timer of a far time that fires: it stays near."""
        return timer[0] in self._firing and not self._far.contains(timer)

    def _contains(self, timer: Timer) -> bool:
        return super()._contains(timer) or (self._is_far(timer) and self._far.contains(timer))

    def _note(self, changes: Mapping[Timer, bool]) -> None:
        if (touched := self.changes.open) is not None:
            for timer, there in changes.items():
                touched[timer] = there
            self._bound_changes()

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
            self._horizon = min(position for position, _ in leaving)
            self._horizon_time = time_of(self._horizon)
            self._count_anew()
        self._most_near = max(self._limits.near, self._near + self._limits.near // 2 + 1)

    def _take_last(self, time: int, most: int) -> list[tuple[bytes, Timer]]:
        """Remove the last timers of a time from the near ones; return them with their positions."""
        placed = sorted((timer_position(time, *entry), entry) for entry in self._buckets[time])
        kept, leaving = placed[:-most], placed[-most:]
        if kept:
            self._buckets[time] = {entry: None for _, entry in kept}
        else:
            del self._buckets[time]
        return [(position, (time, *entry)) for position, entry in leaving]

    def _bring_next(self) -> list[tuple[bytes, Timer]]:
        """Move the first far timers to the near ones, and return them."""
        page, after = self._far.take(self._horizon, self._limits.page)
        super().load(timer for _, timer in page)
        self._count_anew()
        self._horizon = after or b""
        self._horizon_time = time_of(after) if after is not None else _NEVER
        return page

    def _count_anew(self) -> None:
        self._find_times()
        self._near = super().__len__()

    def flush(self) -> None:
        """Write the changes of far timers that wait."""
        self._far.flush()

    # -- firing -------------------------------------------------------------------------------------------------------

    def next_time(self) -> int | None:
        """The time of the first timer; while some fire, of the first near one at another time."""
        first = super().next_time()
        if first is None and self._horizon_time != _NEVER and not self._firing:
            self._bring_next()
            first = super().next_time()
        return first

    def due(self, limit: int) -> Iterator[Timer]:
        """Remove and yield the timers that are due at `limit`, by (time, key bytes)."""
        for timer in super().due(limit):
            self._near -= 1
            yield timer

    def _drop(self, time: int, bucket: Bucket) -> None:
        self._near -= len(bucket)
        super()._drop(time, bucket)

    def _refill(self, current: Round) -> bool:
        while self._horizon_time == current.time:
            self._continue_round(current)
            if current.waiting:
                return True
        return super()._refill(current)

    def _continue_round(self, current: Round) -> None:
        """Bring the next far timers of a time that fires."""
        page = self._bring_next()
        found = {position: (key, namespace) for position, (time, key, namespace) in page if time == current.time}
        end = self._horizon if self._horizon_time == current.time else None
        for position in [each for each in self._deleted if end is None or each < end]:
            found[position] = self._deleted.pop(position)
        current.waiting += [found[position] for position in sorted(found, reverse=True)]

    def _end(self, ended: Round) -> None:
        if ended.time == self._horizon_time:  # its handler failed
            self._deleted.clear()
            for entry in list(ended.bucket):
                if self._is_far((ended.time, *entry)):  # set while its time fired
                    del ended.bucket[entry]
                    self._near -= 1
                    self._far.set((ended.time, *entry))
        super()._end(ended)

    # -- all timers ---------------------------------------------------------------------------------------------------

    def _in_order(self) -> Iterable[Timer]:
        return chain(super()._in_order(), self._far.timers())

    def all(self) -> Iterator[Timer]:
        """Every timer, in no order."""
        return chain(list(super().all()), self._far.timers())

    def capture(self) -> Iterator[list[tuple[int, RawTimer]]]:
        """Every timer as it is now, in blocks, with its key group; may be read on another thread."""
        return chain([self._entries.raw(dict.fromkeys(super().all(), True))], self._far.capture())

    def load(self, timers: Iterable[Timer]) -> None:
        """Set restored timers. Call `loaded` after the last of them, before any other method but `delete`."""
        self._horizon_time = _ALWAYS
        for timer in timers:
            self._far.set(timer)

    def loaded(self) -> None:
        """Finish a restore: all timers are set; changes are tracked from here on."""
        if self._horizon_time == _ALWAYS:
            self._bring_next()
        self.changes.restored()

    def __len__(self) -> int:
        self.flush()
        return self._near + self._far.count
