"""The contract of keyed state backends and of their timers, as tests: run them on a backend of your own (I12, I13).

A subclass in your tests makes the backend; pytest finds the tests:

    class TestMyBackend(StateBackendContract):
        @pytest.fixture
        def new_backend(self):
            return MyBackend
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from rekindle.common import Time, Types
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.errors import InvalidKeyError, StateAccessError
from rekindle.key_groups import key_group_range
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.keyed_backends import KeyedOperatorShape
from rekindle.runtime.state.keyed_state_format import GroupCapture
from rekindle.runtime.state.row_columns import ValueColumn
from rekindle.runtime.state.spec import list_spec, value_spec
from rekindle.serde import value_codec_for
from rekindle.testing.manual_clock import ManualClock

#: (key group, part), as a checkpoint keeps them.
Parts = list[tuple[int, bytes]]
#: key -> state -> value
Content = dict[Any, dict[str, Any]]

_GROUPS = 8
_TTL_MS = 1000


class NewBackend(Protocol):
    """Makes a backend without state."""

    def __call__(self, shape: KeyedOperatorShape, options: KeyedStateOptions, /) -> KeyedStateBackend:
        """`shape`: of the operator whose state it is."""


class _Total(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [accumulator[0] + value]

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0]]


class _Operator:
    """A backend with a state of each kind, as the functions of an operator use it."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self.backend = backend
        self.value = keyed_state(backend, ValueStateDescriptor("value", Types.STRING()))
        self.list = keyed_state(backend, ListStateDescriptor("list", Types.LONG()))
        self.map = keyed_state(backend, MapStateDescriptor("map", Types.STRING(), Types.LONG()))
        self.sum = keyed_state(backend, ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))
        self.total = keyed_state(backend, AggregatingStateDescriptor("total", _Total(), Types.LIST(Types.LONG())))

    def at(self, key: Any) -> _Operator:
        self.backend.set_current_key(key)
        return self

    def fill(self, keys: Iterable[Any], number: int) -> _Operator:
        """Write each state of each key."""
        for key in keys:
            self.at(key)
            self.value.update(f"{key}/{number}")
            self.list.add(number)
            self.map.put("last", number)
            self.map.put(f"entry {number}", number)
            self.sum.add(number)
            self.total.add(number)
        return self

    def clear(self, keys: Iterable[Any]) -> _Operator:
        """Remove every state of each key."""
        for key in keys:
            self.at(key)
            for state in (self.value, self.list, self.map, self.sum, self.total):
                state.clear()
        return self

    def held(self) -> dict[str, Any]:
        """The values of the current key."""
        found = {
            "value": self.value.value(),
            "list": list(self.list.get()) or None,
            "map": dict(self.map.items()) or None,
            "sum": self.sum.get(),
            "total": self.total.get(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def content(self) -> Content:
        return {key: self.at(key).held() for key in list(self.backend.keys())}

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def whole(self, snapshot_id: int) -> Parts:
        return _encoded(self.backend.snapshot_whole(snapshot_id))

    def delta(self, snapshot_id: int, since: int, whole: Iterable[int] = ()) -> Parts:
        delta = self.backend.snapshot_delta(snapshot_id, since, whole)
        return [*_encoded(delta.whole), *delta.encode()]


class _Windows:
    """A backend with a value and a list in any row, as window operators use it."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self.backend = backend
        self._last = ValueColumn(backend, value_spec(ValueStateDescriptor("last", Types.LONG()), False))
        backend.register(list_spec(ListStateDescriptor("all", Types.LONG()), False), self._handle_at)

    def _handle_at(self, place: int) -> ListState[Any]:
        self._all = self.backend.list_column(place)
        return self.backend.list_handle(place)

    def add(self, key: Any, number: int) -> None:
        self._last.set(self.backend.load_row(key), number)
        self._all.append(self.backend.load_row(key), number)

    def remove(self, key: Any) -> None:
        row = self.backend.load_row(key)
        self._last.remove(row)
        self._all.remove(row)
        assert not self._all.present(row)

    def held(self, key: Any) -> tuple[list[int], int]:
        row = self.backend.load_row(key)
        return list(self._all.get(row)), self._last.get(row)

    def whole(self, snapshot_id: int) -> Parts:
        return _encoded(self.backend.snapshot_whole(snapshot_id))


def _encoded(groups: Iterable[GroupCapture]) -> Parts:
    parts = ((group.key_group, group.encode()) for group in groups)
    return [(group, part if isinstance(part, bytes) else b"".join(part)) for group, part in parts]


@dataclass(frozen=True)
class _Maker:
    """Makes the backends of one test."""

    new_backend: NewBackend
    clock: ManualClock

    def backend(self, key_groups: range | None = None, parts: Parts | None = None, **shape: Any) -> KeyedStateBackend:
        whole = KeyedOperatorShape(_GROUPS, range(_GROUPS), value_codec_for(None, allow_pickle=False))
        own = whole if key_groups is None else replace(whole, key_groups=key_groups)
        backend = self.new_backend(replace(own, **shape), KeyedStateOptions(allow_pickle=False, clock=self.clock))
        if parts is not None:
            backend.restore(parts)
        return backend

    def operator(self, key_groups: range | None = None, parts: Parts | None = None) -> _Operator:
        return _Operator(self.backend(key_groups, parts))


def _maker(new_backend: NewBackend) -> _Maker:
    return _Maker(new_backend, ManualClock(1_700_000_000_000))


def _refuses(call: Callable[[], object], kind: type[Exception]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


class StateBackendContract:
    """The contract of `rekindle.runtime.state.backend.KeyedStateBackend`.

    The fixture `new_backend` makes a backend of a `KeyedOperatorShape` and `KeyedStateOptions`.

    >>> from rekindle.runtime.state.keyed_backends import KeyedBackends
    >>> from rekindle.graph.settings import StateBackendSettings
    >>> StateBackendContract().test_a_value_is_its_keys(KeyedBackends(StateBackendSettings("hashmap", 0), "").create)
    """

    #: The keys of most tests.
    KEYS: ClassVar[list[str]] = [f"key {number}" for number in range(40)]
    #: More keys than a backend on disk should hold in memory.
    MANY_KEYS: ClassVar[int] = 3000

    # -- handles -------------------------------------------------------------------------------------------------------

    def test_a_value_is_its_keys(self, new_backend: NewBackend) -> None:
        """Each key has its own value; None and `clear` remove it."""
        backend = _maker(new_backend).backend()
        state = keyed_state(backend, ValueStateDescriptor("value", Types.LONG()))
        for number, key in enumerate(self.KEYS):
            backend.set_current_key(key)
            assert state.value() is None
            state.update(number)
        for number, key in enumerate(self.KEYS):
            backend.set_current_key(key)
            assert (backend.current_key(), state.value()) == (key, number)
            state.update(None) if number % 2 else state.clear()
            assert state.value() is None

    def test_a_list_keeps_its_order(self, new_backend: NewBackend) -> None:
        """Elements come in the order in which they were added; an empty update clears."""
        operator = _maker(new_backend).operator().at("a")
        operator.list.add(3)
        operator.list.add_all([1, 2])
        operator.list.add(3)
        assert list(operator.list.get()) == [3, 1, 2, 3]
        operator.list.update([9, 8])
        operator.list.add(7)
        assert list(operator.list.get()) == [9, 8, 7]
        operator.list.update([])
        assert list(operator.list.get()) == []
        assert list(operator.at("b").list.get()) == []

    def test_a_map_has_entries(self, new_backend: NewBackend) -> None:
        """Entries are put, replaced and removed one by one; the map may change while it is iterated."""
        entries = _maker(new_backend).operator().at("a").map
        entries.put("x", 1)
        entries.put_all({"y": 2, "z": 3})
        entries.put("x", 4)
        entries.remove("y")
        entries.remove("nothing")
        assert (entries.get("x"), entries.get("y"), entries.contains("z"), entries.contains("y")) == (
            4,
            None,
            True,
            False,
        )
        assert dict(entries.items()) == {"x": 4, "z": 3}
        for key in entries.keys():  # noqa: SIM118 (a state is no dict)
            entries.remove(key)
        assert entries.is_empty()

    def test_values_are_combined(self, new_backend: NewBackend) -> None:
        """Reducing and aggregating state combine what is added, per key."""
        operator = _maker(new_backend).operator()
        for number in range(1, 5):
            operator.fill(self.KEYS[:number], number)
        sums = [operator.at(key).held().get("sum") for key in self.KEYS[:5]]
        assert sums == [10, 9, 7, 4, None]
        assert [operator.at(key).held().get("total") for key in self.KEYS[:5]] == sums

    def test_states_have_names(self, new_backend: NewBackend) -> None:
        """States of different names are apart; a name gives the same handle again, and not one of another kind."""
        operator = _maker(new_backend).operator().at("a")
        operator.value.update("x")
        other = keyed_state(operator.backend, ValueStateDescriptor("another", Types.STRING()))
        assert other.value() is None
        other.update("y")
        assert operator.value.value() == "x"
        assert keyed_state(operator.backend, ValueStateDescriptor("value", Types.STRING())) is operator.value
        wrong = ListStateDescriptor("value", Types.STRING())
        assert _refuses(lambda: keyed_state(operator.backend, wrong), StateAccessError)

    def test_many_keys_do_not_touch_each_other(self, new_backend: NewBackend) -> None:
        """Keys that a cache forgets have their values when they come again, read ahead or not."""
        operator = _maker(new_backend).operator()
        keys = [f"key {number}" for number in range(self.MANY_KEYS)]
        for turn in range(2):
            for begin in range(0, len(keys), 500):
                operator.backend.prefetch(keys[begin : begin + 500])
                operator.fill(keys[begin : begin + 500], turn)
        expected = {"list": [0, 1], "map": {"last": 1, "entry 0": 0, "entry 1": 1}, "sum": 1, "total": 1}
        assert all(operator.at(key).held() == {"value": f"{key}/1", **expected} for key in keys)
        assert sum(operator.backend.keys_per_group().values()) == len(keys)

    def test_state_needs_a_key_of_its_own(self, new_backend: NewBackend) -> None:
        """There is no state without a current key, nor for a key of another subtask."""
        operator = _maker(new_backend).operator(key_groups=range(_GROUPS // 2))
        assert _refuses(operator.value.value, StateAccessError)
        foreign = next(key for key in self.KEYS if key_group(key, _GROUPS) >= _GROUPS // 2)
        assert _refuses(lambda: operator.at(foreign), InvalidKeyError)
        own = next(key for key in self.KEYS if key_group(key, _GROUPS) < _GROUPS // 2)
        operator.at(own)
        operator.backend.clear_current_key()
        assert _refuses(lambda: operator.value.update("x"), StateAccessError)

    # -- keys ----------------------------------------------------------------------------------------------------------

    def test_keys_are_those_with_state(self, new_backend: NewBackend) -> None:
        """A key that was only read, or cleared, has no state; the state may change on the way."""
        operator = _maker(new_backend).operator().fill(self.KEYS, 1)
        operator.at("only read").held()
        operator.clear(self.KEYS[:5])
        operator.at(self.KEYS[5]).value.clear()
        assert sorted(operator.backend.keys()) == sorted(self.KEYS[5:])
        assert sorted(operator.backend.keys_with("value")) == sorted(self.KEYS[6:])
        for key in operator.backend.keys():  # noqa: SIM118 (a backend is no dict)
            operator.clear([key])
        assert list(operator.backend.keys()) == []

    def test_visits_end_where_they_began(self, new_backend: NewBackend) -> None:
        """After a visit of other keys the former one is current, or none."""
        operator = _maker(new_backend).operator().fill(self.KEYS, 1)
        operator.at("key 3")
        with operator.backend.visiting_keys():
            operator.clear(self.KEYS)
        assert operator.backend.current_key() == "key 3"
        assert operator.held() == {}

    def test_rows_are_of_their_key_group(self, new_backend: NewBackend) -> None:
        """The rows of a key group are those of its keys."""
        operator = _maker(new_backend).operator().fill(self.KEYS, 1)
        for group in range(_GROUPS):
            keys = sorted(row[0] for row in operator.backend.rows_of(group))
            assert keys == sorted(key for key in self.KEYS if key_group(key, _GROUPS) == group)

    def test_namespaces_are_apart(self, new_backend: NewBackend) -> None:
        """Rows of (key, window) are apart, and lie in the key group of the key."""
        maker = _maker(new_backend)
        by_key: dict[str, Any] = {"key_group_of": lambda pair: key_group(pair[0], _GROUPS)}
        backend = maker.backend(**by_key)
        operator = _Operator(backend)
        for window in ((0, 10), (10, 20)):
            operator.fill([(key, window) for key in self.KEYS], window[0])
        parts = operator.whole(1)
        assert {group for group, _ in parts} <= set(range(_GROUPS))
        own = range(_GROUPS // 2)
        restored = _Operator(maker.backend(own, parts, **by_key))
        expected = [(key, window) for key in self.KEYS for window in ((0, 10), (10, 20))]
        assert sorted(restored.content()) == sorted(pair for pair in expected if key_group(pair[0], _GROUPS) in own)
        assert all(held["sum"] == window[0] for (_, window), held in restored.content().items())

    def test_windows_write_any_row(self, new_backend: NewBackend) -> None:
        """The columns of windows write rows of any key; deltas hold what they write and remove."""
        maker = _maker(new_backend)
        operator = _Windows(maker.backend())
        for number, key in enumerate(self.KEYS):
            operator.add(key, number)
        parts = operator.whole(1)
        operator.backend.snapshot_completed(1)
        for key in self.KEYS[:10]:
            operator.add(key, 1)
        for key in self.KEYS[5:15]:
            operator.remove(key)
        delta = operator.backend.snapshot_delta(2, 1)
        restored = _Windows(maker.backend(parts=[*parts, *delta.encode()]))
        kept = {key: number for number, key in enumerate(self.KEYS) if number not in range(5, 15)}
        expected = {key: ([number, 1] if number < 5 else [number]) for key, number in kept.items()}
        found = {key: restored.held(key) for key in list(restored.backend.keys())}
        assert found == {key: (elements, elements[-1]) for key, elements in expected.items()}

    def test_an_index_is_by_key(self, new_backend: NewBackend) -> None:
        """An index keeps values by key, apart from other indexes and from state."""
        backend = _maker(new_backend).backend()
        index, other = backend.new_index(), backend.new_index()
        for number in range(self.MANY_KEYS):
            index.put(f"key {number}", {"number": number})
        index.put("key 0", None)
        assert [index.get("key 0"), index.get("key 1"), other.get("key 1")] == [None, {"number": 1}, None]
        assert list(backend.keys()) == []

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def test_a_whole_snapshot_restores(self, new_backend: NewBackend) -> None:
        """Everything is in it, as it was at the cut: later changes are not."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        expected = operator.content()
        captured = operator.backend.snapshot_whole(1)
        operator.fill(self.KEYS[:20], 2).clear(self.KEYS[10:30])
        assert maker.operator(parts=_encoded(captured)).content() == expected

    def test_deltas_hold_what_changed(self, new_backend: NewBackend) -> None:
        """A base with its deltas restores the content of each cut: written, changed and removed."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        parts = operator.whole(1)
        whole_bytes = sum(len(data) for _, data in parts)
        for number, change in enumerate(_CHANGES, start=2):
            operator.backend.snapshot_completed(number - 1)
            change(operator, self.KEYS)
            delta = operator.delta(number, number - 1)
            assert sum(len(data) for _, data in delta) < whole_bytes
            parts += delta
            assert maker.operator(parts=parts).content() == operator.content(), f"after change {number - 1}"

    def test_a_delta_is_of_its_cut(self, new_backend: NewBackend) -> None:
        """Changes between the cut and the encoding are in the next delta, not in this one."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        parts = operator.whole(1)
        operator.backend.snapshot_completed(1)
        operator.fill(self.KEYS[:10], 2)
        expected = operator.content()
        delta = operator.backend.snapshot_delta(2, 1)
        operator.fill(self.KEYS[5:15], 3).clear(self.KEYS[:3])
        parts += delta.encode()
        assert maker.operator(parts=parts).content() == expected
        operator.backend.snapshot_completed(2)
        parts += operator.delta(3, 2)
        assert maker.operator(parts=parts).content() == operator.content()

    def test_deltas_build_on_completed_snapshots(self, new_backend: NewBackend) -> None:
        """The changes of snapshots that were aborted, or are not complete, are in the next delta as well."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        parts = operator.whole(1)
        operator.backend.snapshot_completed(1)
        operator.fill(self.KEYS[:5], 2).clear(self.KEYS[5:8])
        operator.delta(2, 1)
        operator.backend.snapshot_aborted(2)
        operator.fill(self.KEYS[8:12], 3)
        operator.delta(3, 1)
        operator.fill(self.KEYS[12:15], 4).clear(self.KEYS[8:9])
        parts += operator.delta(4, 1)
        assert maker.operator(parts=parts).content() == operator.content()

    def test_some_key_groups_are_written_whole(self, new_backend: NewBackend) -> None:
        """A key group in `whole` is restored from its new part alone, the others from all their parts."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        parts = operator.whole(1)
        operator.backend.snapshot_completed(1)
        operator.fill(self.KEYS[:20], 2).clear(self.KEYS[10:15])
        rewritten = {1, 2, 5}
        parts = [(group, data) for group, data in parts if group not in rewritten]
        parts += operator.delta(2, 1, whole=sorted(rewritten))
        assert maker.operator(parts=parts).content() == operator.content()

    def test_a_savepoint_changes_no_delta(self, new_backend: NewBackend) -> None:
        """A snapshot aside holds everything; the next delta is as if it had not been taken."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        parts = operator.whole(1)
        operator.backend.snapshot_completed(1)
        operator.fill(self.KEYS[:5], 2).clear(self.KEYS[5:8])
        aside = _encoded(operator.backend.snapshot_aside(2))
        assert maker.operator(parts=aside).content() == operator.content()
        operator.fill(self.KEYS[8:10], 3)
        parts += operator.delta(3, 1)
        assert maker.operator(parts=parts).content() == operator.content()

    # -- restore -------------------------------------------------------------------------------------------------------

    def test_a_restore_takes_its_own_key_groups(self, new_backend: NewBackend) -> None:
        """Each subtask of another parallelism gets all parts, and takes those of its key groups."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        parts = operator.whole(1)
        operator.backend.snapshot_completed(1)
        parts += operator.fill(self.KEYS[:10], 2).clear(self.KEYS[10:15]).delta(2, 1)
        expected = operator.content()
        for parallelism in (1, 2, 3):
            found: Content = {}
            again: Parts = []
            for subtask in range(parallelism):
                own = key_group_range(_GROUPS, parallelism, subtask)
                restored = maker.operator(own, parts)
                content = restored.content()
                assert all(key_group(key, _GROUPS) in own for key in content), f"foreign keys at {parallelism}"
                found |= content
                written = restored.whole(1)
                assert {group for group, _ in written} <= set(own), f"foreign key groups at {parallelism}"
                again += written
            assert found == expected
            assert maker.operator(parts=again).content() == expected

    def test_a_restore_can_be_repeated(self, new_backend: NewBackend) -> None:
        """The same parts restore the same content again; a restored backend goes on with deltas."""
        maker = _maker(new_backend)
        parts = maker.operator().fill(self.KEYS, 1).whole(1)
        for _ in range(2):
            operator = maker.operator(parts=parts)
            operator.fill(self.KEYS[:10], 2).clear(self.KEYS[8:12])
            delta = operator.delta(2, 1)
            assert maker.operator(parts=parts + delta).content() == operator.content()

    def test_unregistered_state_is_carried_along(self, new_backend: NewBackend) -> None:
        """A restored state that nothing asks for is in whole snapshots, and in a later restore."""
        maker = _maker(new_backend)
        operator = maker.operator().fill(self.KEYS, 1)
        backend = maker.backend(parts=operator.whole(1))
        value = keyed_state(backend, ValueStateDescriptor("value", Types.STRING()))
        assert sorted(backend.unclaimed_names()) == ["list", "map", "sum", "total"]
        backend.set_current_key(self.KEYS[0])
        value.update(None)
        operator.at(self.KEYS[0]).value.clear()
        again = maker.operator(parts=_encoded(backend.snapshot_whole(2)))
        assert again.content() == operator.content()

    # -- time to live --------------------------------------------------------------------------------------------------

    def test_values_expire(self, new_backend: NewBackend) -> None:
        """A value is gone after its time, also if that passed while the job was down."""
        maker = _maker(new_backend)
        backend = maker.backend()
        state = keyed_state(backend, _expiring())
        for key in ("early", "late"):
            backend.set_current_key(key)
            state.update(1)
            maker.clock.advance(_TTL_MS // 2)
        restored = maker.backend(parts=_encoded(backend.snapshot_whole(1)))
        state = keyed_state(restored, _expiring())
        found = []
        for key in ("early", "late"):
            restored.set_current_key(key)
            found.append(state.value())
        assert found == [None, 1]

    def test_full_snapshots_leave_expired_values_out(self, new_backend: NewBackend) -> None:
        """`cleanup_full_snapshot`: a key group that is written whole has no expired values."""
        maker = _maker(new_backend)
        backend = maker.backend()
        state = keyed_state(backend, _expiring())
        for key in self.KEYS:
            backend.set_current_key(key)
            state.update(1)
        maker.clock.advance(2 * _TTL_MS)
        restored = maker.backend(parts=_encoded(backend.snapshot_whole(1)))
        keyed_state(restored, _expiring())
        assert list(restored.keys()) == []


def _expiring() -> ValueStateDescriptor:
    descriptor = ValueStateDescriptor("expiring", Types.LONG())
    config = StateTtlConfig.new_builder(Time.milliseconds(_TTL_MS)).cleanup_full_snapshot().build()
    descriptor.enable_time_to_live(config)
    return descriptor


def _change_values(operator: _Operator, keys: list[str]) -> None:
    operator.fill(keys[:5], 2)
    operator.fill(["new"], 2)


def _remove_values(operator: _Operator, keys: list[str]) -> None:
    operator.clear(keys[3:8])
    operator.at(keys[8]).value.clear()


def _change_inside(operator: _Operator, keys: list[str]) -> None:
    operator.at(keys[9]).map.remove("last")
    operator.map.put("entry 1", 5)
    operator.list.update([7])
    operator.list.add(8)
    operator.at(keys[10]).map.put("more", 6)
    operator.list.add(9)


def _bring_back(operator: _Operator, keys: list[str]) -> None:
    operator.fill(keys[3:5], 3)
    operator.clear(["new"])


#: One after the other, a snapshot after each.
_CHANGES: tuple[Callable[[_Operator, list[str]], None], ...] = (
    _change_values,
    _remove_values,
    _change_inside,
    _bring_back,
    lambda operator, keys: None,
)
