"""The timers of one domain that lie in the database, in the order in which they fire.

Changes wait in memory and are written in batches. A batch first asks which of its timers are there, so that only real
changes are written and counted: a window sets its timer again with every element. Timers of the last batch stay known,
so that the timers of busy keys are not asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.timer_entries import RawTimer, TimerEntries, timer_position
from rekindle.runtime.timer_parts import Timer

_DECODED_TIMERS: Final = 1 << 10
_CAPTURED_TIMERS: Final = 1 << 14
_Entry = tuple[bytes, bytes]


class FarTimers:
    """Timers in the database."""

    def __init__(
        self,
        database: ScratchDatabase,
        prefix: bytes,
        entries: TimerEntries,
        most_waiting: int,
        note: Callable[[Mapping[Timer, bool]], None],
    ) -> None:
        """`note` is told of the timers that were really set (True) or removed (False)."""
        self._database = database
        self._prefix = prefix
        self._entries = entries
        self._most_waiting = most_waiting
        self._note = note
        #: Timers that were set or removed lately -> whether they are to be there.
        self._waiting: dict[Timer, bool] = {}
        #: Timers of the last batch -> whether the database has them.
        self._known: dict[Timer, bool] = {}
        #: The timers in the database; what waits is not counted.
        self.count = 0

    # -- changes ------------------------------------------------------------------------------------------------------

    def set(self, timer: Timer, there: bool = True) -> None:
        """Set a timer, or remove it."""
        self._waiting[timer] = there
        if len(self._waiting) > self._most_waiting:
            self.flush()

    def contains(self, timer: Timer) -> bool:
        """Whether a timer is set."""
        there = self._waiting.get(timer, self._known.get(timer))
        return self._database.get(self._prefix + timer_position(*timer)) is not None if there is None else there

    def flush(self) -> None:
        """Write the changes that wait."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        new = [timer for timer, there in waiting.items() if self._known.get(timer) is not there]
        places = {timer: timer_position(*timer) for timer in new}
        self._ask(places)
        changes = {timer: waiting[timer] for timer in new if self._known[timer] is not waiting[timer]}
        self._put([(places[timer], timer) for timer, there in changes.items() if there])
        self._remove([places[timer] for timer, there in changes.items() if not there])
        self._known = waiting
        self._note(changes)

    def _ask(self, places: Mapping[Timer, bytes]) -> None:
        """Find out which timers the database has."""
        asked = [timer for timer in places if timer not in self._known]
        found = self._database.get_many([self._prefix + places[timer] for timer in asked])
        self._known.update(zip(asked, (value is not None for value in found), strict=True))

    def add(self, timers: Sequence[tuple[bytes, Timer]]) -> None:
        """Write timers that are not there yet, with their positions."""
        for _, timer in timers:
            self._known.pop(timer, None)
        self._put(timers)

    def _put(self, timers: Sequence[tuple[bytes, Timer]]) -> None:
        if timers:
            keys = (self._prefix + position for position, _ in timers)
            self._database.write(zip(keys, self._entries.values([timer for _, timer in timers]), strict=True))
            self.count += len(timers)

    def _remove(self, positions: Sequence[bytes]) -> None:
        self._database.write((self._prefix + position, None) for position in positions)
        self.count -= len(positions)

    # -- in order -----------------------------------------------------------------------------------------------------

    def take(self, begin: bytes, most: int) -> tuple[list[tuple[bytes, Timer]], bytes | None]:
        """Remove the first timers from a position on; return them with their positions, and the position of the next.

        `begin`: no timer lies before it; what was removed there is not passed over.
        """
        self.flush()
        found = list(islice(self._scan(None, begin), most + 1))
        taken, after = found[:most], found[most:]
        self._remove([position for position, _ in taken])
        timers = self._entries.timers(taken)
        for timer in timers:
            self._known.pop(timer, None)
        positions = (position for position, _ in taken)
        return list(zip(positions, timers, strict=True)), after[0][0] if after else None

    def _scan(self, view: Any, begin: bytes = b"") -> Iterator[_Entry]:
        length = len(self._prefix)
        return ((key[length:], value) for key, value in self._database.scan(self._prefix, view, begin))

    def timers(self) -> Iterator[Timer]:
        """All timers as they are now, in order, whatever changes on the way."""
        return chain.from_iterable(map(self._entries.timers, self._blocks(_DECODED_TIMERS)))

    def capture(self) -> Iterator[list[tuple[int, RawTimer]]]:
        """All timers as they are now, in blocks, with their key groups; may be read on another thread."""
        return map(self._entries.raw_entries, self._blocks(_CAPTURED_TIMERS))

    def _blocks(self, size: int) -> Iterator[list[_Entry]]:
        self.flush()
        entries = self._scan(self._database.view())
        return iter(lambda: list(islice(entries, size)), [])
