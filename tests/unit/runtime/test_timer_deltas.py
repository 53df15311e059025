"""I12 for timers: deltas stand on completed snapshots only, and hold only the changes."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.runtime import timers as timers_module
from rekindle.runtime.timers import InternalTimers, Timer, TimerCapture
from tests.support.keyed_backends import TIMERS

GROUPS = 16
MAX = 2**63 - 1
Parts = list[tuple[int, bytes]]


#: What makes the timers of the running test.
kinds: list[str] = ["hashmap"]


@pytest.fixture(autouse=True, params=TIMERS)
def kind(request: pytest.FixtureRequest) -> str:
    kinds[:] = [request.param]
    return kinds[0]


def timers(parts: Parts | None = None) -> InternalTimers:
    made = TIMERS[kinds[0]](GROUPS, range(GROUPS))
    if parts is not None:
        made.restore(parts)
    return made


def content(some: InternalTimers) -> tuple[set[Timer], set[Timer]]:
    return set(some.event.all()), set(some.processing.all())


def filled(count: int = 100) -> InternalTimers:
    some = timers()
    for number in range(count):
        some.register_event_time(number, f"k{number}", ("window", number) if number % 2 else None)
        some.register_processing_time(number, number)
    return some


def change(some: InternalTimers, number: int) -> None:
    some.register_event_time(1000 + number, "new")
    some.delete_processing_time(number, number)
    list(some.advance_watermark(number))


def delta(some: InternalTimers, snapshot_id: int, since: int) -> TimerCapture:
    found = some.snapshot_delta(snapshot_id, since)
    assert found is not None
    return found


def test_a_whole_snapshot_and_deltas_restore() -> None:
    some = filled()
    parts = list(some.snapshot_whole(1, None, ()).encode())
    for number in range(2, 8):
        change(some, number)
        expected = content(some)
        taken = delta(some, number, number - 1)
        some.register_event_time(5000 + number, "after the cut")
        parts += taken.encode()
        assert content(timers(parts)) == expected


def test_a_delta_is_small() -> None:
    some = filled(1000)
    whole = list(some.snapshot_whole(1, None, ()).encode())
    some.register_event_time(7, "k3")
    some.delete_event_time(4, "k4")
    parts = list(delta(some, 2, 1).encode())
    assert len(parts) <= 2
    assert sum(len(data) for _, data in parts) * 50 < sum(len(data) for _, data in whole)
    assert list(delta(some, 3, 2).encode()) == []


def test_a_timer_that_comes_and_goes_is_gone() -> None:
    some = filled(3)
    parts = list(some.snapshot_whole(1, None, ()).encode())
    some.register_event_time(50, "k")
    some.delete_event_time(50, "k")
    some.delete_event_time(0, "k0")
    some.register_event_time(0, "k0")
    parts += delta(some, 2, 1).encode()
    assert content(timers(parts)) == content(some)


def test_an_aborted_delta_is_covered_by_the_next() -> None:
    some = filled()
    parts = list(some.snapshot_whole(1, None, ()).encode())
    change(some, 5)
    delta(some, 2, 1)
    some.snapshot_aborted(2)
    change(some, 6)
    delta(some, 3, 1)
    change(some, 7)
    some.snapshot_aborted(3)
    parts += delta(some, 4, 1).encode()
    assert content(timers(parts)) == content(some)


def test_two_deltas_at_once_stand_on_the_same_snapshot() -> None:
    some = filled()
    parts = list(some.snapshot_whole(1, None, ()).encode())
    change(some, 5)
    delta(some, 2, 1)
    change(some, 6)
    third = list(delta(some, 3, 1).encode())
    assert content(timers(parts + third)) == content(some)
    some.snapshot_completed(3)
    change(some, 7)
    assert content(timers(parts + third + list(delta(some, 4, 3).encode()))) == content(some)


def test_a_restored_subtask_goes_on_with_deltas() -> None:
    some = filled()
    parts = list(some.snapshot_whole(1, None, ()).encode())
    again = timers(parts)
    change(again, 5)
    parts += delta(again, 2, 1).encode()
    assert content(timers(parts)) == content(again)


def test_before_a_whole_snapshot_no_delta_is_possible_and_nothing_is_kept() -> None:
    some = filled()
    assert some.snapshot_delta(2, 1) is None
    assert some.event.changes.open is None


def test_more_changes_than_timers_are_given_up_until_the_next_whole_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers_module, "CHANGES_ALLOWED", 10)
    some = timers()
    some.register_event_time(1000, "stays")
    some.snapshot_whole(1, None, ())
    some.event._most_changes = 10
    for number in range(1, 100):
        some.register_event_time(number, "k")
        assert list(some.advance_watermark(number)) == [(number, "k", None)]
        assert some.event.changes.open is None or len(some.event.changes.open) <= 14
    assert some.snapshot_delta(2, 1) is None
    parts = list(some.snapshot_whole(3, 1, range(GROUPS)).encode())
    # No delta stands on an earlier snapshot; an aborted one does not change that.
    some.snapshot_aborted(3)
    assert some.snapshot_delta(4, 1) is None
    parts = list(some.snapshot_whole(5, 1, range(GROUPS)).encode())
    some.snapshot_completed(5)
    some.register_event_time(77, "k")
    parts += delta(some, 6, 5).encode()
    assert content(timers(parts)) == content(some)


def test_a_whole_snapshot_replaces_what_is_stored_of_key_groups_without_timers() -> None:
    some = filled(3)
    stored = {group for group, _ in some.snapshot_whole(1, None, ()).encode()}
    list(some.advance_watermark(MAX))
    list(some.due_processing_time(MAX))
    parts = list(some.snapshot_whole(2, 1, stored).encode())
    assert {group for group, _ in parts} == stored
    assert content(timers(parts)) == (set(), set())


def test_timers_that_fire_are_gone_from_the_next_delta() -> None:
    some = filled()
    parts = list(some.snapshot_whole(1, None, ()).encode())
    fired: list[Any] = []
    for time, key, namespace in some.advance_watermark(20):
        fired.append((time, key, namespace))
        some.register_event_time(time + 1000, key)
    parts += delta(some, 2, 1).encode()
    restored = timers(parts)
    assert content(restored) == content(some)
    assert not set(fired) & content(restored)[0]


def test_sets_of_aborted_snapshots_do_not_accumulate() -> None:
    some = filled()
    some.snapshot_whole(1, None, ())
    some.snapshot_completed(1)
    for number in range(2, 100):
        change(some, number)
        delta(some, number, 1)
        some.snapshot_aborted(number)
    assert some.event.changes._sealed == []
