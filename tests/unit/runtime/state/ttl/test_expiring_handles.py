"""Time to live of each kind of state: update types, visibility, elements of lists, entries of maps, merging."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rekindle.common import Types
from rekindle.datastream.state import MapStateDescriptor, StateTtlConfig
from rekindle.errors import StateAccessError
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.merge_state import merge_state
from rekindle.runtime.state.operator_state import OperatorStateBackend
from tests.unit.runtime.state.ttl.ttl_job import (
    KINDS,
    TTL_MS,
    Job,
    Setting,
    descriptor_of,
    expired_too,
    in_full_snapshot,
    list_with_ages,
    map_with_ages,
    on_read,
    ttl,
)

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


# -- registration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_registered_with_one_time_to_live(kind: str) -> None:
    job = Job(kind, ttl())
    assert keyed_state(job.backend, descriptor_of(kind, ttl())) is job.state
    with pytest.raises(StateAccessError, match=r"'state' is already registered as .* with time to live"):
        keyed_state(job.backend, descriptor_of(kind, None))
    with pytest.raises(StateAccessError, match="'state' is already registered with another time to live"):
        keyed_state(job.backend, descriptor_of(kind, ttl(on_read)))


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
