"""Base and completed deltas restore exactly the state at the cut (I12), after any writes, aborts and completions."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rekindle.common.typeinfo import Types
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rekindle.key_groups import key_group_range
from rekindle.runtime.state.described_states import keyed_state
from tests.property.collect import Collect
from tests.support.keyed_backends import BACKENDS
from tests.support.whole_state import whole_parts

GROUPS = 8
# Few of each, so that runs of a few dozen steps meet the same key and field again and again.
KEYS: list[Any] = [("a", 1), 7]
FIELDS: list[Any] = [None, "x"]
Parts = list[tuple[int, bytes]]
# state -> key -> contents
Model = dict[str, dict[Any, Any]]

keys = st.sampled_from(KEYS)
fields = st.sampled_from(FIELDS)
numbers = st.integers(-5, 5)
some_numbers = st.lists(numbers, max_size=3)
operations = st.one_of(
    st.tuples(st.just("update_value"), some_numbers | st.none()),
    st.tuples(st.just("change_value_in_place"), numbers),
    st.tuples(st.just("add_to_list"), numbers),
    st.tuples(st.just("add_all_to_list"), some_numbers),
    st.tuples(st.just("update_list"), some_numbers),
    st.tuples(st.just("put"), st.tuples(fields, numbers | st.none())),
    st.tuples(st.just("remove"), fields),
    st.tuples(st.just("add"), numbers),
    st.tuples(st.just("clear"), st.sampled_from(["value", "list", "map", "sum", "collected"])),
)


class Backend:
    """A backend with one state of each kind."""

    def __init__(self, kind: str, parts: Parts, groups: range = range(GROUPS)) -> None:
        self.keyed = BACKENDS[kind](GROUPS, groups)
        self.keyed.restore(parts)
        self.value = keyed_state(self.keyed, ValueStateDescriptor("value", Types.LIST(Types.LONG())))
        self.list = keyed_state(self.keyed, ListStateDescriptor("list", Types.LONG()))
        self.map = keyed_state(self.keyed, MapStateDescriptor("map", Types.STRING(), Types.LONG()))
        self.sum = keyed_state(self.keyed, ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))
        self.collected = keyed_state(
            self.keyed, AggregatingStateDescriptor("collected", Collect(), Types.LIST(Types.LONG()))
        )

    def content(self, only: list[Any] | None = None) -> Model:
        model: Model = {"value": {}, "list": {}, "map": {}, "sum": {}, "collected": {}}
        for key in KEYS if only is None else only:
            self.keyed.set_current_key(key)
            found = {
                "value": copy.copy(self.value.value()),
                "list": list(self.list.get()) or None,
                "map": dict(self.map.items()) or None,
                "sum": self.sum.get(),
                "collected": self.collected.get(),
            }
            for state, held in found.items():
                if held is not None:
                    model[state][key] = held
        return model


class Snapshots(RuleBasedStateMachine):
    kind = "hashmap"
    restored_kind = "hashmap"

    @initialize()
    def start(self) -> None:
        self.backend = Backend(self.kind, [])
        self.model: Model = {"value": {}, "list": {}, "map": {}, "sum": {}, "collected": {}}
        self.next_id = 1
        self.completed: int | None = None
        # The contents of the store: the chain of parts of each snapshot, and the model at its cut.
        self.chains: dict[int | None, Parts] = {None: []}
        self.models: dict[int | None, Model] = {None: copy.deepcopy(self.model)}
        self.pending: list[int] = []

    # ------------------------------------------------------------------------------------------------------ writes

    @rule(key=keys, operations=st.lists(operations, min_size=1, max_size=3))
    def write(self, key: Any, operations: list[tuple[str, Any]]) -> None:
        self.backend.keyed.set_current_key(key)
        for name, argument in operations:
            getattr(self, f"_{name}")(key, argument)

    @rule(key=keys)
    def empty(self, key: Any) -> None:
        self.backend.keyed.set_current_key(key)
        for state in self.model:
            self._clear(key, state)

    def _update_value(self, key: Any, given: list[int] | None) -> None:
        self.backend.value.update(given)  # type: ignore[arg-type]
        self._set("value", key, None if given is None else list(given))

    def _change_value_in_place(self, key: Any, number: int) -> None:
        held = self.backend.value.value()
        if held is not None:
            held.append(number)
            self.backend.value.update(held)
            self.model["value"][key] = list(held)

    def _add_to_list(self, key: Any, number: int) -> None:
        self.backend.list.add(number)
        self.model["list"].setdefault(key, []).append(number)

    def _add_all_to_list(self, key: Any, given: list[int]) -> None:
        self.backend.list.add_all(given)
        self._set("list", key, [*self.model["list"].get(key, []), *given] or None)

    def _update_list(self, key: Any, given: list[int]) -> None:
        self.backend.list.update(given)
        self._set("list", key, list(given) or None)

    def _put(self, key: Any, entry: tuple[Any, int | None]) -> None:
        field, number = entry
        self.backend.map.put(field, number)
        self.model["map"].setdefault(key, {})[field] = number

    def _remove(self, key: Any, field: Any) -> None:
        self.backend.map.remove(field)
        held = self.model["map"].get(key, {})
        held.pop(field, None)
        self._set("map", key, held or None)

    def _add(self, key: Any, number: int) -> None:
        self.backend.sum.add(number)
        self.backend.collected.add(number)
        self.model["sum"][key] = self.model["sum"].get(key, 0) + number
        self.model["collected"][key] = (*self.model["collected"].get(key, ()), number)

    def _clear(self, key: Any, state: str) -> None:
        getattr(self.backend, state).clear()
        self.model[state].pop(key, None)

    def _set(self, state: str, key: Any, held: Any) -> None:
        if held is None:
            self.model[state].pop(key, None)
        else:
            self.model[state][key] = held

    # --------------------------------------------------------------------------------------------------- snapshots

    @rule(key=keys, operations=st.lists(operations, max_size=2))
    def snapshot(self, key: Any, operations: list[tuple[str, Any]]) -> None:
        """Make a cut; processing goes on before the snapshot is encoded."""
        number, self.next_id = self.next_id, self.next_id + 1
        self.models[number] = copy.deepcopy(self.model)
        delta = self.backend.keyed.snapshot_delta(number, self.completed)
        self.write(key, operations)
        self.chains[number] = self.chains[self.completed] + list(delta.encode())
        self.pending.append(number)

    @rule()
    def checkpoint(self) -> None:
        self.snapshot(KEYS[0], [])
        self._complete(self.pending[-1], True)

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2), notified=st.booleans())
    def complete(self, place: int, notified: bool) -> None:
        self._complete(self.pending[place % len(self.pending)], notified)

    def _complete(self, number: int, notified: bool) -> None:
        self.pending = [later for later in self.pending if later > number]
        self.completed = number
        # The notification is best effort: the next trigger names the completed checkpoint, too.
        if notified:
            self.backend.keyed.snapshot_completed(number)
        assert Backend(self.restored_kind, self.chains[number]).content() == self.models[number]

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2))
    def abort(self, place: int) -> None:
        self.backend.keyed.snapshot_aborted(self.pending.pop(place % len(self.pending)))

    @rule(parallelism=st.integers(1, GROUPS))
    def savepoint_and_restart(self, parallelism: int) -> None:
        savepoint = whole_parts(self.backend.keyed)
        assert self._rescaled(savepoint, parallelism) == self.model
        self.kind, self.restored_kind = self.restored_kind, self.kind
        self.backend = Backend(self.kind, self.chains[self.completed])
        self.model = copy.deepcopy(self.models[self.completed])
        self.pending = []
        assert self._rescaled(self.chains[self.completed], parallelism) == self.model

    def _rescaled(self, parts: Parts, parallelism: int) -> Model:
        merged: Model = {"value": {}, "list": {}, "map": {}, "sum": {}, "collected": {}}
        for subtask in range(parallelism):
            owned = key_group_range(GROUPS, parallelism, subtask)
            part = Backend(self.restored_kind, parts, owned)
            mine = [key for key in KEYS if part.keyed._key_group_of(key) in owned]
            for state, held in part.content(mine).items():
                assert not merged[state].keys() & held.keys()
                merged[state] |= held
        return merged

    @invariant()
    def live_state_is_the_model(self) -> None:
        assert self.backend.content() == self.model


class SnapshotsInRocksDB(Snapshots):
    """Restored in memory, and the other way round."""

    kind = "rocksdb"


class SnapshotsWithoutCache(Snapshots):
    """Every row leaves the cache at once."""

    kind = restored_kind = "rocksdb without cache"


Snapshots.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
SnapshotsInRocksDB.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
SnapshotsWithoutCache.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSnapshots = Snapshots.TestCase
TestSnapshotsInRocksDB = SnapshotsInRocksDB.TestCase
TestSnapshotsWithoutCache = SnapshotsWithoutCache.TestCase
