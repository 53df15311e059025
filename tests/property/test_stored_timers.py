"""Timers on disk fire as those in memory do, whatever is set, deleted, snapshotted and restored (I1, I12).

The same steps go through timers in memory, on disk, and on disk with nearly nothing in memory; handlers set and delete
timers while others fire. Snapshots of each restore into each, whole or in deltas, at any parallelism.
"""

from __future__ import annotations

import random
from itertools import cycle
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rekindle.key_groups import key_group_range
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.runtime.timers import InternalTimers, Timer
from tests.support.keyed_backends import TIMERS, stored_timers

GROUPS = 8
KINDS = list(TIMERS)
Parts = list[tuple[int, bytes]]

# Few of each, so that runs of a few dozen steps meet the same timer again and again.
times = st.integers(0, 2)
timers = st.tuples(times, st.sampled_from(["a", "a\0", "b", 1, 1.0, ("c", 2)]), st.sampled_from([None, (0, 1)]))
changes = st.tuples(st.sampled_from(["set", "set", "delete"]), timers)
#: What the handlers of the timers do that fire, one after the other.
handlers = st.lists(st.lists(changes, max_size=3), max_size=15)


@pytest.mark.parametrize("times", [1, 2, 4])
def test_they_fire_in_the_same_order(times: int) -> None:
    for seed in range(300):
        compare(random.Random(seed), times)


def compare(random: random.Random, times: int) -> None:
    """Set, delete and fire the same timers in memory and on disk."""
    limits = TimerLimits(random.randint(1, 4), random.randint(1, 3), random.randint(0, 4), random.randint(0, 3))
    held, stored = InternalTimers(GROUPS, range(GROUPS)), stored_timers(limits, GROUPS, range(GROUPS))

    def some_changes(most: int) -> list[tuple[str, Timer]]:
        timer = lambda: (random.randrange(times), random.choice("abcdefg"), random.choice([None, (0, 1)]))  # noqa: E731
        return [(random.choice(["set", "set", "delete"]), timer()) for _ in range(random.randint(0, most))]

    for _ in range(6):
        for change in some_changes(12):
            apply(held, change, "event")
            apply(stored, change, "event")
        arguments: Any = random.randrange(times), [some_changes(3) for _ in range(10)], random.randint(0, 30)
        assert fired(stored, *arguments) == fired(held, *arguments)
        assert stored.next_event_time() == held.next_event_time()
    assert fired(stored, times, [], 0) == fired(held, times, [], 0)
    assert len(stored.event) == 0


def fired(some: InternalTimers, limit: int, does: list[list[tuple[str, Timer]]], fails_at: int) -> list[Timer]:
    """Fire timers; the handler of the one with the number `fails_at` fails."""
    found: list[Timer] = []
    due = some.advance_watermark(limit)
    for timer in due:
        found.append(timer)
        if len(found) == fails_at:
            due.close()  # type: ignore[attr-defined]
            break
        for change in does[len(found) - 1] if len(found) <= len(does) else ():
            apply(some, change, "event")
    return found


def restored(kind: str, parts: Parts, groups: range = range(GROUPS)) -> InternalTimers:
    made = TIMERS[kind](GROUPS, groups)
    made.restore(parts)
    return made


def content(some: InternalTimers) -> tuple[set[Timer], set[Timer]]:
    event, processing = list(some.event.all()), list(some.processing.all())
    assert len(event) == len(set(event)) == len(some.event), "a timer is there once"
    return set(event), set(processing)


def apply(some: InternalTimers, change: tuple[str, Timer], domain: str) -> None:
    queue = getattr(some, domain)
    action, timer = change
    (queue.register if action == "set" else queue.delete)(*timer)


class Timers(RuleBasedStateMachine):
    """`self.all` are the timers of each kind; the steps are the same for all."""

    @initialize()
    def start(self) -> None:
        self.all = [TIMERS[kind](GROUPS, range(GROUPS)) for kind in KINDS]
        self.next_id = 1
        self.completed: int | None = None
        self.chains: dict[int, list[Parts]] = {}
        self.contents: dict[int, Any] = {}
        self.pending: list[int] = []

    @rule(change=changes, domain=st.sampled_from(["event", "event", "processing"]))
    def change(self, change: tuple[str, Timer], domain: str) -> None:
        for some in self.all:
            apply(some, change, domain)

    @rule(many=st.lists(timers, min_size=4, max_size=12))
    def set_many(self, many: list[Timer]) -> None:
        for some in self.all:
            for timer in many:
                some.register_event_time(*timer)

    @rule(limit=times, handlers=handlers, fails_at=st.integers(0, 20))
    def advance(self, limit: int, handlers: list[list[tuple[str, Timer]]], fails_at: int) -> None:
        self._same([fired(some, limit, handlers, fails_at) for some in self.all])

    @rule(handlers=handlers)
    def drain(self, handlers: list[list[tuple[str, Timer]]]) -> None:
        found = []
        for some in self.all:
            fired = []
            for timer, handler in zip(some.event.drain(), cycle([*handlers, []]), strict=False):
                fired.append(timer)
                for change in handler:
                    apply(some, change, "event")
            found.append(fired)
            assert len(some.event) == 0
        self._same(found)

    @rule(limit=times)
    def drop(self, limit: int) -> None:
        for some in self.all:
            some.event.drop_due(limit)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    @rule(later=st.lists(changes, max_size=3), whole=st.booleans())
    def snapshot(self, later: list[tuple[str, Timer]], whole: bool) -> None:
        """Make a cut; processing goes on before the snapshot is encoded."""
        number, self.next_id = self.next_id, self.next_id + 1
        self.contents[number] = content(self.all[0])
        bases = self.chains[self.completed] if self.completed is not None else [[] for _ in KINDS]
        captured = [self._capture(some, number, whole) for some in self.all]
        for change in later:
            self.change(change, "event")
        self.chains[number] = [
            ([] if is_whole else base) + list(each.encode())
            for (each, is_whole), base in zip(captured, bases, strict=True)
        ]
        self.pending.append(number)

    def _capture(self, some: InternalTimers, number: int, whole: bool) -> tuple[Any, bool]:
        delta = None if whole or self.completed is None else some.snapshot_delta(number, self.completed)
        if delta is not None:
            return delta, False
        return some.snapshot_whole(number, self.completed, range(GROUPS)), True

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2), notified=st.booleans(), parallelism=st.integers(1, 3))
    def complete(self, place: int, notified: bool, parallelism: int) -> None:
        number = self.pending[place % len(self.pending)]
        self.pending = [later for later in self.pending if later > number]
        self.completed = number
        for some in self.all if notified else ():
            some.snapshot_completed(number)
        for kind, parts in zip([*KINDS[1:], KINDS[0]], self.chains[number], strict=True):
            assert content(restored(kind, parts)) == self.contents[number]
            assert self._rescaled(kind, parts, parallelism) == self.contents[number]

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2))
    def abort(self, place: int) -> None:
        number = self.pending.pop(place % len(self.pending))
        for some in self.all:
            some.snapshot_aborted(number)

    @precondition(lambda self: self.completed is not None)
    @rule(shift=st.integers(0, 2))
    def restart(self, shift: int) -> None:
        """Go on from the completed snapshot, each kind with that of any kind."""
        assert self.completed is not None
        chains = self.chains[self.completed]
        chains = chains[shift:] + chains[:shift]
        self.chains[self.completed] = chains
        self.all = [restored(kind, parts) for kind, parts in zip(KINDS, chains, strict=True)]
        self.pending = []

    def _rescaled(self, kind: str, parts: Parts, parallelism: int) -> tuple[set[Timer], set[Timer]]:
        shares = [restored(kind, parts, key_group_range(GROUPS, parallelism, each)) for each in range(parallelism)]
        found = list(map(content, shares))
        assert sum(len(event) for event, _ in found) == len(set().union(*(event for event, _ in found)))
        return set().union(*(event for event, _ in found)), set().union(*(each for _, each in found))

    # -- the same ------------------------------------------------------------------------------------------------------

    def _same(self, found: list[Any]) -> None:
        assert found == [found[0]] * len(found)

    @rule()
    def the_same_timers_are_set(self) -> None:
        self._same([content(some) for some in self.all])
        self._same([some.next_event_time() for some in self.all])


Timers.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestTimers = Timers.TestCase
