"""Snapshots of keyed state: full ones, deltas, restores and rescaling."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest

from rekindle.common.typeinfo import Types
from rekindle.common.types import Row
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.errors import IncompatibleStateError, RekindleError, SerializationError
from rekindle.key_groups import key_group_range
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.keyed_state_format import (
    CapturedColumn,
    CapturedDelta,
    CapturedLists,
    CapturedMaps,
    CapturedState,
)
from rekindle.serde import value_codec_for
from tests.support.encoded_groups import encoded
from tests.support.whole_state import whole_parts

COUNT = ValueStateDescriptor("count", Types.LONG())
NOTES = ValueStateDescriptor("notes", Types.LIST(Types.STRING()))
ITEMS = ListStateDescriptor("items", Types.STRING())
STOCK = MapStateDescriptor("stock", Types.STRING(), Types.LONG())
GROUPS = 16
Parts = list[tuple[int, bytes]]


class Job:
    """A backend with three states, and its whole content as plain dicts."""

    def __init__(self, parts: Iterable[tuple[int, bytes]] = (), groups: range = range(GROUPS)) -> None:
        self.backend = HashMapKeyedBackend(GROUPS, groups)
        self.backend.restore(parts)
        self.count = keyed_state(self.backend, COUNT)
        self.items = keyed_state(self.backend, ITEMS)
        self.stock = keyed_state(self.backend, STOCK)

    def at(self, key: Any) -> Job:
        self.backend.set_current_key(key)
        return self

    def content(self, keys: Iterable[Any]) -> dict[Any, Any]:
        found = {}
        for key in keys:
            self.at(key)
            state = (self.count.value(), list(self.items.get()), dict(self.stock.items()))
            if state != (None, [], {}):
                found[key] = state
        return found

    def delta(self, snapshot_id: int, since: int | None) -> Parts:
        return list(self.backend.snapshot_delta(snapshot_id, since).encode())

    def full(self) -> Parts:
        return whole_parts(self.backend)


def entries(delta: CapturedDelta) -> dict[str, dict[Any, Any]]:
    """State -> key -> captured operation: a value, (base, elements), or (whether whole, fields with values)."""
    found: dict[str, dict[Any, Any]] = {}
    for group in delta.groups:
        for state in group.states:
            found.setdefault(state.spec.name, {}).update(zip(state.keys, operations(state), strict=True))
    return found


def operations(state: CapturedState) -> list[Any]:
    captured = state.operations
    if isinstance(captured, CapturedLists):
        elements = iter(captured.elements.values)
        lengths = zip(captured.bases, captured.lengths, strict=True)
        return [(base, list(islice(elements, length))) for base, length in lengths]
    if isinstance(captured, CapturedMaps):
        values = iter(captured.values.values)
        removed = set(captured.removed)
        filled_in = [None if place in removed else next(values) for place in range(sum(captured.lengths))]
        pairs = iter(zip(captured.fields.values, filled_in, strict=True))
        lengths = zip(captured.whole, captured.lengths, strict=True)
        return [(whole, list(islice(pairs, length))) for whole, length in lengths]
    assert isinstance(captured, CapturedColumn)
    return captured.values


def filled() -> Job:
    job = Job()
    for key in range(50):
        job.at(key).count.update(key + 1)
        job.items.add_all([str(key), "x"])
        job.stock.put_all({"a": key, "b": None})
    return job


def test_a_full_snapshot_restores() -> None:
    job = filled()
    assert Job(job.full()).content(range(50)) == job.content(range(50))


def test_a_row_as_key_that_has_moved_to_another_key_group_is_refused_not_lost() -> None:
    old = HashMapKeyedBackend(GROUPS, range(GROUPS))
    count = keyed_state(old, COUNT)
    for number in range(20):
        old.set_current_key(Row(str(number)))
        count.update(1)
    named = value_codec_for(Types.ROW_NAMED(["name"], [Types.STRING()]))
    restored = HashMapKeyedBackend(GROUPS, range(GROUPS), key_codec=named)
    restored.restore(whole_parts(old))
    with pytest.raises(IncompatibleStateError, match=r"Key Row\(name='\d+'\) of state 'count' was saved in key group"):
        keyed_state(restored, COUNT)


def test_a_delta_holds_what_changed_and_nothing_else() -> None:
    job = filled()
    job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(3).count.update(0)
    job.at(4).items.add("new")
    job.at(5).stock.put("c", 7)
    job.stock.remove("a")
    job.at(6).stock.clear()
    job.at(7).items.update(["all", "new"])
    job.at(8).count.clear()
    delta = entries(job.backend.snapshot_delta(2, 1))
    assert set(delta) == {"count", "items", "stock"}
    assert delta["count"] == {3: 0, 8: None}
    assert delta["items"] == {4: (2, ["new"]), 7: (-1, ["all", "new"])}
    assert delta["stock"][6] == (True, [])
    assert delta["stock"][5][0] is False
    assert [field for field, _ in delta["stock"][5][1]] == ["c", "a"]


def test_base_and_deltas_restore() -> None:
    job = filled()
    parts = job.delta(1, None)
    job.backend.snapshot_completed(1)
    for number in range(2, 6):
        job.at(number).count.update(number * 100)
        job.items.add("again")
        job.stock.put("a", number)
        job.at(number + 10).count.clear()
        job.items.clear()
        job.stock.clear()
        job.at(number + 20).stock.remove("b")
        parts += job.delta(number, number - 1)
        job.backend.snapshot_completed(number)
    restored = Job(parts)
    assert restored.content(range(50)) == job.content(range(50))
    assert restored.backend.number_of_keys() == job.backend.number_of_keys() == 46


def test_an_empty_delta_costs_nothing() -> None:
    job = filled()
    job.delta(1, None)
    job.backend.snapshot_completed(1)
    assert job.delta(2, 1) == []
    job.content(range(50))
    assert job.delta(3, 2) == []


def test_deltas_stand_on_completed_snapshots_only() -> None:
    job = filled()
    base = job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(1).count.update(100)
    job.delta(2, 1)
    job.at(2).count.update(200)
    third = job.backend.snapshot_delta(3, 1)
    assert entries(third)["count"] == {1: 100, 2: 200}
    job.backend.snapshot_completed(3)
    assert Job(base + list(third.encode())).content(range(50)) == job.content(range(50))
    job.at(3).count.update(300)
    assert entries(job.backend.snapshot_delta(4, 3))["count"] == {3: 300}


def test_an_aborted_snapshot_is_covered_by_the_next() -> None:
    job = filled()
    base = job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(1).items.add("lost")
    job.stock.put("z", 1)
    job.at(2).count.clear()
    job.delta(2, 1)
    job.backend.snapshot_aborted(2)
    job.at(1).items.add("later")
    job.stock.remove("a")
    third = job.backend.snapshot_delta(3, 1)
    assert entries(third)["items"] == {1: (2, ["lost", "later"])}
    assert entries(third)["count"] == {2: None}
    assert Job(base + list(third.encode())).content(range(50)) == job.content(range(50))


def test_an_abort_between_two_pending_snapshots() -> None:
    job = filled()
    base = job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(1).count.update(10)
    job.delta(2, 1)
    job.at(2).count.update(20)
    job.delta(3, 1)
    job.backend.snapshot_aborted(2)
    job.backend.snapshot_aborted(3)
    job.at(3).count.update(30)
    fourth = job.backend.snapshot_delta(4, 1)
    assert entries(fourth)["count"] == {1: 10, 2: 20, 3: 30}
    assert Job(base + list(fourth.encode())).content(range(50)) == job.content(range(50))


def test_aborts_for_ever_do_not_accumulate() -> None:
    job = filled()
    job.delta(1, None)
    for number in range(2, 50):
        for key in range(50):
            job.at(key).count.update(number)
            job.stock.put("a", number)
        delta = job.backend.snapshot_delta(number, None)
        assert sum(len(state.keys) for group in delta.groups for state in group.states) == 150
        job.backend.snapshot_aborted(number)
    assert len(job.backend._changes._sealed) <= 2
    assert sum(1 for s in job.backend._changes._sealed for _ in s.rows()) <= 300


def test_removed_keys_stay_until_their_removal_is_durable() -> None:
    job = filled()
    base = job.delta(1, None)
    job.backend.snapshot_completed(1)
    for key in range(50):
        job.at(key).count.clear()
        job.items.clear()
        job.stock.clear()
    delta = job.delta(2, 1)
    assert job.backend.number_of_keys() == 50
    job.backend.snapshot_completed(2)
    assert job.backend.number_of_keys() == 0
    assert Job(base + delta).backend.number_of_keys() == 0


def test_what_changed_after_a_pending_first_snapshot_outlives_later_whole_ones() -> None:
    """The first snapshot may complete, and become a base, after a savepoint and an aborted snapshot."""
    job = filled()
    first = encoded(job.backend.snapshot_whole(1))
    job.at(1).items.add("before the savepoint")
    job.backend.snapshot_aside(2)
    job.at(2).count.update(20)
    job.backend.snapshot_whole(3)
    job.backend.snapshot_aborted(3)
    job.at(3).stock.put("z", 1)
    fourth = job.backend.snapshot_delta(4, 1)
    assert set(entries(fourth)["items"]) == {1}
    assert set(entries(fourth)["count"]) == {2}
    assert Job(first + list(fourth.encode())).content(range(50)) == job.content(range(50))


def test_a_key_removed_again_after_the_cut_is_kept_for_the_next_delta() -> None:
    job = Job()
    job.at("k").count.update(1)
    first = job.delta(1, None)
    job.count.clear()
    job.backend.snapshot_completed(1)
    assert job.backend.number_of_keys() == 1
    second = job.delta(2, 1)
    assert Job(first + second).content(["k"]) == {}
    job.backend.snapshot_completed(2)
    assert job.backend.number_of_keys() == 0


def test_a_removal_in_a_pending_snapshot_outlives_the_completion_of_an_older_one() -> None:
    job = filled()
    base = job.delta(1, None)
    job.at(1).count.clear()
    job.items.clear()
    job.stock.clear()
    job.delta(2, None)
    job.backend.snapshot_completed(1)
    assert job.backend.number_of_keys() == 50
    job.backend.snapshot_aborted(2)
    third = job.delta(3, 1)
    assert Job(base + third).content(range(50)) == job.content(range(50))
    job.backend.snapshot_completed(3)
    assert job.backend.number_of_keys() == 49


def test_an_append_and_then_a_replacement_is_a_replacement() -> None:
    job = filled()
    base = job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(1).items.add("appended")
    job.items.update(["replaced", "by", "this"])
    job.at(2).stock.put("c", 1)
    job.stock.clear()
    job.stock.put("d", 2)
    job.at(3).items.add("appended")
    job.items.clear()
    job.items.add("again")
    delta = job.backend.snapshot_delta(2, 1)
    assert entries(delta)["items"] == {1: (-1, ["replaced", "by", "this"]), 3: (-1, ["again"])}
    assert entries(delta)["stock"] == {2: (True, [("d", 2)])}
    assert Job(base + list(delta.encode())).content(range(50)) == job.content(range(50))


def test_full_snapshots_do_not_reset_changes() -> None:
    job = filled()
    job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(1).count.update(5)
    job.stock.put("q", 1)
    job.backend.snapshot_aside(2)
    delta = entries(job.backend.snapshot_delta(3, 1))
    assert delta == {"count": {1: 5}, "stock": {1: (False, [("q", 1)])}}


def test_a_few_key_groups_can_be_rewritten_at_a_time() -> None:
    job = filled()
    some = job.backend.snapshot_delta(1, None, [3, 4]).whole
    assert [group.key_group for group in some] == [3, 4]
    rest = [part for part in job.full() if part[0] not in (3, 4)]
    both = rest + encoded(some)
    assert Job(both).content(range(50)) == job.content(range(50))


@pytest.mark.parametrize("parallelism", [2, 3, 16])
def test_rescaling_takes_each_key_once(parallelism: int) -> None:
    job = filled()
    parts = job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(5).count.update(500)
    parts += job.delta(2, 1)
    found: dict[Any, Any] = {}
    for subtask in range(parallelism):
        owned = key_group_range(GROUPS, parallelism, subtask)
        part = Job(parts, owned)
        mine = [key for key in range(50) if part.backend._key_group_of(key) in owned]
        assert part.backend.number_of_keys() == len(mine)
        found |= part.content(mine)
    assert found == job.content(range(50))


def test_what_changes_after_the_cut_is_not_in_the_snapshot() -> None:
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    notes, items, stock = keyed_state(backend, NOTES), keyed_state(backend, ITEMS), keyed_state(backend, STOCK)
    backend.set_current_key("k")
    notes.update(["before"])
    items.add("before")
    stock.put("before", 1)
    delta, full = backend.snapshot_delta(1, None), backend.snapshot_aside(2)
    notes.value().append("after")  # type: ignore[union-attr]
    items.add("after")
    stock.put("after", 2)
    for parts in (list(delta.encode()), encoded(full)):
        restored = HashMapKeyedBackend(GROUPS, range(GROUPS))
        restored.restore(parts)
        restored.set_current_key("k")
        assert keyed_state(restored, NOTES).value() == ["before"]
        assert list(keyed_state(restored, ITEMS).get()) == ["before"]
        assert dict(keyed_state(restored, STOCK).items()) == {"before": 1}


def test_immutable_values_are_referenced_not_encoded_at_the_cut() -> None:
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    count = keyed_state(backend, COUNT)
    backend.set_current_key("k")
    count.update(12345678901)
    assert entries(backend.snapshot_delta(1, None))["count"]["k"] is count.value()


def test_state_that_nobody_registers_is_carried_along() -> None:
    job = filled()
    parts = job.full()
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    backend.restore(parts)
    count = keyed_state(backend, COUNT)
    backend.set_current_key(1)
    count.update(1000)
    again = Job(whole_parts(backend))
    expected = job.content(range(50))
    expected[1] = (1000, *expected[1][1:])
    assert again.content(range(50)) == expected


def test_a_state_registered_while_a_key_is_set_holds_what_was_restored() -> None:
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    backend.restore(filled().full())
    backend.set_current_key(1)
    assert keyed_state(backend, COUNT).value() == 2
    assert list(keyed_state(backend, ITEMS).get()) == ["1", "x"]
    keyed_state(backend, COUNT).update(3)
    assert dict(keyed_state(backend, STOCK).items()) == {"a": 1, "b": None}
    assert keyed_state(backend, COUNT).value() == 3
    assert entries(backend.snapshot_delta(1, None)) == {"count": {1: 3}}


def test_a_key_emptied_before_a_late_registration_is_still_removed_by_the_delta() -> None:
    old = Job()
    old.at("k").count.update(1)
    old.stock.put("x", 1)
    base = old.delta(1, None)
    old.backend.snapshot_completed(1)
    old.stock.remove("x")
    base += old.delta(2, 1)
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    backend.restore(base)
    count = keyed_state(backend, COUNT)
    backend.set_current_key("k")
    count.clear()
    stock = keyed_state(backend, STOCK)
    assert stock.is_empty()
    delta = list(backend.snapshot_delta(3, 2).encode())
    backend.snapshot_completed(3)
    assert backend.number_of_keys() == 0
    assert Job(base + delta).content(["k"]) == {}


def test_another_kind_under_a_restored_name_is_refused() -> None:
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    backend.restore(filled().full())
    with pytest.raises(IncompatibleStateError, match="'count' was saved as value state"):
        keyed_state(backend, ListStateDescriptor("count", Types.LONG()))


def test_another_type_that_cannot_read_the_bytes_is_refused() -> None:
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    backend.restore(filled().full())
    with pytest.raises(IncompatibleStateError, match="State 'count'"):
        keyed_state(backend, ValueStateDescriptor("count", Types.LIST(Types.STRING())))


def test_a_missing_delta_is_noticed() -> None:
    job = filled()
    base = job.delta(1, None)
    job.backend.snapshot_completed(1)
    job.at(1).items.add("a")
    job.delta(2, 1)
    job.backend.snapshot_completed(2)
    job.at(1).items.add("b")
    with pytest.raises(IncompatibleStateError, match="appends to 3 elements"):
        Job(base + job.delta(3, 2))


def test_damaged_parts_are_refused() -> None:
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS))
    with pytest.raises(SerializationError, match="key group 3 is damaged"):
        backend.restore([(3, b"\x93nonsense")])


def test_snapshot_ids_grow() -> None:
    job = filled()
    job.delta(5, None)
    with pytest.raises(RekindleError, match="after snapshot 5"):
        job.delta(4, None)


def test_forgetting_changes_begins_anew() -> None:
    job = filled()
    job.backend.forget_changes()
    job.at(1).count.update(7)
    job.stock.put("n", 1)
    assert entries(job.backend.snapshot_delta(1, None)) == {"count": {1: 7}, "stock": {1: (False, [("n", 1)])}}


def test_entries_that_come_and_go_do_not_outgrow_the_map() -> None:
    job = Job()
    job.at("k").stock.put("keep", 1)
    job.delta(1, None)
    job.backend.snapshot_completed(1)
    for number in range(10_000):
        job.stock.put(str(number), number)
        job.stock.remove(str(number))
    assert entries(job.backend.snapshot_delta(2, 1))["stock"] == {"k": (True, [("keep", 1)])}


def test_any_allowed_key_comes_back() -> None:
    from datetime import UTC, datetime
    from decimal import Decimal
    from uuid import UUID

    from rekindle.common.types import Row

    keys: list[Any] = [
        None,
        1,
        2**80,
        0.5,
        "text",
        b"bytes",
        ("a", (1, None)),
        datetime(2024, 1, 1, tzinfo=UTC),
        Decimal("1.25"),
        UUID(int=5),
        Row(a=1),
    ]
    job = Job()
    for key in keys:
        job.at(key).count.update(1)
    restored = Job(job.full())
    assert restored.content(keys) == job.content(keys)
    assert restored.backend.number_of_keys() == len(keys)
