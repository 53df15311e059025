"""Handles of keyed state: value, list, map, reducing and aggregating state per key."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common.typeinfo import Types
from rekindle.common.types import Row
from rekindle.datastream.functions import AggregateFunction, ReduceFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rekindle.errors import InvalidKeyError, StateAccessError
from rekindle.key_groups import key_group_range
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state import hashmap
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from tests.support.whole_state import whole_parts

COUNT = ValueStateDescriptor("count", Types.LONG())
ITEMS = ListStateDescriptor("items", Types.STRING())
STOCK = MapStateDescriptor("stock", Types.STRING(), Types.LONG())


class Sum(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class Average(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


SUM = ReducingStateDescriptor("sum", Sum(), Types.LONG())
AVERAGE = AggregatingStateDescriptor("average", Average(), Types.TUPLE([Types.LONG(), Types.LONG()]))


@pytest.fixture(params=[True, False], ids=["tracked", "untracked"])
def backend(request: pytest.FixtureRequest) -> HashMapKeyedBackend:
    return HashMapKeyedBackend(128, range(128), KeyedStateOptions(track_changes=request.param))


def test_it_is_a_keyed_backend(backend: HashMapKeyedBackend) -> None:
    port: KeyedStateBackend = backend
    assert port.key_groups == range(128)


def test_value_state_is_per_key(backend: HashMapKeyedBackend) -> None:
    count = keyed_state(backend, COUNT)
    for key in ("a", "b", "a"):
        backend.set_current_key(key)
        count.update((count.value() or 0) + 1)
    assert backend.current_key() == "a"
    assert count.value() == 2
    backend.set_current_key("b")
    assert count.value() == 1
    count.clear()
    assert count.value() is None
    backend.set_current_key("a")
    count.update(None)
    assert count.value() is None


def test_list_state(backend: HashMapKeyedBackend) -> None:
    items = keyed_state(backend, ITEMS)
    backend.set_current_key("a")
    assert list(items.get()) == []
    items.add("x")
    items.add_all(["y", "z"])
    items.add_all([])
    assert list(items.get()) == ["x", "y", "z"]
    given = ["q"]
    items.update(given)
    given.append("r")
    assert list(items.get()) == ["q"]
    for item in items.get():
        items.add(item + item)
    assert list(items.get()) == ["q", "qq"]
    items.update([])
    assert list(items.get()) == []
    items.add_all(["1"])
    items.clear()
    assert list(items.get()) == []


def test_a_list_is_iterated_as_what_get_gives(backend: HashMapKeyedBackend) -> None:
    items = keyed_state(backend, ITEMS)
    backend.set_current_key("a")
    assert list(items) == []
    items.add_all(["x", "y"])
    for item in items:
        items.add(item)  # of what was there when the loop began
    assert list(items) == list(items.get()) == ["x", "y", "x", "y"]
    assert "y" in items


def test_map_state(backend: HashMapKeyedBackend) -> None:
    stock = keyed_state(backend, STOCK)
    backend.set_current_key("a")
    assert stock.is_empty()
    assert list(stock.items()) == []
    assert stock.get("x") is None
    stock.remove("x")
    stock.put("x", 1)
    stock.put_all({"y": 2, "z": None})
    assert stock.contains("z")
    assert stock.get("z") is None
    assert not stock.contains("w")
    assert list(stock.keys()) == ["x", "y", "z"]
    assert list(stock.values()) == [1, 2, None]
    assert dict(stock.items()) == {"x": 1, "y": 2, "z": None}
    assert not stock.is_empty()
    backend.set_current_key("b")
    assert stock.is_empty()
    backend.set_current_key("a")
    stock.clear()
    assert stock.is_empty()
    assert list(stock.keys()) == []


def test_none_is_a_field_like_any_other(backend: HashMapKeyedBackend) -> None:
    stock = keyed_state(backend, STOCK)
    backend.set_current_key(None)
    stock.put(None, 7)
    assert stock.contains(None)
    assert stock.get(None) == 7
    stock.remove(None)
    assert stock.is_empty()


@pytest.mark.parametrize("view", ["keys", "items", "values"])
def test_a_map_may_be_changed_while_it_is_iterated(backend: HashMapKeyedBackend, view: str) -> None:
    stock = keyed_state(backend, STOCK)
    backend.set_current_key("a")
    stock.put_all({str(i): i for i in range(100)})
    for entry in getattr(stock, view)():
        key = entry if view == "keys" else entry[0] if view == "items" else str(entry)
        stock.remove(key)
        stock.put(f"new {key}", 0)
    assert sorted(stock.keys()) == sorted(f"new {i}" for i in range(100))


def test_reducing_state(backend: HashMapKeyedBackend) -> None:
    total = keyed_state(backend, SUM)
    backend.set_current_key("a")
    assert total.get() is None
    total.add(1)
    total.add(2)
    assert total.get() == 3
    backend.set_current_key("b")
    assert total.get() is None
    backend.set_current_key("a")
    total.clear()
    assert total.get() is None


def test_aggregating_state(backend: HashMapKeyedBackend) -> None:
    average = keyed_state(backend, AVERAGE)
    backend.set_current_key("a")
    assert average.get() is None
    average.add(1)
    average.add(2)
    assert average.get() == 1.5
    average.clear()
    assert average.get() is None


def test_several_states_of_one_operator_do_not_touch_each_other(backend: HashMapKeyedBackend) -> None:
    count, items = keyed_state(backend, COUNT), keyed_state(backend, ITEMS)
    stock, total = keyed_state(backend, STOCK), keyed_state(backend, SUM)
    backend.set_current_key(1)
    count.update(5)
    items.add("x")
    stock.put("s", 1)
    total.add(3)
    items.clear()
    assert (count.value(), list(items.get()), dict(stock.items()), total.get()) == (5, [], {"s": 1}, 3)


def test_a_state_registered_late_finds_its_place_in_every_row(backend: HashMapKeyedBackend) -> None:
    count = keyed_state(backend, COUNT)
    backend.set_current_key("a")
    count.update(1)
    backend.set_current_key("b")
    items = keyed_state(backend, ITEMS)
    items.add("x")
    backend.set_current_key("a")
    assert list(items.get()) == []
    items.add("y")
    assert count.value() == 1
    backend.set_current_key("b")
    assert list(items.get()) == ["x"]
    assert count.value() is None


def test_the_same_name_gives_the_same_handle(backend: HashMapKeyedBackend) -> None:
    assert keyed_state(backend, COUNT) is keyed_state(backend, ValueStateDescriptor("count", Types.LONG()))


@pytest.mark.parametrize("other", [ListStateDescriptor("count", Types.LONG()), ValueStateDescriptor("count", str)])
def test_the_same_name_for_another_kind_or_type_is_refused(backend: HashMapKeyedBackend, other: Any) -> None:
    keyed_state(backend, COUNT)
    with pytest.raises(StateAccessError, match="'count' is already registered as value state"):
        keyed_state(backend, other)


def test_state_without_a_key_is_refused(backend: HashMapKeyedBackend) -> None:
    count, items = keyed_state(backend, COUNT), keyed_state(backend, ITEMS)
    stock, total, average = keyed_state(backend, STOCK), keyed_state(backend, SUM), keyed_state(backend, AVERAGE)
    uses: list[Any] = [
        count.value,
        lambda: count.update(1),
        count.clear,
        items.get,
        lambda: items.add("x"),
        lambda: items.update(["x"]),
        items.clear,
        lambda: stock.get("x"),
        lambda: stock.put("x", 1),
        stock.keys,
        stock.is_empty,
        total.get,
        lambda: total.add(1),
        average.get,
        lambda: average.add(1),
        backend.current_key,
    ]
    for use in uses:
        with pytest.raises(StateAccessError, match="there is none here"):
            use()
    backend.set_current_key("a")
    count.update(1)
    backend.clear_current_key()
    with pytest.raises(StateAccessError):
        count.value()


def test_equal_keys_share_state(backend: HashMapKeyedBackend) -> None:
    count = keyed_state(backend, COUNT)
    backend.set_current_key(1)
    count.update(7)
    for key in (1.0, True):
        backend.set_current_key(key)
        assert count.value() == 7


def test_a_row_as_key_may_be_changed_by_its_owner(backend: HashMapKeyedBackend) -> None:
    count = keyed_state(backend, COUNT)
    key = Row(user="a")
    backend.set_current_key(key)
    count.update(1)
    key["user"] = "b"
    backend.set_current_key(Row(user="a"))
    assert count.value() == 1
    assert backend.current_key() == Row(user="a")


def test_reading_leaves_nothing_behind(backend: HashMapKeyedBackend) -> None:
    count, items, stock = keyed_state(backend, COUNT), keyed_state(backend, ITEMS), keyed_state(backend, STOCK)
    for key in range(1000):
        backend.set_current_key(key)
        assert count.value() is None
        assert not list(items.get())
        assert stock.is_empty()
        count.clear()
        items.clear()
        stock.clear()
        stock.remove("x")
    assert backend.number_of_keys() == 0


def test_cleared_keys_are_purged_and_can_come_back(backend: HashMapKeyedBackend) -> None:
    count, stock = keyed_state(backend, COUNT), keyed_state(backend, STOCK)
    for key in range(100):
        backend.set_current_key(key)
        count.update(key)
        stock.put("x", key)
    for key in range(99):
        backend.set_current_key(key)
        count.clear()
        if key % 2:
            stock.remove("x")
    backend.forget_changes()
    assert backend.number_of_keys() == 100 - 49
    # The current key's row was purged below its handle.
    backend.set_current_key(97)
    count.update(1)
    count.clear()
    backend.forget_changes()
    count.update(5)
    stock.put("y", 6)
    backend.set_current_key(1)
    assert count.value() is None
    backend.set_current_key(97)
    assert count.value() == 5
    assert dict(stock.items()) == {"y": 6}
    assert backend.number_of_keys() == 100 - 49 + 1


def test_keys_are_those_that_have_state_and_may_be_changed_on_the_way(backend: HashMapKeyedBackend) -> None:
    count = keyed_state(backend, COUNT)
    for key in range(20):
        backend.set_current_key(key)
        count.update(key)
    backend.set_current_key(7)
    count.clear()
    backend.set_current_key("only read")
    found = []
    keys_with_state = backend.keys()
    for key in keys_with_state:
        backend.set_current_key(key)
        found.append(key)
        count.clear()
        backend.forget_changes()
    assert sorted(found) == [key for key in range(20) if key != 7]
    assert found == sorted(found, key=lambda key: key_group(key, 128))
    assert list(backend.keys()) == []


def test_the_front_is_bounded_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashmap, "_FRONT_ENTRIES", 10)
    backend = HashMapKeyedBackend(128, range(128))
    count = keyed_state(backend, COUNT)
    for round_ in range(3):
        for key in range(100):
            backend.set_current_key(key)
            assert count.value() == (round_ or None)
            count.update(round_ + 1)
            assert len(backend.front) <= 10
    assert backend.number_of_keys() == 100


def test_a_key_of_another_subtask_is_refused() -> None:
    owned = key_group_range(128, 2, 0)
    backend = HashMapKeyedBackend(128, owned)
    strangers = [key for key in range(100) if key_group(key, 128) not in owned]
    with pytest.raises(InvalidKeyError, match=r"this subtask owns 0 to 63"):
        backend.set_current_key(strangers[0])


def test_compound_keys_belong_to_the_key_group_of_their_key() -> None:
    windows = HashMapKeyedBackend(128, range(128), key_group_of=lambda pair: key_group(pair[0], 128))
    total = keyed_state(windows, SUM)
    for window in ((0, 10), (10, 20), (0, 10)):
        windows.set_current_key(("user", window))
        total.add(1)
    assert total.get() == 2
    assert {group for group, _ in whole_parts(windows)} == {key_group("user", 128)}


def test_a_failing_reduce_changes_nothing(backend: HashMapKeyedBackend) -> None:
    def fail(one: int, other: int) -> int:
        raise ValueError("no")

    total = keyed_state(backend, ReducingStateDescriptor("failing", fail, Types.LONG()))
    backend.set_current_key("a")
    total.add(1)
    with pytest.raises(ValueError, match="no"):
        total.add(2)
    assert total.get() == 1
