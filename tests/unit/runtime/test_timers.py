"""The timer service, in memory and on disk: order of firing, deletion, namespaces, snapshots."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from rekindle.errors import SerializationError
from rekindle.key_groups import key_group_range
from rekindle.runtime.key_bytes import canonical_bytes
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.timers import InternalTimers, Timer
from tests.support.keyed_backends import TIMERS

MAX = 2**63 - 1


#: What makes the timers of the running test.
kinds: list[str] = ["hashmap"]


@pytest.fixture(autouse=True, params=TIMERS)
def kind(request: pytest.FixtureRequest) -> str:
    kinds[:] = [request.param]
    return kinds[0]


def timers(groups: range = range(128)) -> InternalTimers:
    return TIMERS[kinds[0]](128, groups)


def plain(due: Iterator[Timer]) -> list[tuple[int, Any]]:
    return [(time, key) for time, key, _ in due]


def test_timers_fire_once_in_order_of_time_and_key_bytes() -> None:
    some = timers()
    keys: list[Any] = ["b", "a", 10, 2, None, ("x", 1), -1]
    for time in (5, 3, 9):
        for key in keys:
            some.register_event_time(time, key)
            some.register_event_time(time, key)
    ordered = sorted(keys, key=canonical_bytes)
    assert plain(some.advance_watermark(5)) == [(time, key) for time in (3, 5) for key in ordered]
    assert plain(some.advance_watermark(5)) == []
    assert some.next_event_time() == 9
    assert len(some.event) == len(keys)
    assert plain(some.advance_watermark(MAX)) == [(9, key) for key in ordered]
    assert some.next_event_time() is None


def test_the_order_does_not_depend_on_the_order_of_registration() -> None:
    registered = [(time, key) for time in range(5) for key in ("a", "b", "c", 1, 2)]
    orders = []
    for seed in range(5):
        random.Random(seed).shuffle(registered)
        some = timers()
        for time, key in registered:
            some.register_event_time(time, key)
        orders.append(plain(some.advance_watermark(MAX)))
    assert orders.count(orders[0]) == 5


def test_the_two_domains_are_apart() -> None:
    some = timers()
    some.register_event_time(1, "e")
    some.register_processing_time(2, "p")
    assert some.next_processing_time() == 2
    assert plain(some.due_processing_time(10)) == [(2, "p")]
    assert plain(some.advance_watermark(10)) == [(1, "e")]
    assert some.next_processing_time() is None


def test_deleted_timers_do_not_fire() -> None:
    some = timers()
    for key in ("a", "b"):
        some.register_event_time(1, key)
        some.register_processing_time(1, key)
    some.delete_event_time(1, "a")
    some.delete_event_time(1, "nobody")
    some.delete_event_time(2, "a")
    some.delete_processing_time(1, "b")
    assert plain(some.advance_watermark(MAX)) == [(1, "b")]
    assert plain(some.due_processing_time(MAX)) == [(1, "a")]


def test_namespaces_have_timers_of_their_own() -> None:
    some = timers()
    some.register_event_time(5, "k", (0, 5))
    some.register_event_time(5, "k", (-5, 5))
    some.register_event_time(5, "k", (0, 5))
    some.register_event_time(5, "k")
    some.delete_event_time(5, "k")
    assert list(some.advance_watermark(5)) == [(5, "k", (-5, 5)), (5, "k", (0, 5))]


def test_timers_set_while_firing_come_in_the_same_round_when_they_are_due() -> None:
    some = timers()
    some.register_event_time(10, "a")
    some.register_event_time(10, "b")
    some.register_event_time(20, "a")
    fired = []
    for time, key, _ in some.advance_watermark(20):
        fired.append((time, key))
        if len(fired) == 1:
            some.register_event_time(10, "c")  # now
            some.register_event_time(5, "z")  # before now
            some.register_event_time(15, "m")  # later, still due
            some.register_event_time(21, "q")  # not due
            some.register_event_time(10, "a")  # itself again
    assert fired == [(10, "a"), (5, "z"), (10, "b"), (10, "a"), (10, "c"), (15, "m"), (20, "a")]
    assert some.next_event_time() == 21


def test_a_timer_that_sets_itself_again_later_ends() -> None:
    some = timers()
    some.register_event_time(0, "k")
    fired = []
    for time, key, _ in some.advance_watermark(100):
        fired.append(time)
        some.register_event_time(time + 10, key)
    assert fired == list(range(0, 101, 10))
    assert some.next_event_time() == 110


def test_timers_deleted_while_firing_do_not_come() -> None:
    some = timers()
    for key in ("a", "b", "c"):
        some.register_event_time(10, key)
    some.register_event_time(11, "a")
    fired = []
    for time, key, _ in some.advance_watermark(20):
        fired.append((time, key))
        if key == "a" and time == 10:
            some.delete_event_time(10, "b")
            some.delete_event_time(11, "a")
    assert fired == [(10, "a"), (10, "c")]


def test_a_bucket_emptied_and_refilled_while_it_fires() -> None:
    some = timers()
    for key in ("a", "b"):
        some.register_event_time(10, key)
    fired = []
    for time, key, _ in some.advance_watermark(20):
        fired.append((time, key))
        if key == "a":
            some.delete_event_time(10, "b")
            some.register_event_time(10, "b")
    assert fired == [(10, "a"), (10, "b")]
    assert len(some.event) == 0


def test_a_handler_that_fails_leaves_the_rest_in_place() -> None:
    some = timers()
    for key in ("a", "b"):
        some.register_event_time(10, key)
    due = some.advance_watermark(20)
    assert next(due)[1] == "a"
    due.close()  # type: ignore[attr-defined]
    assert some.next_event_time() == 10
    assert plain(some.advance_watermark(20)) == [(10, "b")]


def test_many_timers_in_the_past_do_not_cost_the_square() -> None:
    some = timers()
    for key in range(5_000):
        some.register_event_time(10, key)
    fired = 0
    for time, key, _ in some.advance_watermark(10):
        fired += 1
        if time == 10:
            some.register_event_time(0, key)
    assert fired == 10_000


def test_deleted_timers_do_not_accumulate() -> None:
    some = timers()
    some.register_event_time(0, "stays")
    for time in range(1, 10_000):
        some.register_event_time(time, "k")
        some.delete_event_time(time, "k")
        some.register_event_time(MAX, "k")
        some.delete_event_time(MAX, "k")
    assert len(some.event._heap) < 200
    assert len(some.event._buckets) == 1
    assert plain(some.advance_watermark(MAX)) == [(0, "stays")]


def test_compaction_while_firing_loses_nothing() -> None:
    some = timers()
    for key in range(5):
        some.register_event_time(10, key)
    fired = []
    for time, key, _ in some.advance_watermark(10):
        fired.append((time, key))
        for other in range(1000, 1300):
            some.register_event_time(other, key)
        for other in range(1000, 1300):
            some.delete_event_time(other, key)
    assert fired == [(10, key) for key in range(5)]
    assert len(some.event) == 0
    assert some.next_event_time() is None


def test_snapshot_and_restore_with_rescale() -> None:
    some = timers()
    for number in range(200):
        some.register_event_time(number % 7, f"k{number}", (number, number + 1) if number % 2 else None)
        some.register_processing_time(number % 5, number)
    snapshot = some.snapshot()
    some.register_event_time(0, "after the cut")
    parts = list(snapshot.encode())
    assert [group for group, _ in parts] == sorted({group for group, _ in parts})
    found: list[list[Timer]] = [[], []]
    for subtask in range(3):
        owned = key_group_range(128, 3, subtask)
        restored = timers(owned)
        restored.restore(parts)
        event, processing = list(restored.advance_watermark(MAX)), list(restored.due_processing_time(MAX))
        assert all(key_group(key, 128) in owned for _, key, _ in event + processing)
        found[0] += event
        found[1] += processing
    some.delete_event_time(0, "after the cut")

    def order(timer: Timer) -> Any:
        return timer[0], canonical_bytes(timer[1]), canonical_bytes(timer[2])

    assert sorted(found[0], key=order) == list(some.advance_watermark(MAX))
    assert sorted(found[1], key=order) == list(some.due_processing_time(MAX))


def test_damaged_parts_are_refused() -> None:
    with pytest.raises(SerializationError, match="key group 5 are damaged"):
        timers().restore([(5, b"\x91nonsense")])
