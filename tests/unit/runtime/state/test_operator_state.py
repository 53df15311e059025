"""Operator state: split lists, union lists and broadcast state."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.checkpoint.redistribute import broadcast_share, operator_share, split_share, union_share
from rekindle.common.typeinfo import Types
from rekindle.common.types import Row
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor
from rekindle.errors import IncompatibleStateError, SerializationError, StateAccessError
from rekindle.runtime.state.operator_state import OperatorStateBackend

BUFFER = ListStateDescriptor("buffer", Types.STRING())
OFFSETS = ListStateDescriptor("offsets", Types.TUPLE([Types.INT(), Types.LONG()]))
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LIST(Types.STRING()))


def restored(part: bytes, subtask: int = 0) -> OperatorStateBackend:
    backend = OperatorStateBackend(subtask)
    backend.restore(part)
    return backend


def test_list_state() -> None:
    buffer = OperatorStateBackend().get_list_state(BUFFER)
    assert list(buffer.get()) == []
    buffer.add("a")
    buffer.add_all(["b", "c"])
    for element in buffer.get():
        buffer.add(element)
    assert list(buffer.get()) == ["a", "b", "c", "a", "b", "c"]
    buffer.update(["z"])
    assert list(buffer.get()) == ["z"]
    buffer.clear()
    assert list(buffer.get()) == []


def test_a_list_is_iterated_as_what_get_gives() -> None:
    backend = OperatorStateBackend()
    for state in (backend.get_list_state(BUFFER), backend.get_union_list_state(OFFSETS)):
        state.add_all([("a", 1), ("b", 2)])
        assert [letter for letter, _ in state] == ["a", "b"]


def test_broadcast_state_and_its_read_only_view() -> None:
    backend = OperatorStateBackend()
    rules, view = backend.get_broadcast_state(RULES), backend.get_read_only_broadcast_state(RULES)
    assert view.is_empty()
    rules.put("a", ["x"])
    rules.put_all({"b": ["y"], "c": ["z"]})
    rules.remove("c")
    rules.remove("never there")
    assert dict(view.items()) == {"a": ["x"], "b": ["y"]}
    assert list(view.keys()) == ["a", "b"]
    assert list(view.values()) == [["x"], ["y"]]
    assert view.contains("a")
    assert view.get("c") is None
    for key in view:
        rules.remove(key)
    assert view.is_empty()


def test_rows_have_the_names_of_their_type() -> None:
    backend = OperatorStateBackend()
    listed = backend.get_list_state(ListStateDescriptor("rows", Types.ROW([Types.STRING(), Types.LONG()])))
    listed.add(Row("a", 1))
    listed.add_all([("b", 2)])
    assert [row.f0 for row in listed] == ["a", "b"]
    listed.update([Row(f1=3, f0="c")])
    assert repr(listed.get()) == "[Row(f0='c', f1=3)]"
    descriptor = MapStateDescriptor("rules", Types.ROW_NAMED(["x"], [Types.LONG()]), Types.ROW([Types.LONG()]))
    rules, seen = backend.get_broadcast_state(descriptor), backend.get_read_only_broadcast_state(descriptor)
    rules.put(Row(1), Row(10))
    rules.put_all({Row(x=2): (20,)})
    assert repr(seen.items()) == "[(Row(x=1), Row(f0=10)), (Row(x=2), Row(f0=20))]"
    rule = seen.get((2,))
    assert rule is not None
    assert rule.f0 == 20
    assert Row(1) in seen
    rules.remove(Row(1))
    assert list(seen) == [Row(x=2)]


@pytest.mark.parametrize(
    "use",
    [lambda s: s.clear(), lambda s: s.put("a", []), lambda s: s.put_all({}), lambda s: s.remove("a")],
)
def test_the_read_only_view_refuses_changes(use: Any) -> None:
    view = OperatorStateBackend().get_read_only_broadcast_state(RULES)
    with pytest.raises(StateAccessError, match="'rules' is read-only here"):
        use(view)


def test_names_are_unique() -> None:
    backend = OperatorStateBackend()
    assert backend.get_list_state(BUFFER) is backend.get_list_state(BUFFER)
    with pytest.raises(StateAccessError, match="'buffer' is already registered as split state"):
        backend.get_union_list_state(BUFFER)
    with pytest.raises(StateAccessError, match="'buffer' is already registered"):
        backend.get_list_state(ListStateDescriptor("buffer", Types.LONG()))


def test_snapshot_and_restore() -> None:
    backend = OperatorStateBackend()
    backend.get_list_state(BUFFER).update(["a", None, "b"])
    backend.get_union_list_state(OFFSETS).add((0, 5))
    rules = backend.get_broadcast_state(RULES)
    rules.put("r", ["x"])
    part = backend.snapshot()
    rules.get("r").append("after the cut")  # type: ignore[union-attr]
    again = restored(part)
    assert list(again.get_list_state(BUFFER).get()) == ["a", None, "b"]
    assert list(again.get_union_list_state(OFFSETS).get()) == [(0, 5)]
    assert dict(again.get_broadcast_state(RULES).items()) == {"r": ["x"]}


def test_what_nobody_registers_is_carried_along() -> None:
    backend = OperatorStateBackend()
    backend.get_list_state(BUFFER).add("a")
    backend.get_union_list_state(OFFSETS).add((0, 5))
    part = backend.snapshot()
    carried = operator_share([restored(part, subtask).snapshot() for subtask in range(2)], 1, 0)
    assert list(restored(carried).get_list_state(BUFFER).get()) == ["a", "a"]
    assert list(restored(carried).get_union_list_state(OFFSETS).get()) == [(0, 5)]


def test_another_distribution_than_the_saved_one_is_refused() -> None:
    backend = OperatorStateBackend()
    backend.get_list_state(BUFFER).add("a")
    with pytest.raises(IncompatibleStateError, match="was saved as split state"):
        restored(backend.snapshot()).get_union_list_state(BUFFER)


def test_damaged_state_is_refused() -> None:
    with pytest.raises(SerializationError, match="damaged"):
        OperatorStateBackend().restore(b"\x92nonsense")


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_split_deals_every_element_once_and_evenly(parallelism: int) -> None:
    lists = [["a", "b", "c", "d"], [], ["e", "f", "g"]]
    dealt = [split_share(lists, parallelism, subtask) for subtask in range(parallelism)]
    assert len(dealt) == parallelism
    assert sorted(element for elements in dealt for element in elements) == list("abcdefg")
    if parallelism == 3:
        assert dealt == lists
    else:
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_union_and_broadcast() -> None:
    assert union_share([[1], [2, 3]]) == [1, 2, 3]
    assert [broadcast_share([[1, 2], [1, 2]], subtask) for subtask in range(3)] == [[1, 2]] * 3


@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_whole_parts_are_redistributed(parallelism: int) -> None:
    parts = []
    for subtask in range(2):
        backend = OperatorStateBackend(subtask)
        backend.get_list_state(BUFFER).update([f"{subtask}-{i}" for i in range(3)])
        backend.get_union_list_state(OFFSETS).update([(subtask, 10)])
        backend.get_broadcast_state(RULES).put("r", ["x"])
        parts.append(backend.snapshot())
    again = [restored(operator_share(parts, parallelism, subtask), subtask) for subtask in range(parallelism)]
    assert len(again) == parallelism
    buffers = [list(backend.get_list_state(BUFFER).get()) for backend in again]
    assert sorted(element for elements in buffers for element in elements) == [
        f"{subtask}-{i}" for subtask in range(2) for i in range(3)
    ]
    for backend in again:
        assert list(backend.get_union_list_state(OFFSETS).get()) == [(0, 10), (1, 10)]
        assert dict(backend.get_broadcast_state(RULES).items()) == {"r": ["x"]}
