"""The timers of one domain that lie in the database, in the order in which they fire.

Changes wait in memory and are written in batches. A batch first asks which of its timers are there, so that only real
changes are written and counted: a window sets its timer again with every element. Timers of the last batch stay known,
so that the timers of busy keys are not asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from itertools import islice
from typing import Any, Final

from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries, timer_position
from rekindle.runtime.timer_parts import Timer

_DECODED_TIMERS: Final = 1024


class _Wish(Enum):
    """A timer that was set or removed lately."""

    KNOWN = auto()  # it is in the database
    SET = auto()
    REMOVED = auto()


class FarTimers:
    """Timers in the database."""

    def __init__(self, database: ScratchDatabase, prefix: bytes, entries: TimerEntries, most_waiting: int) -> None:
        self._database = database
        self._prefix = prefix
        self._entries = entries
        self._most_waiting = most_waiting
        self._waiting: dict[Timer, _Wish] = {}
        #: Timers of the last batch -> whether the database has them.
        self._known: dict[Timer, bool] = {}
        #: The timers in the database; what waits is not counted.
        self.count = 0

    # -- changes ------------------------------------------------------------------------------------------------------

    def set(self, timer: Timer) -> bool:
        """Set a timer; return whether it is time to `flush`."""
        wish = self._waiting.get(timer)
        if wish is None and self._known.get(timer):
            self._waiting[timer] = _Wish.KNOWN
        elif wish is None or wish is _Wish.REMOVED:
            self._waiting[timer] = _Wish.SET
        return len(self._waiting) > self._most_waiting

    def remove(self, timer: Timer) -> bool:
        """Remove a timer, if it is there; return whether it is time to `flush`."""
        self._waiting[timer] = _Wish.REMOVED
        return len(self._waiting) > self._most_waiting

    def contains(self, timer: Timer) -> bool:
        """Whether a timer is set."""
        wish = self._waiting.get(timer)
        if wish is not None:
            return wish is not _Wish.REMOVED
        known = self._known.get(timer)
        return self._database.get(self._prefix + timer_position(*timer)) is not None if known is None else known

    def flush(self) -> list[tuple[Timer, bool]]:
        """Write what waits; return the timers that were really set (True) or removed (False)."""
        wishes = {timer: wish is _Wish.SET for timer, wish in self._waiting.items() if wish is not _Wish.KNOWN}
        places = {timer: timer_position(*timer) for timer in wishes}
        there = self._are_there(places)
        changes = [(timer, wanted) for timer, wanted in wishes.items() if wanted is not there[timer]]
        self._put([(places[timer], timer) for timer, wanted in changes if wanted])
        gone = [(self._prefix + places[timer], None) for timer, wanted in changes if not wanted]
        self._database.write(gone)
        self.count -= len(gone)
        self._known = {timer: wish is not _Wish.REMOVED for timer, wish in self._waiting.items()}
        self._waiting = {}
        return changes

    def _are_there(self, places: Mapping[Timer, bytes]) -> dict[Timer, bool]:
        there = {timer: known for timer in places if (known := self._known.get(timer)) is not None}
        asked = [timer for timer in places if timer not in there]
        found = self._database.get_many([self._prefix + places[timer] for timer in asked])
        there.update(zip(asked, (value is not None for value in found), strict=True))
        return there

    def add(self, timers: list[tuple[bytes, Timer]]) -> None:
        """Write timers that are not there yet, with their positions."""
        for _, timer in timers:
            self._known.pop(timer, None)
        self._put(timers)

    def _put(self, timers: list[tuple[bytes, Timer]]) -> None:
        if timers:
            keys = (self._prefix + position for position, _ in timers)
            self._database.write(zip(keys, self._entries.values([timer for _, timer in timers]), strict=True))
            self.count += len(timers)

    # -- in order -----------------------------------------------------------------------------------------------------

    def take(self, begin: bytes, most: int) -> tuple[list[tuple[bytes, Timer]], bytes | None]:
        """Remove the first timers from a position on; return them with their positions, and the position of the next.

        Nothing may wait: `flush` first.
        """
        assert not self._waiting, "the database has to know every change"
        found = list(islice(self._scan(None, begin), most + 1))
        taken, after = found[:most], found[most:]
        self._database.write((self._prefix + position, None) for position, _ in taken)
        self.count -= len(taken)
        timers = self._entries.timers(taken)
        for timer in timers:
            self._known.pop(timer, None)
        positions = (position for position, _ in taken)
        return list(zip(positions, timers, strict=True)), after[0][0] if after else None

    def _scan(self, view: Any, begin: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        length = len(self._prefix)
        return ((key[length:], value) for key, value in self._database.scan(self._prefix, view, begin))

    def timers(self) -> Iterator[Timer]:
        """All timers in the database as they are now, in order, whatever changes on the way."""
        return self._decoded(self._scan(self._database.view()))

    def _decoded(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[Timer]:
        while some := list(islice(entries, _DECODED_TIMERS)):
            yield from self._entries.timers(some)

    def capture(self) -> Iterable[tuple[int, RawTimer]]:
        """All timers in the database as they are now, with their key groups; may be read on another thread."""
        return (self._entries.raw_entry(position, value) for position, value in self._scan(self._database.view()))
