"""State with a time to live equals a brute-force model, after any operations, at any time, and over restores.

The model keeps (last access, value) pairs in plain dicts and follows Flink's rules one by one. Where clean-up is large
enough to see every entry at each access, the model knows exactly when expired values are removed; where it is not,
expired values are not returned, so that the difference does not show.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rekindle.common import Time
from rekindle.common.typeinfo import Types
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.change_tracking import ROW_COLUMNS
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.testing import ManualClock
from tests.property.collect import Collect
from tests.support.whole_state import whole_parts

GROUPS = 4
TTL_MS = 8
STATES = ["value", "list", "map", "sum", "collected"]
# Few of each, so that runs of a few dozen steps meet the same key and field again and again.
KEYS: list[Any] = [("a", 1), 7, "z"]
FIELDS: list[Any] = [None, "x", "y"]
EVERYTHING = 1000
Parts = list[tuple[int, bytes]]
# state -> key -> pair, list of pairs or dict of pairs
Model = dict[str, dict[Any, Any]]

numbers = st.integers(-5, 5)
fields = st.sampled_from(FIELDS)
#: The operations of each state; both folds change together.
OPERATIONS: dict[str, st.SearchStrategy[tuple[str, Any]]] = {
    "value": st.one_of(
        st.tuples(st.just("update_value"), numbers | st.none()),
        st.tuples(st.just("read_value"), st.none()),
        st.tuples(st.just("clear"), st.just("value")),
    ),
    "list": st.one_of(
        st.tuples(st.just("add_to_list"), numbers | st.none()),
        st.tuples(st.just("add_all_to_list"), st.lists(numbers, max_size=3)),
        st.tuples(st.just("update_list"), st.lists(numbers, max_size=3)),
        st.tuples(st.just("read_list"), st.none()),
        st.tuples(st.just("clear"), st.just("list")),
    ),
    "map": st.one_of(
        st.tuples(st.just("put"), st.tuples(fields, numbers | st.none())),
        st.tuples(st.just("put_all"), st.dictionaries(fields, numbers)),
        st.tuples(st.just("remove"), fields),
        st.tuples(st.just("read_field"), fields),
        st.tuples(st.just("contains"), fields),
        st.tuples(st.just("read_map"), st.sampled_from(["items", "keys", "values"])),
        st.tuples(st.just("is_empty"), st.none()),
        st.tuples(st.just("clear"), st.just("map")),
    ),
    "folds": st.one_of(
        st.tuples(st.just("add"), numbers),
        st.tuples(st.just("read_folds"), st.none()),
        st.tuples(st.just("clear"), st.sampled_from(["sum", "collected"])),
    ),
}


def descriptors(config: StateTtlConfig) -> dict[str, StateDescriptor]:
    made: dict[str, StateDescriptor] = {
        "value": ValueStateDescriptor("value", Types.LONG()),
        "list": ListStateDescriptor("list", Types.LONG()),
        "map": MapStateDescriptor("map", Types.STRING(), Types.LONG()),
        "sum": ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()),
        "collected": AggregatingStateDescriptor("collected", Collect(), Types.LIST(Types.LONG())),
    }
    for descriptor in made.values():
        descriptor.enable_time_to_live(config)
    return made


class Backend:
    """A backend with one state of each kind."""

    def __init__(self, config: StateTtlConfig, clock: ManualClock, parts: Parts) -> None:
        self.keyed = HashMapKeyedBackend(GROUPS, range(GROUPS), KeyedStateOptions(clock=clock))
        self.keyed.restore(parts)
        made: Any = descriptors(config)
        self.value = keyed_state(self.keyed, made["value"])
        self.list: Any = keyed_state(self.keyed, made["list"])
        self.map: Any = keyed_state(self.keyed, made["map"])
        self.sum = keyed_state(self.keyed, made["sum"])
        self.collected = keyed_state(self.keyed, made["collected"])

    def stored(self) -> Model:
        """The stored values, expired or not."""
        found: Model = {state: {} for state in STATES}
        for group in range(GROUPS):
            for row in self.keyed.rows_of(group):
                for state, held in zip(STATES, row[ROW_COLUMNS::2], strict=True):
                    if held is not None:
                        found[state][row[0]] = copy.deepcopy(held)
        return found


class TimeToLive(RuleBasedStateMachine):
    @initialize(
        state=st.sampled_from(list(OPERATIONS)),
        on_read=st.booleans(),
        returns_expired=st.booleans(),
        cleanup=st.sampled_from(["none", "small", "at access", "every record"]),
        full_snapshot=st.booleans(),
    )
    def start(self, state: str, on_read: bool, returns_expired: bool, cleanup: str, full_snapshot: bool) -> None:
        # One at a time: so a run of a few dozen steps gets somewhere.
        self.operations = st.lists(OPERATIONS[state], min_size=1, max_size=3)
        self.on_read = on_read
        self.returns_expired = returns_expired and cleanup != "small"
        self.cleanup = cleanup
        self.full_snapshot = full_snapshot
        builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).disable_cleanup_in_background()
        if on_read:
            builder.update_ttl_on_read_and_write()
        if self.returns_expired:
            builder.return_expired_if_not_cleaned_up()
        if full_snapshot:
            builder.cleanup_full_snapshot()
        if cleanup != "none":
            builder.cleanup_incrementally(1 if cleanup == "small" else EVERYTHING, cleanup == "every record")
        self.config = builder.build()
        self.clock = ManualClock(1_000_000)
        self.backend = Backend(self.config, self.clock, [])
        self.model: Model = {state: {} for state in STATES}
        self.next_id = 1
        self.completed: int | None = None
        # The contents of the store: the chain of parts of each snapshot, and the model at its cut.
        self.chains: dict[int | None, Parts] = {None: []}
        self.models: dict[int | None, Model] = {None: copy.deepcopy(self.model)}
        self.pending: list[int] = []

    # ------------------------------------------------------------------------------------------------------- rules

    @rule(milliseconds=st.integers(1, TTL_MS + 1))
    def wait(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def work(self, key: Any, data: st.DataObject) -> None:
        self.backend.keyed.set_current_key(key)
        if self.cleanup == "every record":
            for state in STATES:
                self._drop_expired(state)
        for name, argument in data.draw(self.operations):
            getattr(self, f"_{name}")(key, argument)

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def snapshot(self, key: Any, data: st.DataObject) -> None:
        """Make a cut; processing goes on before the snapshot is encoded."""
        number, self.next_id = self.next_id, self.next_id + 1
        self.models[number] = copy.deepcopy(self.model)
        delta = self.backend.keyed.snapshot_delta(number, self.completed)
        self.work(key, data)
        self.chains[number] = self.chains[self.completed] + list(delta.encode())
        self.pending.append(number)

    @rule()
    def rewritten_whole(self) -> None:
        """A checkpoint of full parts, as each key group gets one from time to time."""
        number, self.next_id = self.next_id, self.next_id + 1
        full = whole_parts(self.backend.keyed)
        self._after_full_snapshot()
        self.backend.keyed.snapshot_delta(number, self.completed)
        self.models[number] = copy.deepcopy(self.model)
        self.chains[number] = full
        self.pending.append(number)

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2), notified=st.booleans())
    def complete(self, place: int, notified: bool) -> None:
        self._complete(self.pending[place % len(self.pending)], notified)

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def checkpoint(self, key: Any, data: st.DataObject) -> None:
        self.snapshot(key, data)
        self._complete(self.pending[-1], True)

    def _complete(self, number: int, notified: bool) -> None:
        self.pending = [later for later in self.pending if later > number]
        self.completed = number
        if notified:
            self.backend.keyed.snapshot_completed(number)
        self._check(Backend(self.config, self.clock, self.chains[number]), self.models[number])

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 2))
    def abort(self, place: int) -> None:
        self.backend.keyed.snapshot_aborted(self.pending.pop(place % len(self.pending)))

    @rule(down_ms=st.integers(0, TTL_MS))
    def crash_and_restore(self, down_ms: int) -> None:
        """The time between kill and restore counts."""
        self.clock.advance(down_ms)
        self.backend = Backend(self.config, self.clock, self.chains[self.completed])
        self.model = copy.deepcopy(self.models[self.completed])
        self.pending = []

    @rule()
    def savepoint(self) -> None:
        """Later deltas leave out the entries that a full snapshot left out, too: they stand on older snapshots."""
        self._savepoint()

    def _savepoint(self) -> Parts:
        saved = whole_parts(self.backend.keyed)
        self._after_full_snapshot()
        self._check(Backend(self.config, self.clock, saved), self.model)
        return saved

    @rule(down_ms=st.integers(0, TTL_MS))
    def savepoint_and_restart(self, down_ms: int) -> None:
        saved = self._savepoint()
        self.clock.advance(down_ms)
        self.backend = Backend(self.config, self.clock, saved)
        self.next_id, self.completed, self.pending = 1, None, []
        self.chains, self.models = {None: saved}, {None: copy.deepcopy(self.model)}

    @invariant()
    def what_is_stored_is_the_model(self) -> None:
        self._check(self.backend, self.model)

    def _check(self, backend: Backend, model: Model) -> None:
        stored = backend.stored()
        if self.returns_expired:
            assert stored == model
        assert self._alive(stored) == self._alive(model)

    # ------------------------------------------------------------------------------------------------- value, folds

    def _update_value(self, key: Any, number: int | None) -> None:
        self.backend.value.update(number)
        self._accessed("value")
        self._set("value", key, None if number is None else (self._now(), number))

    def _read_value(self, key: Any, _: Any) -> None:
        found = self.backend.value.value()
        self._accessed("value")
        assert found == self._read_cell("value", key)

    def _add(self, key: Any, number: int) -> None:
        for state, begin in (("sum", number), ("collected", [number])):
            getattr(self.backend, state).add(number)
            self._accessed(state)
            held = self.model[state].get(key)
            goes_on = held is not None and (self.returns_expired or not self._expired(held))
            self._set(state, key, (self._now(), held[1] + begin if goes_on and held is not None else begin))

    def _read_folds(self, key: Any, _: Any) -> None:
        found = self.backend.sum.get(), self.backend.collected.get()
        self._accessed("sum")
        self._accessed("collected")
        collected = self._read_cell("collected", key)
        if self._read_cell("sum", key) != found[0] or found[1] != (None if collected is None else tuple(collected)):
            raise AssertionError(f"{found}, but the model has {self.model['sum']}, {collected}")

    def _read_cell(self, state: str, key: Any) -> Any:
        held = self.model[state].get(key)
        if held is None:
            return None
        if self._expired(held):
            del self.model[state][key]
            return held[1] if self.returns_expired else None
        if self.on_read:
            self.model[state][key] = (self._now(), held[1])
        return held[1]

    # -------------------------------------------------------------------------------------------------------- list

    def _add_to_list(self, key: Any, number: int | None) -> None:
        self.backend.list.add(number)
        self._accessed("list")
        self.model["list"].setdefault(key, []).append((self._now(), number))

    def _add_all_to_list(self, key: Any, given: list[int]) -> None:
        self.backend.list.add_all(given)
        self._accessed("list")
        held = self.model["list"].get(key, [])
        self._set("list", key, held + [(self._now(), number) for number in given] or None)

    def _update_list(self, key: Any, given: list[int]) -> None:
        self.backend.list.update(given)
        self._accessed("list")
        self._set("list", key, [(self._now(), number) for number in given] or None)

    def _read_list(self, key: Any, _: Any) -> None:
        found = self.backend.list.get()
        self._accessed("list")
        held = self.model["list"].get(key, [])
        live = [pair for pair in held if not self._expired(pair)]
        assert found == [number for _, number in (held if self.returns_expired else live)]
        if not live:
            self._set("list", key, None)
        elif self.on_read:
            self._set("list", key, [(self._now(), number) for _, number in live])

    # --------------------------------------------------------------------------------------------------------- map

    def _put(self, key: Any, entry: tuple[Any, int | None]) -> None:
        self.backend.map.put(*entry)
        self._accessed("map")
        self.model["map"].setdefault(key, {})[entry[0]] = (self._now(), entry[1])

    def _put_all(self, key: Any, entries: dict[Any, int]) -> None:
        self.backend.map.put_all(entries)
        self._accessed("map")
        held = self.model["map"].get(key, {})
        self._set("map", key, held | {field: (self._now(), number) for field, number in entries.items()} or None)

    def _remove(self, key: Any, field: Any) -> None:
        self.backend.map.remove(field)
        self._accessed("map")
        self._remove_field(key, field)

    def _read_field(self, key: Any, field: Any) -> None:
        found = self.backend.map.get(field)
        self._accessed("map")
        assert [found] == (self._read_fields(key, [field], lambda _, number: number) or [None])

    def _contains(self, key: Any, field: Any) -> None:
        found = self.backend.map.contains(field)
        self._accessed("map")
        assert found == bool(self._read_fields(key, [field], lambda _, number: number))

    def _read_map(self, key: Any, how: str) -> None:
        found = getattr(self.backend.map, how)()
        self._accessed("map")
        picks: dict[str, Any] = {"items": lambda *pair: pair, "keys": lambda f, _: f, "values": lambda _, n: n}
        pick = picks[how]
        assert found == self._read_fields(key, list(self.model["map"].get(key, ())), pick)

    def _is_empty(self, key: Any, _: Any) -> None:
        found = self.backend.map.is_empty()
        self._accessed("map")
        held = self.model["map"].get(key, {}).values()
        assert found == (not any(self.returns_expired or not self._expired(pair) for pair in held))

    def _read_fields(self, key: Any, asked: list[Any], pick: Any) -> list[Any]:
        found = []
        for field in asked:
            held = self.model["map"].get(key, {}).get(field)
            if held is None:
                continue
            if self._expired(held):
                self._remove_field(key, field)
            elif self.on_read:
                self.model["map"][key][field] = (self._now(), held[1])
            if self.returns_expired or not self._expired(held):
                found.append(pick(field, held[1]))
        return found

    def _remove_field(self, key: Any, field: Any) -> None:
        held = self.model["map"].get(key, {})
        held.pop(field, None)
        self._set("map", key, held or None)

    # ---------------------------------------------------------------------------------------------- the model's time

    def _clear(self, key: Any, state: str) -> None:
        getattr(self.backend, state).clear()
        self.model[state].pop(key, None)
        self._accessed(state)

    def _now(self) -> int:
        return self.clock.wall_ms()

    def _expired(self, pair: tuple[int, Any]) -> bool:
        return pair[0] + TTL_MS <= self._now()

    def _set(self, state: str, key: Any, held: Any) -> None:
        if held is None:
            self.model[state].pop(key, None)
        else:
            self.model[state][key] = held

    def _accessed(self, state: str) -> None:
        if self.cleanup in ("at access", "every record"):
            self._drop_expired(state)

    def _after_full_snapshot(self) -> None:
        if self.full_snapshot:
            for state in STATES:
                self._drop_expired(state)

    def _drop_expired(self, state: str) -> None:
        self.model[state] = self._alive({state: self.model[state]})[state]

    def _alive(self, model: Model) -> Model:
        return {
            state: {key: live for key, held in entries.items() if (live := self._alive_of(held))}
            for state, entries in model.items()
        }

    def _alive_of(self, held: Any) -> Any:
        if isinstance(held, dict):
            return {field: pair for field, pair in held.items() if not self._expired(pair)}
        if isinstance(held, list):
            return [pair for pair in held if not self._expired(pair)]
        return None if self._expired(held) else held


TimeToLive.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestTimeToLive = TimeToLive.TestCase


@given(
    st.lists(st.tuples(st.integers(0, TTL_MS - 1), st.sampled_from(KEYS), st.booleans()), max_size=40),
    st.booleans(),
)
def test_a_cleanup_that_may_see_everything_leaves_nothing_expired(
    steps: list[tuple[int, Any, bool]], every_record: bool
) -> None:
    """Clean-up pauses while no entry can expire, but never too long."""
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).return_expired_if_not_cleaned_up()
    clock = ManualClock(1_000_000)
    backend = Backend(builder.cleanup_incrementally(EVERYTHING, every_record).build(), clock, [])
    for pause, key, writes in steps:
        clock.advance(pause)
        backend.keyed.set_current_key(key if writes else "somebody else")
        if writes:
            backend.value.update(1)
        elif not every_record:
            backend.value.value()
        assert all(stamp + TTL_MS > clock.wall_ms() for stamp, _ in backend.stored()["value"].values())
