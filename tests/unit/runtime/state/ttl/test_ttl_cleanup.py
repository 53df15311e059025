"""Clean-up of state that has expired: at each access, for every record, and when no snapshot needs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from rekindle.common import Duration, Time, Types
from rekindle.datastream import KeyedProcessFunction, RuntimeContext
from rekindle.datastream.state import StateTtlConfig, ValueStateDescriptor
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.rocksdb.row_cache import RowCache
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import environment
from tests.support.keyed_backends import BACKENDS
from tests.unit.runtime.state.ttl.ttl_job import (
    GROUPS,
    KINDS,
    START_MS,
    TTL_MS,
    Job,
    Setting,
    descriptor_of,
    expired_too,
    incrementally,
    list_with_ages,
    map_with_ages,
    on_read,
    ttl,
    with_expired_keys,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [(), (expired_too,), (on_read,)], ids=["", "expired-too", "on-read"])
def test_incremental_cleanup_removes_a_bounded_number_at_each_access(kind: str, settings: tuple[Setting, ...]) -> None:
    job = with_expired_keys(kind, ttl(*settings, incrementally(3)))
    left = [len(job.held())]
    while left[-1]:
        assert len(left) < 50
        job.read()
        left.append(len(job.held()))
    assert left[0] == 20
    assert max(before - after for before, after in pairwise(left)) == 3
    assert len(left) <= 20 // 3 + GROUPS


def test_incremental_cleanup_is_on_by_default_with_five_entries() -> None:
    job = with_expired_keys("value", ttl(background=True))
    job.read()
    assert 20 - len(job.held()) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_without_cleanup_in_the_background_what_is_not_read_stays(kind: str) -> None:
    for config in (ttl(), ttl(lambda builder: builder.cleanup_in_rocksdb_compact_filter(1, Duration.of_days(1)))):
        job = with_expired_keys(kind, config)
        for _ in range(50):
            job.read()
        assert len(job.held()) == 20


@pytest.mark.parametrize("kind", KINDS)
def test_cleanup_for_every_record_needs_no_access(kind: str) -> None:
    job = with_expired_keys(kind, ttl(incrementally(3, every_record=True)))
    find, load = job.backend.front.get, job.backend.load_row
    for _ in range(10):
        job.backend.row = find("other") or load("other")
    assert job.held() == set()
    assert job.backend.current_key() == "other"


def test_cleanup_for_every_record_of_a_state_that_comes_late() -> None:
    """A loop that holds the old `front.get` finds every key's one row all the same."""
    job = Job("value", None)
    find, load = job.backend.front.get, job.backend.load_row
    job.at("k").write(1)
    descriptor = ValueStateDescriptor("late", Types.LONG())
    descriptor.enable_time_to_live(ttl(incrementally(1, every_record=True)))
    late = keyed_state(job.backend, descriptor)
    for number in range(3):
        job.backend.row = find("k") or load("k")
        assert job.read() == 1
        late.update(number)
        job.backend.row = find("new") or load("new")
        late.update(number)
    assert job.at("k").read() == 1
    assert late.value() == 2
    assert job.backend.number_of_keys() == 2


class AsksLate(KeyedProcessFunction):
    """Asks for its state with the second record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._context = runtime_context
        self._seen = 0

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[str, int | None]]:
        self._seen += 1
        if self._seen < 2:
            return
        descriptor = ValueStateDescriptor("count", Types.INT())
        ttl = StateTtlConfig.new_builder(Time.seconds(10)).cleanup_incrementally(5, True).build()
        descriptor.enable_time_to_live(ttl)
        count = self._context.get_state(descriptor)
        count.update((count.value() or 0) + 1)
        yield value, count.value()


def test_a_function_may_ask_for_such_a_state_in_the_middle_of_a_batch() -> None:
    env = environment(1)
    stream = env.from_collection(["a", "a", "b", "a", "b"]).key_by(lambda each: each).process(AsksLate())
    assert InProcessJob.of(stream).run() == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_without_every_record_choosing_a_key_cleans_nothing() -> None:
    job = with_expired_keys("value", ttl(incrementally(3)))
    for _ in range(10):
        job.at("other")
    assert len(job.held()) == 20
    assert type(job.backend.front) is dict


def test_cleanup_leaves_what_lives_and_the_current_key() -> None:
    job = Job("value", ttl(incrementally(100)))
    job.at("old").write(1)
    job.after(6).at("young").write(2)
    job.after(4).at("new").write(3)
    assert job.held() == {"young", "new"}
    assert (job.backend.current_key(), job.read()) == ("new", 3)
    assert job.at("young").read() == 2


def test_cleanup_takes_expired_elements_and_entries_out_of_the_middle() -> None:
    lists = list_with_ages(incrementally(100))
    lists.at("other").read()
    assert lists.at("k").backend.row[2] == [(START_MS + 4, None), (START_MS + 8, 2)]
    maps = map_with_ages(incrementally(100))
    maps.at("other").read()
    assert maps.at("k").backend.row[2] == {"b": (START_MS + 4, None), None: (START_MS + 8, 2)}


@pytest.mark.parametrize("kind", ["list", "map"])
def test_elements_and_entries_count_one_by_one(kind: str) -> None:
    job = Job(kind, ttl(incrementally(10))).at("large")
    if kind == "list":
        job.state.update(range(100))
    else:
        job.state.put_all({str(number): number for number in range(100)})
    job.after(5).at("later").write(1)
    job.after(5)
    accesses = 0
    while job.held() != {"later"} or accesses < 5:
        accesses += 1
        assert accesses < 30
        job.at("elsewhere").read()
        if kind == "map" and accesses == 5:
            assert 40 <= len(job.at("large").backend.row[2]) <= 60
    assert job.at("later").read() == 1


def test_a_map_may_change_while_it_is_cleaned() -> None:
    job = Job("map", ttl(incrementally(1))).at("k")
    job.state.put_all({str(number): number for number in range(10)})
    job.after(TTL_MS)
    job.state.put("new", 1)
    job.state.put("3", 33)
    job.state.remove("4")
    job.state.clear()
    job.state.put_all({"0": 100, "last": 1})
    for _ in range(30):
        job.state.is_empty()
    assert job.state.items() == [("0", 100), ("last", 1)]


def test_nothing_is_looked_at_while_nothing_can_have_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    rows_to_sweep = HashMapKeyedBackend.rows_to_sweep

    def counted(backend: HashMapKeyedBackend, key_group: int) -> Iterable[Row]:
        looks.append(key_group)
        return rows_to_sweep(backend, key_group)

    monkeypatch.setattr(HashMapKeyedBackend, "rows_to_sweep", counted)
    job = Job("value", ttl(incrementally(1000))).at(1).write(1)
    job.after(3).at(2).write(2)
    assert len(looks) == GROUPS
    for _ in range(6):
        job.after(1).at(3).read()
    assert len(looks) == GROUPS, "the pass at the start knows that nothing can expire for 10 ms"
    job.after(1).read()
    assert len(looks) == 2 * GROUPS
    assert job.held() == {2}
    job.after(2).read()
    assert len(looks) == 2 * GROUPS, "the second value, written after 3 ms, is the next"
    job.after(1).read()
    assert job.held() == set()


def test_a_sweep_on_disk_writes_nothing_and_walks_through_the_cache_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = []
    rows = RowCache.rows

    def counted(cache: RowCache) -> Iterator[Row]:
        walks.append(1)
        return rows(cache)

    clock = ManualClock(START_MS)
    backend = BACKENDS["rocksdb"](128, range(128), KeyedStateOptions(clock=clock))
    state: Any = keyed_state(backend, descriptor_of("value", ttl(incrementally(1000))))
    for key in range(100):
        backend.set_current_key(key)
        state.update(key)
    clock.advance(TTL_MS)
    with monkeypatch.context() as patch:
        patch.setattr(RowCache, "rows", counted)
        patch.setattr(backend.database, "write", None)
        backend.set_current_key(0)
        assert state.value() is None
    assert walks == [1]
    assert not list(backend.keys()), "it has removed what only the cache held"


def test_the_order_of_cleanup_is_the_same_every_time() -> None:
    def removals() -> list[frozenset[Any]]:
        job = with_expired_keys("map", ttl(incrementally(2)))
        found = []
        for _ in range(15):
            job.read()
            found.append(frozenset(job.held()))
        return found

    assert removals() == removals()
    assert len(set(removals())) > 5


def test_rows_that_expired_are_dropped_when_no_snapshot_needs_them() -> None:
    job = with_expired_keys("value", ttl(incrementally(100)))
    job.checkpoint(1, None)
    job.read()
    assert job.backend.number_of_keys() == 20, "their removal is not written yet"
    job.checkpoint(2, 1)
    assert job.backend.number_of_keys() == 0
