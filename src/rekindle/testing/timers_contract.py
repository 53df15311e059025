"""The contract of an operator's timers, as tests: run them beside those of a state backend of your own (I1, I12).

class TestMyTimers(TimersContract):
    @pytest.fixture
    def new_timers(self):
        return MyTimers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rekindle.key_groups import key_group_range
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.timers import InternalTimers, Timer, TimerCapture

Parts = list[tuple[int, bytes]]

_GROUPS = 8


class NewTimers(Protocol):
    """Makes the timers of an operator, with none set."""

    def __call__(self, max_parallelism: int, key_groups: range, /) -> InternalTimers:
        """`key_groups`: those that the subtask owns."""


def _set(timers: InternalTimers, times: Iterable[int]) -> list[Timer]:
    """Set a timer of another key for each of these times; returns them."""
    added: list[Timer] = [(time, f"key {time % 7}", (time, time + 10)) for time in times]
    for time, key, namespace in added:
        timers.register_event_time(time, key, namespace)
        timers.register_processing_time(-time, key, namespace)
    return added


def _all(timers: InternalTimers) -> list[Timer]:
    """Every timer of both domains; those of processing time have times below 0."""
    return sorted([*timers.event.all(), *timers.processing.all()])


def _encoded(captured: TimerCapture | None) -> Parts:
    assert captured is not None, "the changes are not known"
    return list(captured.encode())


class TimersContract:
    """The contract of `rekindle.runtime.timers.InternalTimers`; the fixture `new_timers` makes them.

    >>> TimersContract().test_timers_fire_in_order(InternalTimers)
    """

    def _restored(self, new_timers: NewTimers, parts: Parts, key_groups: range = range(_GROUPS)) -> InternalTimers:
        timers = new_timers(_GROUPS, key_groups)
        timers.restore(parts)
        return timers

    def test_timers_fire_in_order(self, new_timers: NewTimers) -> None:
        """Due timers come by time, once each; those that were deleted, or are later, do not."""
        timers = new_timers(_GROUPS, range(_GROUPS))
        added = _set(timers, [30, 10, 500, 20, 10, 40])
        timers.delete_event_time(*added[3])
        timers.delete_event_time(12345, "nothing")
        assert timers.next_event_time() == 10
        assert [time for time, _, _ in timers.advance_watermark(40)] == [10, 30, 40]
        assert list(timers.advance_watermark(40)) == []
        assert [time for time, _, _ in timers.advance_watermark(500)] == [500]
        assert (timers.next_event_time(), timers.next_processing_time()) == (None, -500)

    def test_timers_of_one_time_come_in_the_same_order(self, new_timers: NewTimers) -> None:
        """The order does not depend on the order in which they were set."""
        keys = [f"key {number}" for number in range(50)]
        fired = []
        for order in (keys, keys[::-1]):
            timers = new_timers(_GROUPS, range(_GROUPS))
            for key in order:
                timers.register_event_time(7, key)
            fired.append(list(timers.advance_watermark(7)))
        assert fired[0] == fired[1]
        assert sorted(key for _, key, _ in fired[0]) == sorted(keys)

    def test_a_timer_may_set_others(self, new_timers: NewTimers) -> None:
        """A timer that is set while others fire comes in the same round if it is due."""
        timers = new_timers(_GROUPS, range(_GROUPS))
        timers.register_event_time(0, "a")
        fired = []
        for time, key, _ in timers.advance_watermark(100):
            fired.append(time)
            if time < 200:
                timers.register_event_time(time + 30, key)
        assert (fired, timers.next_event_time()) == ([0, 30, 60, 90], 120)

    def test_a_snapshot_restores(self, new_timers: NewTimers) -> None:
        """A snapshot holds the timers of its cut; each subtask of another parallelism takes its own."""
        timers = new_timers(_GROUPS, range(_GROUPS))
        _set(timers, range(1, 300))
        expected = _all(timers)
        captured = timers.snapshot_whole(1, None, ())
        _set(timers, range(300, 310))
        parts = _encoded(captured)
        for parallelism in (1, 2, 3):
            found: list[Timer] = []
            for subtask in range(parallelism):
                own = key_group_range(_GROUPS, parallelism, subtask)
                restored = _all(self._restored(new_timers, parts, own))
                assert all(key_group(key, _GROUPS) in own for _, key, _ in restored), f"foreign keys at {parallelism}"
                found += restored
            assert sorted(found) == expected

    def test_deltas_hold_what_changed(self, new_timers: NewTimers) -> None:
        """A base with its deltas restores each cut: timers that were set, deleted, and fired."""
        timers = new_timers(_GROUPS, range(_GROUPS))
        added = _set(timers, range(1, 100))
        parts = _encoded(timers.snapshot_whole(1, None, ()))
        timers.snapshot_completed(1)
        list(timers.advance_watermark(20))
        for timer in added[40:50]:
            timers.delete_event_time(*timer)
        _set(timers, range(200, 210))
        parts += _encoded(timers.snapshot_delta(2, 1))
        assert _all(self._restored(new_timers, parts)) == _all(timers)
        timers.snapshot_completed(2)
        timers.register_event_time(*added[45])
        parts += _encoded(timers.snapshot_delta(3, 2))
        restored = self._restored(new_timers, parts)
        assert _all(restored) == _all(timers)
        assert list(restored.advance_watermark(1000)) == list(timers.advance_watermark(1000))

    def test_deltas_build_on_completed_snapshots(self, new_timers: NewTimers) -> None:
        """The changes of snapshots that were aborted, or are not complete, are in the next delta as well."""
        timers = new_timers(_GROUPS, range(_GROUPS))
        added = _set(timers, range(1, 50))
        parts = _encoded(timers.snapshot_whole(1, None, ()))
        timers.snapshot_completed(1)
        timers.delete_event_time(*added[0])
        _encoded(timers.snapshot_delta(2, 1))
        timers.snapshot_aborted(2)
        timers.delete_event_time(*added[1])
        _encoded(timers.snapshot_delta(3, 1))
        timers.delete_event_time(*added[2])
        parts += _encoded(timers.snapshot_delta(4, 1))
        assert _all(self._restored(new_timers, parts)) == _all(timers)
