"""What a `SourceFunction` emits through: a bounded buffer that epochs drain, and the lock that begins a cut (I7, I8).

From the moment a cut wants the checkpoint lock until it gives the lock back, nothing more is collected: what the
function keeps beside its records then fits the records before the cut. A thread that holds the lock is waited for, and
never waits in `collect` itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any, Final

from rekindle.common.watermark_strategy import NO_TIMESTAMP, Watermark
from rekindle.datastream.functions import SourceFunction
from rekindle.errors import JobCancelledError
from rekindle.runtime.exchange.chunk import IDLE, WATERMARK, Mark
from rekindle.runtime.isolation import Isolate
from rekindle.runtime.operators.split_offsets import SplitOffsets

#: How many records a SourceFunction may be ahead of the epochs, however many an epoch takes.
SOURCE_BUFFER: Final = 1 << 16


class SourceCancelledError(BaseException):
    """Leaves the user's `run` when the job is cancelled while it waits in `collect` or for the checkpoint lock."""


class CheckpointLock(AbstractContextManager[None]):
    """Reentrant, as Flink's; whoever takes it waits until `may_enter`, so that a cut is never overtaken."""

    def __init__(self, changed: threading.Condition, may_enter: Callable[[], bool]) -> None:
        self._changed = changed
        self._may_enter = may_enter
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; the arguments are those of `threading.RLock`."""
        with self._changed:
            if self._owner != get_ident() and not self._changed.wait_for(self._free, _seconds(blocking, timeout)):
                return False
            self._taken()
        return True

    def _free(self) -> bool:
        return self._may_enter() and self._owner is None

    def _taken(self) -> None:
        self._owner = get_ident()
        self._depth += 1

    def release(self) -> None:
        """Give it back, as often as it was taken."""
        with self._changed:
            self._give_back()

    def _give_back(self) -> None:
        if not self.is_mine():
            raise RuntimeError("the checkpoint lock is released by a thread that does not hold it")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._changed.notify_all()

    def take_for_cut(self, given_up: Callable[[], bool]) -> bool:
        """For the engine, with `changed` held: wait for the holder alone; False if it was given up meanwhile."""
        self._changed.wait_for(lambda: self._owner is None or given_up())
        if given_up():
            return False
        self._taken()
        return True

    def give_back_after_cut(self) -> None:
        """For the engine, with `changed` held: nothing to do if the cut never got it."""
        if self.is_mine():
            self._give_back()

    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._owner == get_ident()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()


def _seconds(blocking: bool, timeout: float) -> float | None:
    if not blocking:
        return 0.0
    return timeout if timeout >= 0 else None


class Buffered:
    """What `run` produced and no epoch took yet; the same layout as a chunk, plus offsets."""

    __slots__ = ("marks", "offsets", "records", "timestamps")

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.timestamps: list[int] | None = None
        self.marks: list[Mark] = []
        self.offsets: list[tuple[int, Any, Any]] = []  # (records before and with it, split, offset)

    @staticmethod
    def of(records: list[Any], timestamps: list[int] | None, marks: list[Mark]) -> Buffered:
        """What a chunk holds."""
        buffered = Buffered()
        buffered.records, buffered.timestamps, buffered.marks = records, timestamps, marks
        return buffered

    def size(self) -> int:
        """What the bound counts: watermarks too."""
        return len(self.records) + len(self.marks)

    def take(self, count: int) -> Buffered:
        """The first `count` records, with the marks between them."""
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
        """Add what came later; its offsets are known to whoever took it."""
        before = len(self.records)
        if self.timestamps is None and later.timestamps is not None:
            self.timestamps = [NO_TIMESTAMP] * before
        self.records.extend(later.records)
        if self.timestamps is not None:
            self.timestamps.extend(later.timestamps or [NO_TIMESTAMP] * len(later.records))
        self.marks.extend(mark._replace(position=mark.position + before) for mark in later.marks)


class BufferedSourceContext(SourceFunction.SourceContext):
    """The context of `SourceFunction.run`: collects into a bounded buffer, the engine keeps the offsets."""

    def __init__(
        self,
        wake: Callable[[], None],
        isolate: Isolate | None,
        first_bound: int,
        offsets: SplitOffsets | None = None,
    ) -> None:
        """`first_bound`: how many records `run` may be ahead before the first epoch has said how many it takes."""
        self._wake = wake
        self._isolate = isolate
        self.offsets = offsets or SplitOffsets()
        self._changed = threading.Condition(threading.Lock())
        self._lock = CheckpointLock(self._changed, self._may_enter)
        self._drained_by: int | None = None
        self._buffered = Buffered()
        self._bound = self._epoch_bound = min(first_bound, SOURCE_BUFFER)  # `_bound` is 0 during a cut: no room
        self._cancelled = False

    # -- the user's side ----------------------------------------------------------------------------------------------

    def collect(self, value: Any, offset: Any = None, split: Any = None) -> None:
        self._put(value, NO_TIMESTAMP, offset, split)

    def collect_with_timestamp(self, value: Any, timestamp: int, offset: Any = None, split: Any = None) -> None:
        self._put(value, timestamp, offset, split)

    def _put(self, value: Any, timestamp: int, offset: Any, split: Any) -> None:
        if self._isolate is not None:
            value = self._isolate(value)
        with self._changed:
            buffered = self._room()
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

    def _room(self) -> Buffered:
        """Wait for room and for the end of a cut; who holds the checkpoint lock waits for neither."""
        while self._buffered.size() >= self._bound and not self._cancelled and not self._lock.is_mine():
            self._changed.wait()
        if self._cancelled:
            raise SourceCancelledError
        return self._buffered

    def _may_enter(self) -> bool:
        """Whether the checkpoint lock may be taken: room is waited for here, where nothing is held yet.

        The thread that drains the buffer waits for the lock's holder only.
        """
        if get_ident() == self._drained_by or self._buffered.size() < self._bound:
            return True
        if self._cancelled:
            raise SourceCancelledError
        return False

    def emit_watermark(self, watermark: Watermark | int) -> None:
        self._mark(WATERMARK, watermark if isinstance(watermark, int) else watermark.timestamp)

    def mark_as_temporarily_idle(self) -> None:
        self._mark(IDLE, 0)

    def _mark(self, kind: int, value: int) -> None:
        with self._changed:
            buffered = self._room()
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
        """Nothing to give back."""

    # -- the engine's side --------------------------------------------------------------------------------------------

    def drained_here(self) -> None:
        """This thread is the one that calls `take`."""
        self._drained_by = get_ident()

    def buffered(self) -> int:
        """How many records wait."""
        return len(self._buffered.records)

    def has_data(self) -> bool:
        """Whether `take` would bring something."""
        return bool(self._buffered.records or self._buffered.marks)

    def is_full(self) -> bool:
        """Whether `run` has to wait for room, be there a cut or not."""
        return self._buffered.size() >= self._epoch_bound

    def follow(self, max_records: int) -> None:
        """An epoch takes at most so many: there is no use in more than that, and a cut has to take them all."""
        with self._changed:
            self._epoch_bound = min(SOURCE_BUFFER, max(1, max_records))
            if self._bound:
                self._bound = self._epoch_bound

    def take(self, max_records: int) -> Buffered:
        """The oldest records, with the marks between them; offsets follow what was taken."""
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
        """Wait for the checkpoint lock's holder, then stand still; how many records belong to the cut."""
        with self._changed:
            self._bound = 0
            if not self._lock.take_for_cut(lambda: self._cancelled):
                raise JobCancelledError("The job was cancelled while a checkpoint waited for the checkpoint lock.")
            return len(self._buffered.records)

    def end_cut(self) -> None:
        """Go on; does nothing without a cut."""
        with self._changed:
            if self._bound:
                return
            self._bound = self._epoch_bound
            self._lock.give_back_after_cut()
            self._changed.notify_all()

    def cancel(self) -> None:
        """Let whoever waits go."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()
