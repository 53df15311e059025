"""I13: immutable values may be read after the cut, and are those of the cut."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from rekindle.common import Time
from rekindle.common.typeinfo import Types
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.errors import TypeMismatchError
from rekindle.runtime.state import capture
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.keyed_state_format import CapturedGroup, GroupCapture
from rekindle.testing import ManualClock
from tests.support.encoded_groups import encoded

GROUPS = 4
PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])
Parts = list[tuple[int, bytes]]


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, str]:
        return 0, ""

    def add(self, value: int, accumulator: tuple[int, str]) -> tuple[int, str]:
        return accumulator[0] + value, accumulator[1] + "x"

    def get_result(self, accumulator: tuple[int, str]) -> tuple[int, str]:
        return accumulator

    def merge(self, acc_a: tuple[int, str], acc_b: tuple[int, str]) -> tuple[int, str]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Job:
    """A value, a reducing and an aggregating state, all of declared immutable types."""

    def __init__(self, parts: Parts | None = None) -> None:
        self.backend = HashMapKeyedBackend(GROUPS, range(GROUPS), KeyedStateOptions(defer_reads=True))
        self.backend.restore(parts or [])
        self.pair = keyed_state(self.backend, ValueStateDescriptor("pair", PAIR))
        self.sum = keyed_state(self.backend, ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))
        self.mean = keyed_state(self.backend, AggregatingStateDescriptor("mean", Mean(), PAIR))

    def write(self, key: int, number: int) -> None:
        self.backend.set_current_key(key)
        self.pair.update((number, str(key)))
        self.sum.add(number)
        self.mean.add(number)

    def clear(self, key: int) -> None:
        self.backend.set_current_key(key)
        self.pair.clear()
        self.sum.clear()
        self.mean.clear()

    def content(self, keys: int) -> dict[int, Any]:
        found = {}
        for key in range(keys):
            self.backend.set_current_key(key)
            state = self.pair.value(), self.sum.get(), self.mean.get()
            if state != (None, None, None):
                found[key] = state
        return found


def filled(keys: int = 50) -> Job:
    job = Job()
    for key in range(keys):
        job.write(key, key)
    return job


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a single row is read after the cut."""
    monkeypatch.setattr(capture, "WORTHWHILE_ROWS", 1)


def overwrite(job: Job) -> None:
    """Every way in which rows change after a cut: written, written again, cleared, new, gone and back."""
    for key in range(0, 60, 2):
        job.write(key, 1000 + key)
        job.write(key, 2000 + key)
    for key in range(0, 50, 5):
        job.clear(key)
    for key in range(0, 50, 10):
        job.write(key, 3000)


@pytest.mark.parametrize("snapshot", ["whole", "aside", "delta"])
@pytest.mark.usefixtures("any_size")
def test_what_is_written_after_the_cut_is_not_in_the_snapshot(snapshot: str) -> None:
    job = filled()
    expected = job.content(60)
    if snapshot == "delta":
        delta = job.backend.snapshot_delta(1, None, whole=[1])
        assert delta._deferred
        overwrite(job)
        parts = encoded(delta.whole) + list(delta.encode())
    else:
        captured = getattr(job.backend, f"snapshot_{snapshot}")(1)
        assert all(deferred(captured))
        overwrite(job)
        parts = encoded(captured)
    assert Job(parts).content(60) == expected


@pytest.mark.usefixtures("any_size")
def test_the_next_cut_comes_before_the_last_one_is_read() -> None:
    job = filled()
    first, first_content = job.backend.snapshot_whole(1), job.content(60)
    overwrite(job)
    second, second_content = job.backend.snapshot_whole(2), job.content(60)
    for key in range(60):
        job.write(key, 5)
    assert Job(encoded(first)).content(60) == first_content
    assert Job(encoded(second)).content(60) == second_content


@pytest.mark.usefixtures("any_size")
def test_a_savepoint_takes_nothing_from_the_next_delta() -> None:
    """I12"""
    job = filled()
    parts = list(job.backend.snapshot_delta(1, None).encode())
    job.backend.snapshot_completed(1)
    job.write(3, 30)
    job.backend.snapshot_aside(2)
    job.write(4, 40)
    job.backend.snapshot_aside(3)
    job.write(5, 50)
    delta = job.backend.snapshot_delta(4, 1)
    assert {key for group in delta.groups for state in group.states for key in state.keys} == {3, 4, 5}
    assert Job(parts + list(delta.encode())).content(60) == job.content(60)


@pytest.mark.usefixtures("any_size")
def test_rows_without_state_stay_until_they_are_read() -> None:
    job = filled()
    job.backend.snapshot_whole(1)
    captured = job.backend.snapshot_aside(2)
    expected = job.content(60)
    for key in range(50):
        job.clear(key)
    job.backend.forget_changes()
    assert job.backend.number_of_keys() == 50
    assert Job(encoded(captured)).content(60) == expected
    del captured
    job.backend.forget_changes()
    assert job.backend.number_of_keys() == 0


@pytest.mark.usefixtures("any_size")
def test_a_snapshot_that_is_given_up_costs_nothing_more() -> None:
    job = filled()
    captured = job.backend.snapshot_whole(1)
    job.write(1, 1)
    assert job.backend._capture.reads_rows
    del captured
    assert not job.backend._capture.reads_rows
    job.write(2, 1)
    assert not job.backend._keeps


@pytest.mark.usefixtures("any_size")
def test_values_that_can_change_are_found_and_read_at_the_cut() -> None:
    job = Job()
    for key in range(10):
        job.backend.set_current_key(key)
        job.pair.update([key, "a list, though a tuple is declared"])  # type: ignore[arg-type]
    captured = job.backend.snapshot_whole(1)
    job.backend.set_current_key(3)
    job.pair.value().append("later")  # type: ignore[union-attr]
    restored = Job(encoded(captured))
    restored.backend.set_current_key(3)
    assert restored.pair.value() == (3, "a list, though a tuple is declared")


@pytest.mark.usefixtures("any_size")
def test_a_rare_value_that_can_change_is_refused_by_name() -> None:
    job = filled(1000)
    for key in range(500, 510):
        job.backend.set_current_key(key)
        job.pair.update([1, "x"])  # type: ignore[arg-type]
    captured = job.backend.snapshot_whole(1)
    with pytest.raises(TypeMismatchError, match=r"State 'pair' is declared as .*, but holds a list, which can be"):
        [group.encode() for group in captured]


@pytest.mark.usefixtures("any_size")
def test_what_has_expired_at_the_cut_is_not_read_later() -> None:
    """A full snapshot's clean-up removes values right before the cut: they were not overwritten after it."""
    clock = ManualClock()
    config = StateTtlConfig.new_builder(Time.milliseconds(10)).disable_cleanup_in_background().cleanup_full_snapshot()
    descriptor = ValueStateDescriptor("pair", PAIR)
    descriptor.enable_time_to_live(config.return_expired_if_not_cleaned_up().build())

    def backend() -> tuple[HashMapKeyedBackend, Any]:
        made = HashMapKeyedBackend(GROUPS, range(GROUPS), KeyedStateOptions(defer_reads=True, clock=clock))
        return made, keyed_state(made, descriptor)

    keyed, state = backend()
    for key in range(20):
        keyed.set_current_key(key)
        state.update((key, "old"))
    keyed.snapshot_whole(1)
    clock.advance(50)
    keyed.set_current_key(3)
    state.update((3, "new"))
    captured = keyed.snapshot_whole(2)
    assert all(deferred(captured))
    parts = encoded(captured)
    restored = HashMapKeyedBackend(GROUPS, range(GROUPS), KeyedStateOptions(clock=clock))
    restored.restore(parts)
    keyed_state(restored, descriptor)
    assert list(restored.keys()) == [3]


def deferred(groups: Iterable[GroupCapture]) -> list[bool]:
    """Which of the groups are read later, when they are encoded."""
    found = []
    for group in groups:
        assert isinstance(group, CapturedGroup)
        found.append(bool(group.deferred))
    return found


def test_small_snapshots_are_taken_at_once() -> None:
    job = filled()
    assert not any(deferred(job.backend.snapshot_whole(1)))


def test_backends_whose_rows_others_write_put_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "WORTHWHILE_ROWS", 1)
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    state = keyed_state(backend, ValueStateDescriptor("pair", PAIR))
    backend.set_current_key(1)
    state.update((1, "x"))
    assert not any(deferred(backend.snapshot_whole(1)))


@pytest.fixture
def hectic() -> Iterator[None]:
    """Threads switch as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("any_size", "hectic")
@pytest.mark.parametrize("seed", range(3))
def test_read_on_one_thread_while_another_one_writes(seed: int) -> None:
    job, chance = filled(3000), random.Random(seed)
    for number in range(1, 6):
        expected = job.content(3500)
        delta = job.backend.snapshot_delta(number, None, whole=range(GROUPS)) if number % 2 else None
        captured = delta.whole if delta is not None else job.backend.snapshot_whole(number)
        parts: Parts = []
        reader = threading.Thread(
            target=lambda parts=parts, captured=captured: parts.extend((g.key_group, g.encode()) for g in captured)
        )
        reader.start()
        while reader.is_alive():
            for _ in range(50):
                job.write(chance.randrange(3500), chance.randrange(10**6))
                job.clear(chance.randrange(3500))
        reader.join()
        assert Job(parts).content(3500) == expected
