"""The context of a `SourceFunction`: a bounded buffer that epochs drain, and the checkpoint lock (I7, I8).

A cut takes the checkpoint lock. From the moment it asks for the lock until it releases it, the function can collect
nothing, so that the function's own state matches the records before the cut. The cut waits for a thread that holds the
lock, and such a thread never waits in `collect`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any, Final

from rekindle.common.watermark_strategy import NO_TIMESTAMP, Watermark, event_time
from rekindle.datastream.functions import SourceFunction
from rekindle.errors import JobCancelledError
from rekindle.runtime.copy_on_emit import Isolate
from rekindle.runtime.exchange.chunk import IDLE, WATERMARK, Mark
from rekindle.runtime.operators.split_offsets import SplitOffsets

#: The most records that a SourceFunction may be ahead of the epochs, however many an epoch takes.
SOURCE_BUFFER: Final = 1 << 16


class SourceCancelledError(BaseException):
    """Ends the user's `run` when the job is cancelled while `run` waits in `collect` or for the checkpoint lock."""


class CheckpointLock(AbstractContextManager[None]):
    """A reentrant lock, as Flink's. A thread waits for `may_enter` before it takes the lock: a cut comes first."""

    def __init__(self, changed: threading.Condition, may_enter: Callable[[], bool]) -> None:
        self._changed = changed
        self._may_enter = may_enter
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; the arguments are those of `threading.RLock.acquire`."""
        with self._changed:
            if self._owner != get_ident() and not self._changed.wait_for(self._free, _timeout_s(blocking, timeout)):
                return False
            self._taken()
        return True

    def _free(self) -> bool:
        return self._may_enter() and self._owner is None

    def _taken(self) -> None:
        self._owner = get_ident()
        self._depth += 1

    def release(self) -> None:
        """Release the lock; a thread releases it as often as it has taken it."""
        with self._changed:
            self._give_back()

    def _give_back(self) -> None:
        if not self.held_by_this_thread():
            raise RuntimeError("the checkpoint lock is released by a thread that does not hold it")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._changed.notify_all()

    def take_for_cut(self, given_up: Callable[[], bool]) -> bool:
        """Take the lock for a cut; the caller holds `changed`. False: `given_up` became true while waiting."""
        self._changed.wait_for(lambda: self._owner is None or given_up())
        if given_up():
            return False
        self._taken()
        return True

    def give_back_after_cut(self) -> None:
        """Release the lock after a cut, if the cut has taken it; the caller holds `changed`."""
        if self.held_by_this_thread():
            self._give_back()

    def held_by_this_thread(self) -> bool:
        """Whether this thread holds the lock."""
        return self._owner == get_ident()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()


def _timeout_s(blocking: bool, timeout: float) -> float | None:
    if not blocking:
        return 0.0
    return timeout if timeout >= 0 else None


class Buffered:
    """Records that `run` has collected and no epoch has taken yet; laid out as a chunk, with offsets."""

    __slots__ = ("marks", "offsets", "records", "timestamps")

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.timestamps: list[int] | None = None
        self.marks: list[Mark] = []
        self.offsets: list[tuple[int, Any, Any]] = []  # (number of records up to the offset's own, split, offset)

    @staticmethod
    def of(records: list[Any], timestamps: list[int] | None, marks: list[Mark]) -> Buffered:
        """Return the content of a chunk as a buffer without offsets."""
        buffered = Buffered()
        buffered.records, buffered.timestamps, buffered.marks = records, timestamps, marks
        return buffered

    def size(self) -> int:
        """Return the number of records and marks: the bound counts both."""
        return len(self.records) + len(self.marks)

    def take(self, count: int) -> Buffered:
        """Remove and return the first `count` records, with their marks and offsets."""
        taken = Buffered()
        taken.records, self.records = self.records[:count], self.records[count:]
        if self.timestamps is not None:
            taken.timestamps, self.timestamps = self.timestamps[:count], self.timestamps[count:]
        taken.marks = [mark for mark in self.marks if mark.position <= count]
        self.marks = [mark._replace(position=mark.position - count) for mark in self.marks if mark.position > count]
        taken.offsets = [entry for entry in self.offsets if entry[0] <= count]
        self.offsets = [(place - count, *entry) for place, *entry in self.offsets if place > count]
        return taken

    def extend(self, later: Buffered) -> None:
        """Append later records and marks. Their offsets are not needed: `SplitOffsets` already knows them."""
        before = len(self.records)
        if self.timestamps is None and later.timestamps is not None:
            self.timestamps = [NO_TIMESTAMP] * before
        self.records.extend(later.records)
        if self.timestamps is not None:
            self.timestamps.extend(later.timestamps or [NO_TIMESTAMP] * len(later.records))
        self.marks.extend(mark._replace(position=mark.position + before) for mark in later.marks)


class BufferedSourceContext(SourceFunction.SourceContext):
    """The context of `SourceFunction.run`: collects records into a bounded buffer and keeps their offsets."""

    def __init__(
        self,
        wake: Callable[[], None],
        isolate: Isolate | None,
        first_bound: int,
        offsets: SplitOffsets | None = None,
    ) -> None:
        """`first_bound`: the number of records that `run` may be ahead before the first epoch sets its own bound."""
        self._wake = wake
        self._isolate = isolate
        self.offsets = offsets or SplitOffsets()
        self._changed = threading.Condition(threading.Lock())
        self._lock = CheckpointLock(self._changed, self._may_enter)
        self._draining_thread: int | None = None
        self._buffered = Buffered()
        self._bound = self._epoch_bound = min(first_bound, SOURCE_BUFFER)  # `_bound` is 0 during a cut: no room
        self._cancelled = False

    # -- the user's side ----------------------------------------------------------------------------------------------

    def collect(self, value: Any, offset: Any = None, split: Any = None) -> None:
        self._put(value, NO_TIMESTAMP, offset, split)

    def collect_with_timestamp(self, value: Any, timestamp: int, offset: Any = None, split: Any = None) -> None:
        self._put(value, event_time("a timestamp", timestamp), offset, split)

    def _put(self, value: Any, timestamp: int, offset: Any, split: Any) -> None:
        if self._isolate is not None:
            value = self._isolate(value)
        with self._changed:
            buffered = self._wait_for_room()
            records = buffered.records
            if timestamp != NO_TIMESTAMP and buffered.timestamps is None:
                buffered.timestamps = [NO_TIMESTAMP] * len(records)
            records.append(value)
            if buffered.timestamps is not None:
                buffered.timestamps.append(timestamp)
            if offset is not None or split is not None:
                buffered.offsets.append((len(records), split, offset))
            first = len(records) == 1
        if first:
            self._wake()

    def _wait_for_room(self) -> Buffered:
        """Wait for room and for the end of a cut, unless this thread holds the checkpoint lock; return the buffer."""
        while self._buffered.size() >= self._bound and not self._cancelled and not self._lock.held_by_this_thread():
            self._changed.wait()
        if self._cancelled:
            raise SourceCancelledError
        return self._buffered

    def _may_enter(self) -> bool:
        """Whether this thread may take the checkpoint lock: it waits for room here, before it holds the lock.

        The thread that drains the buffer waits for the holder of the lock only.
        """
        if get_ident() == self._draining_thread or self._buffered.size() < self._bound:
            return True
        if self._cancelled:
            raise SourceCancelledError
        return False

    def emit_watermark(self, watermark: Watermark | int) -> None:
        time = getattr(watermark, "timestamp", watermark)
        self._mark(WATERMARK, event_time("a watermark", time))

    def mark_as_temporarily_idle(self) -> None:
        self._mark(IDLE, 0)

    def _mark(self, kind: int, value: int) -> None:
        with self._changed:
            buffered = self._wait_for_room()
            buffered.marks.append(Mark(len(buffered.records), kind, value))
        self._wake()

    def get_checkpoint_lock(self) -> CheckpointLock:
        return self._lock

    @property
    def restored_offset(self) -> Any:
        return self.offsets.restored.get(None)

    @property
    def restored_offsets(self) -> dict[Any, Any]:
        return dict(self.offsets.restored)

    def completed_offset(self, checkpoint_id: int, split: str | None = None) -> Any:
        return self.offsets.at(checkpoint_id).get(split)

    def close(self) -> None:
        """Do nothing: the context holds no resources."""

    # -- the engine's side --------------------------------------------------------------------------------------------

    def drain_on_this_thread(self) -> None:
        """Declare this thread the one that calls `take`."""
        self._draining_thread = get_ident()

    def buffered(self) -> int:
        """Return how many records wait in the buffer."""
        return len(self._buffered.records)

    def has_data(self) -> bool:
        """Whether `take` would return a record or a mark."""
        return bool(self._buffered.records or self._buffered.marks)

    def is_full(self) -> bool:
        """Whether `run` has to wait for room, with or without a cut."""
        return self._buffered.size() >= self._epoch_bound

    def bound_by_epoch(self, max_records: int) -> None:
        """Bound the buffer by the records of an epoch: a cut has to take all that is buffered."""
        with self._changed:
            self._epoch_bound = min(SOURCE_BUFFER, max(1, max_records))
            if self._bound:
                self._bound = self._epoch_bound

    def take(self, max_records: int) -> Buffered:
        """Remove and return the oldest records with their marks; advance the offsets."""
        with self._changed:
            if len(self._buffered.records) > max_records:
                taken = self._buffered.take(max_records)
            else:
                taken, self._buffered = self._buffered, Buffered()
            if taken.offsets:
                self.offsets.move({split: offset for _, split, offset in taken.offsets})
            self._changed.notify_all()
        return taken

    def begin_cut(self) -> int:
        """Wait for the holder of the checkpoint lock, then pause `run`; return how many records belong to the cut."""
        with self._changed:
            self._bound = 0
            if not self._lock.take_for_cut(lambda: self._cancelled):
                raise JobCancelledError("The job was cancelled while a checkpoint waited for the checkpoint lock.")
            return len(self._buffered.records)

    def end_cut(self) -> None:
        """Let `run` continue; do nothing if there is no cut."""
        with self._changed:
            if self._bound:
                return
            self._bound = self._epoch_bound
            self._lock.give_back_after_cut()
            self._changed.notify_all()

    def cancel(self) -> None:
        """Wake every waiting thread: the job is cancelled."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()
