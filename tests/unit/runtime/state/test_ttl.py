"""Time to live: every kind of state × update type × visibility × clean-up, on a clock that the test turns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from rekindle.common import Duration, Time, Types
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.errors import IncompatibleStateError, SerializationError, StateAccessError
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.changes import Row
from rekindle.runtime.state.format import decode_part
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.merge_state import merge_state
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.state.ttl.expiry import TimedCodec
from rekindle.serde import value_codec_for
from rekindle.testing import InProcessJob, ManualClock
from tests.whole_state import whole_parts

GROUPS = 4
TTL_MS = 10
START_MS = 1_700_000_000_000
KINDS = ["value", "list", "map", "reducing", "aggregating"]
Parts = list[tuple[int, bytes]]
Setting = Callable[[StateTtlConfig.Builder], StateTtlConfig.Builder]


class Total(AggregateFunction):
    """Sums, in a list that is changed in place."""

    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0]]


def ttl(*settings: Setting, background: bool = False) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
    if not background:
        builder.disable_cleanup_in_background()
    for setting in settings:
        setting(builder)
    return builder.build()


def expired_too(builder: StateTtlConfig.Builder) -> StateTtlConfig.Builder:
    return builder.return_expired_if_not_cleaned_up()


def on_read(builder: StateTtlConfig.Builder) -> StateTtlConfig.Builder:
    return builder.update_ttl_on_read_and_write()


def in_full_snapshot(builder: StateTtlConfig.Builder) -> StateTtlConfig.Builder:
    return builder.cleanup_full_snapshot()


def incrementally(size: int, every_record: bool = False) -> Setting:
    return lambda builder: builder.cleanup_incrementally(size, every_record)


def descriptor_of(kind: str, config: StateTtlConfig | None) -> StateDescriptor:
    descriptors: dict[str, StateDescriptor] = {
        "value": ValueStateDescriptor("state", Types.LONG()),
        "list": ListStateDescriptor("state", Types.LONG()),
        "map": MapStateDescriptor("state", Types.STRING(), Types.LONG()),
        "reducing": ReducingStateDescriptor("state", lambda a, b: a + b, Types.LONG()),
        "aggregating": AggregatingStateDescriptor("state", Total(), Types.LIST(Types.LONG())),
    }
    if config is not None:
        descriptors[kind].enable_time_to_live(config)
    return descriptors[kind]


class Job:
    """A backend with one state of a kind: `write` makes it hold one number, `read` gives that number or None."""

    def __init__(
        self, kind: str, config: StateTtlConfig | None, clock: ManualClock | None = None, parts: Iterable[Any] = ()
    ) -> None:
        self.kind = kind
        self.clock = clock or ManualClock(START_MS)
        self.backend = HashMapKeyedBackend(GROUPS, range(GROUPS), KeyedStateOptions(clock=self.clock))
        self.backend.restore(parts)
        self.state: Any = getattr(self.backend, f"{kind}_state")(descriptor_of(kind, config))

    def at(self, key: Any) -> Job:
        self.backend.set_current_key(key)
        return self

    def write(self, number: int) -> Job:
        match self.kind:
            case "map":
                self.state.put("field", number)
            case "list":
                self.state.update([number])
            case "value":
                self.state.update(number)
            case _:
                self.state.add(number)
        return self

    def read(self) -> Any:
        match self.kind:
            case "map":
                return self.state.get("field")
            case "list":
                return next(iter(self.state.get()), None)
            case "value":
                return self.state.value()
            case _:
                return self.state.get()

    def after(self, milliseconds: int) -> Job:
        self.clock.advance(milliseconds)
        return self

    def held(self) -> set[Any]:
        """The keys whose entry is still there, expired or not."""
        return set(self.backend.keys())

    def full(self) -> Parts:
        return whole_parts(self.backend)

    def delta(self, snapshot_id: int, since: int | None) -> Parts:
        return list(self.backend.snapshot_delta(snapshot_id, since).encode())

    def checkpoint(self, snapshot_id: int, since: int | None) -> Parts:
        parts = self.delta(snapshot_id, since)
        self.backend.snapshot_completed(snapshot_id)
        return parts


# -- update types and visibility --------------------------------------------------------------------------------------

UPDATES = StateTtlConfig.UpdateType
VISIBILITIES = StateTtlConfig.StateVisibility


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("visibility", VISIBILITIES)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("full_snapshot", [False, True], ids=["", "full-snapshot"])
def test_when_each_kind_expires_and_whether_it_is_seen(
    kind: str,
    visibility: StateTtlConfig.StateVisibility,
    update: StateTtlConfig.UpdateType,
    full_snapshot: bool,
) -> None:
    settings: list[Setting] = [lambda b: b.set_update_type(update).set_state_visibility(visibility)]
    job = Job(kind, ttl(*settings, *[in_full_snapshot] * full_snapshot)).at("k").write(7)
    alive_at_12 = update is not UPDATES.OnCreateAndWrite
    alive_at_30 = update is UPDATES.Disabled
    seen_once = 7 if visibility is VISIBILITIES.ReturnExpiredIfNotCleanedUp else None
    assert job.after(6).read() == 7
    assert job.after(6).read() == (7 if alive_at_12 else seen_once)
    assert job.read() == (7 if alive_at_12 else None), "reading what has expired removes it"
    assert job.after(18).read() == (7 if alive_at_30 else seen_once if alive_at_12 else None)
    assert job.read() == (7 if alive_at_30 else None)
    assert job.held() == ({"k"} if alive_at_30 else set())


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_millisecond(kind: str) -> None:
    job = Job(kind, ttl()).at("k").write(7)
    assert job.after(TTL_MS - 1).read() == 7
    assert job.after(1).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_writing_starts_the_time_anew(kind: str) -> None:
    job = Job(kind, ttl()).at("k").write(1)
    job.after(9).write(1)
    assert job.after(9).read() in (1, 2)
    assert job.after(1).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_keys_expire_by_themselves_and_clear_forgets(kind: str) -> None:
    job = Job(kind, ttl()).at("old").write(1)
    job.after(5).at("young").write(2)
    job.at("cleared").write(3).state.clear()
    job.after(5)
    assert [job.at(key).read() for key in ("old", "young", "cleared")] == [None, 2, None]


@pytest.mark.parametrize(("kind", "added"), [("reducing", 2), ("aggregating", 2)])
def test_adding_to_what_has_expired_begins_anew(kind: str, added: int) -> None:
    job = Job(kind, ttl()).at("k").write(1)
    assert job.after(TTL_MS).write(added).read() == added


@pytest.mark.parametrize("kind", ["reducing", "aggregating"])
def test_what_may_be_returned_is_folded_too(kind: str) -> None:
    job = Job(kind, ttl(expired_too)).at("k").write(1)
    assert job.after(TTL_MS).write(2).read() == 3


def test_none_removes_a_value() -> None:
    job = Job("value", ttl()).at("k").write(1)
    job.state.update(None)
    assert job.read() is None
    assert job.held() == set()


def test_state_without_a_key_is_refused_with_a_time_to_live_too() -> None:
    for kind in KINDS:
        with pytest.raises(StateAccessError, match="belong to the key"):
            Job(kind, ttl(background=True)).read()


# -- lists and maps, inside -------------------------------------------------------------------------------------------


def list_with_ages(*settings: Setting) -> Job:
    """Elements 0, None, 2 written 4 ms apart; the first one has expired."""
    job = Job("list", ttl(*settings)).at("k")
    job.state.add(0)
    job.after(4).state.add_all([None])
    job.after(4).state.add(2)
    return job.after(2)


def test_each_element_of_a_list_expires_by_itself() -> None:
    job = list_with_ages()
    assert job.state.get() == [None, 2]
    assert job.after(4).state.get() == [2]
    assert job.after(4).state.get() == []
    assert job.held() == set()


def test_iterating_over_a_list_reads_it() -> None:
    job = list_with_ages(on_read)
    assert list(job.state) == [None, 2]
    assert list(job.after(8).state) == [None, 2]


def test_expired_elements_are_returned_until_the_last_has_expired() -> None:
    job = list_with_ages(expired_too)
    assert job.state.get() == job.state.get() == [0, None, 2]
    job.after(8)
    assert job.state.get() == [0, None, 2]
    assert job.state.get() == []


def test_reading_a_list_renews_what_lives_and_removes_the_rest() -> None:
    job = list_with_ages(on_read, expired_too)
    assert job.state.get() == [0, None, 2]
    assert job.after(9).state.get() == [None, 2]
    job = list_with_ages(on_read)
    assert job.state.get() == [None, 2]
    assert job.after(9).state.get() == [None, 2]
    assert job.after(10).state.get() == []


def test_a_list_that_never_expires_as_a_whole_does_not_grow_for_ever() -> None:
    job = Job("list", ttl()).at("k")
    for number in range(1000):
        job.after(1).state.add(number)
        assert job.state.get() == list(range(max(0, number - TTL_MS + 1), number + 1))
    assert len(job.backend.row[2]) <= 2 * TTL_MS + 1


def map_with_ages(*settings: Setting) -> Job:
    """Fields a, b (None) and None written 4 ms apart; the first one has expired."""
    job = Job("map", ttl(*settings)).at("k")
    job.state.put("a", 0)
    job.after(4).state.put("b", None)
    job.after(4).state.put_all({None: 2})
    return job.after(2)


@pytest.mark.parametrize("how", ["keys", "values", "items"])
def test_each_entry_of_a_map_expires_by_itself(how: str) -> None:
    job = map_with_ages()
    picks: dict[str, Any] = {"keys": lambda pair: pair[0], "values": lambda pair: pair[1], "items": tuple}
    pick = picks[how]
    assert list(getattr(job.state, how)()) == [pick(pair) for pair in (("b", None), (None, 2))]
    assert list(getattr(job.after(4).state, how)()) == [pick((None, 2))]
    assert list(getattr(job.after(4).state, how)()) == []
    assert job.held() == set()


def test_fields_that_are_none_and_values_that_are_none() -> None:
    job = map_with_ages()
    assert job.state.get("b") is None
    assert job.state.contains("b")
    assert job.state.contains(None)
    assert job.state[None] == 2
    assert not job.state.contains("a")
    assert "b" in job.state
    job.state.remove("b")
    assert not job.state.contains("b")
    assert list(job.state) == [None]


def test_an_expired_entry_is_returned_once() -> None:
    job = map_with_ages(expired_too)
    assert (job.state.contains("a"), job.state.contains("a")) == (True, False)
    job = map_with_ages(expired_too)
    assert (job.state.get("a"), job.state.get("a")) == (0, None)
    job = map_with_ages(expired_too)
    assert (job.state.keys(), job.state.keys()) == (["a", "b", None], ["b", None])


@pytest.mark.parametrize("read", ["get", "contains", "items", "keys", "values"])
def test_every_way_to_read_a_map_renews(read: str) -> None:
    job = map_with_ages(on_read)
    getattr(job.state, read)(*(["b"] if read in ("get", "contains") else []))
    assert job.after(9).state.contains("b")


def test_a_map_of_expired_entries_is_empty_unless_they_may_be_returned() -> None:
    for settings, empty in (((), True), ((expired_too,), False), ((on_read,), True)):
        job = map_with_ages(*settings)
        assert not job.state.is_empty()
        assert job.after(8).state.is_empty() is empty
    job.state.put("a", 1)
    job.state.clear()
    assert job.state.is_empty()


def test_asking_whether_a_map_is_empty_renews_nothing() -> None:
    job = map_with_ages(on_read)
    assert not job.state.is_empty()
    assert job.after(8).state.items() == []


# -- windows that merge ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [(), (expired_too,)], ids=["", "expired-too"])
@pytest.mark.parametrize("kind", ["list", "reducing", "aggregating"])
def test_state_that_merges(kind: str, settings: tuple[Setting, ...]) -> None:
    """As in Flink elements keep their times, folds begin theirs anew."""
    job = Job(kind, ttl(*settings))
    rows = {}
    for pause, key, number in ((0, "expired", 100), (5, "old", 10), (5, "target", 1)):
        rows[key] = job.after(pause).at(key).write(number).backend.row
    merge_state(job.backend, job.state, rows["target"], [rows["expired"], rows["old"]])
    assert job.backend.current_key() == "target"
    assert job.held() == {"target"}
    if kind == "list":
        assert sorted(job.state.get()) == ([1, 10, 100] if settings else [1, 10])
        assert sorted(job.after(5).state.get()) == ([1, 10, 100] if settings else [1])
    else:
        assert job.read() == (111 if settings else 11)
        assert job.after(9).read() == (111 if settings else 11)


# -- clean-up ---------------------------------------------------------------------------------------------------------


def with_expired_keys(kind: str, config: StateTtlConfig, number: int = 20) -> Job:
    job = Job(kind, config)
    for key in range(number):
        job.at(key).write(1)
    return job.after(TTL_MS).at("other")


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
    late = job.backend.value_state(descriptor)
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

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[str, int]]:
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
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
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
    rows_of = HashMapKeyedBackend.rows_of

    def counted(backend: HashMapKeyedBackend, key_group: int) -> list[Row]:
        looks.append(key_group)
        return rows_of(backend, key_group)

    monkeypatch.setattr(HashMapKeyedBackend, "rows_of", counted)
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


# -- snapshots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_expiry_holds_over_a_restore_and_counts_the_time_in_between(kind: str) -> None:
    job = Job(kind, ttl()).at("old").write(1)
    job.after(4).at("young").write(2)
    saved = job.full()
    restored = Job(kind, ttl(), ManualClock(START_MS + 10), saved)
    assert [restored.at(key).read() for key in ("old", "young")] == [None, 2]
    assert restored.after(4).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_renewal_by_reading_is_in_the_delta(kind: str) -> None:
    job = Job(kind, ttl(on_read)).at("k").write(7)
    parts = job.checkpoint(1, None)
    job.after(8).read()
    parts += job.checkpoint(2, 1)
    assert Job(kind, ttl(on_read), ManualClock(START_MS + 17), parts).at("k").read() == 7
    assert Job(kind, ttl(on_read), ManualClock(START_MS + 18), parts).at("k").read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_reading_again_in_the_same_millisecond_changes_nothing(kind: str) -> None:
    job = Job(kind, ttl(on_read)).at("k").write(7)
    job.checkpoint(1, None)
    assert job.read() == 7
    assert job.delta(2, 1) == []
    assert Job(kind, ttl(), job.clock).at("k").write(7).after(1).read() == 7


@pytest.mark.parametrize("kind", KINDS)
def test_reading_does_not_change_state_that_only_writing_renews(kind: str) -> None:
    job = Job(kind, ttl(background=True)).at("k").write(7)
    job.checkpoint(1, None)
    assert job.after(5).read() == 7
    assert job.delta(2, 1) == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_cleanup_removed_is_removed_by_the_delta(kind: str) -> None:
    job = with_expired_keys(kind, ttl(incrementally(100), expired_too), 5)
    parts = job.checkpoint(1, None)
    job.read()
    assert job.held() == set()
    parts += job.checkpoint(2, 1)
    restored = Job(kind, ttl(expired_too), job.clock, parts)
    assert restored.held() == set()
    assert restored.at(1).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_full_snapshots_leave_expired_entries_out_if_asked_to(kind: str) -> None:
    for settings, kept in (((in_full_snapshot,), {"young"}), ((), {"old", "young"})):
        job = Job(kind, ttl(*settings)).at("old").write(1)
        job.after(5).at("young").write(2)
        saved = job.after(5).full()
        assert Job(kind, ttl(), job.clock, saved).held() == kept


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_full_snapshot_left_out_does_not_come_back(kind: str) -> None:
    """Neither from the deltas that follow it, nor from the base before it when the snapshot is aborted (I12)."""
    config = ttl(in_full_snapshot, expired_too)
    for completed in (True, False):
        job = Job(kind, config).at("k").write(1)
        parts = job.checkpoint(1, None)
        job.after(TTL_MS)
        rewritten = job.full()
        job.delta(2, 1)
        job.at("another").write(2)
        if completed:
            parts = rewritten + job.delta(3, 2)
        else:
            job.backend.snapshot_aborted(2)
            parts += job.delta(3, 1)
        restored = Job(kind, config, job.clock, parts)
        assert restored.held() == {"another"}
        assert [restored.at(key).read() for key in ("k", "another")] == [None, 2]


def test_a_list_goes_on_after_a_full_snapshot_that_left_elements_out() -> None:
    config = ttl(in_full_snapshot, expired_too)
    job = Job("list", config).at("k")
    job.state.add(1)
    job.after(5).state.add(2)
    parts = job.after(5).full()
    job.checkpoint(1, None)
    job.state.add(3)
    parts += job.checkpoint(2, 1)
    assert Job("list", config, job.clock, parts).at("k").state.get() == [2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_deltas_stand_on_a_first_checkpoint_that_left_entries_out(kind: str) -> None:
    config = ttl(in_full_snapshot, expired_too)
    job = Job(kind, config).at("gone").write(1)
    job.after(5).at("k").write(2)
    job.after(5)
    parts = [(group.key_group, group.encode()) for group in job.backend.snapshot_whole(1)]
    job.backend.snapshot_completed(1)
    if kind == "list":
        job.state.add(3)
    parts += job.checkpoint(2, 1)
    restored = Job(kind, config, job.clock, parts)
    assert restored.held() == {"k"}
    assert restored.at("k").read() == 2
    job.checkpoint(3, 2)
    assert job.backend.number_of_keys() == 1


def test_mutable_values_are_written_as_they_were_at_the_cut() -> None:
    """I13 holds for values in pairs."""
    job = Job("aggregating", ttl()).at("k").write(1)
    captured = job.backend.snapshot_delta(1, None)
    job.write(5)
    assert Job("aggregating", ttl(), job.clock, list(captured.encode())).at("k").read() == 1
    assert job.read() == 6


# -- a time to live that comes or goes --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_state_that_gets_a_time_to_live_begins_it_at_the_restore(kind: str) -> None:
    saved = Job(kind, None).at("k").write(7).full()
    restored = Job(kind, ttl(), ManualClock(START_MS + 1000), saved)
    assert restored.at("k").read() == 7
    assert restored.after(TTL_MS).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_that_began_at_the_restore_is_in_the_next_delta(kind: str) -> None:
    parts = Job(kind, None).at("k").write(7).full()
    migrated = Job(kind, ttl(), ManualClock(START_MS + 1000), parts)
    parts += migrated.checkpoint(1, None)
    again = Job(kind, ttl(), ManualClock(START_MS + 1000 + TTL_MS), parts)
    assert again.at("k").read() is None
    assert migrated.checkpoint(2, 1) == []


@pytest.mark.parametrize("kind", KINDS)
def test_state_that_loses_its_time_to_live_keeps_its_values(kind: str) -> None:
    saved = Job(kind, ttl()).at("k").write(7).full()
    restored = Job(kind, None, ManualClock(START_MS + 1000), saved)
    assert restored.at("k").read() == 7
    again = Job(kind, ttl(), ManualClock(START_MS + 2000), restored.full())
    assert again.at("k").read() == 7


def test_elements_and_entries_that_are_none_migrate_too() -> None:
    cases: list[tuple[str, Any, Any]] = [
        ("list", lambda state: state.add_all([1, None]), lambda state: state.get()),
        ("map", lambda state: state.put_all({"a": None, None: 1}), lambda state: state.items()),
    ]
    for kind, write, read in cases:
        plain = Job(kind, None).at("k")
        write(plain.state)
        timed = Job(kind, ttl(), plain.clock, plain.full()).at("k")
        assert read(timed.state) == read(plain.state)
        assert read(Job(kind, None, plain.clock, timed.full()).at("k").state) == read(plain.state)


def test_a_delta_with_timestamps_stands_on_a_base_without() -> None:
    plain = Job("list", None).at("k")
    plain.state.add_all([1, 2])
    plain.at("gone").state.add(1)
    parts = plain.checkpoint(1, None)
    plain.state.clear()
    plain.at("k").state.add(3)
    parts += plain.checkpoint(2, 1)
    timed = Job("list", ttl(), ManualClock(START_MS), parts).at("k")
    timed.after(5).state.add(4)
    parts += timed.checkpoint(3, 2)
    assert Job("list", ttl(), ManualClock(START_MS + 10), parts).at("k").state.get() == [4]
    assert Job("list", None, ManualClock(START_MS + 10), parts).at("k").state.get() == [1, 2, 3, 4]


def test_fingerprints_tell_state_with_timestamps_apart() -> None:
    def fingerprints(config: StateTtlConfig | None) -> set[tuple[str, str]]:
        parts = Job("value", config).at("k").write(7).full()
        return {(part.fingerprint, part.type_name) for group, data in parts for part in decode_part(group, data)}

    ((plain, plain_type),) = fingerprints(None)
    assert fingerprints(ttl()) == {(f"ttl:{plain}", f"{plain_type} with time to live")}


@pytest.mark.parametrize("operations", [[7], [[START_MS], []], [["soon"], [7]]])
def test_damaged_timestamps_are_refused_by_name(operations: Any) -> None:
    ((group, data),) = [part for part in Job("value", ttl()).at("k").write(7).full() if decode_part(*part)]
    version, [[*head, good]] = msgspec.msgpack.decode(data)
    assert good == [[START_MS], [7]]
    damaged = msgspec.msgpack.encode([version, [[*head, operations]]])
    with pytest.raises(IncompatibleStateError, match=r"'state', saved as value state of .* with time to live, cannot"):
        Job("value", ttl(), parts=[(group, damaged)])


def test_a_single_value_with_its_timestamp_is_read_back_or_refused() -> None:
    codec = TimedCodec(value_codec_for(Types.LONG()), lambda: 0)
    for timed in ((START_MS, 7), (START_MS, None), (-1, 0)):
        assert codec.decode(codec.encode(timed)) == timed
    with pytest.raises(SerializationError, match="5 bytes are too few"):
        codec.decode(b"short")


# -- registration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_registered_with_one_time_to_live(kind: str) -> None:
    job = Job(kind, ttl())
    register = getattr(job.backend, f"{kind}_state")
    assert register(descriptor_of(kind, ttl())) is job.state
    with pytest.raises(StateAccessError, match=r"'state' is already registered as .* with time to live"):
        register(descriptor_of(kind, None))
    with pytest.raises(StateAccessError, match="'state' is already registered with another time to live"):
        register(descriptor_of(kind, ttl(on_read)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_disabled_time_to_live_is_none_at_all(kind: str) -> None:
    disabled = Job(kind, ttl(lambda builder: builder.set_update_type(UPDATES.Disabled)))
    assert type(disabled.state) is type(Job(kind, None).state)
    assert disabled.at("k").write(7).full() == Job(kind, None).at("k").write(7).full()


def test_operator_state_does_not_expire_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """As in Flink, where a descriptor of operator state keeps its time to live to itself."""
    items, rules = descriptor_of("list", ttl()), MapStateDescriptor("rules", Types.STRING(), Types.LONG())
    rules.enable_time_to_live(ttl())
    with caplog.at_level(logging.WARNING, "rekindle.state"):
        first, second = OperatorStateBackend(0), OperatorStateBackend(1)
        for states in (first, second):
            states.get_list_state(items).add(1)  # type: ignore[arg-type]
            states.get_broadcast_state(rules).put("a", 1)
            assert states.get_list_state(items).get() == [1]  # type: ignore[arg-type]
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "State 'state' has a time to live",
        "State 'rules' has a time to live",
    ]
    restored = OperatorStateBackend(0)
    restored.restore(first.snapshot())
    assert restored.get_broadcast_state(rules).get("a") == 1
