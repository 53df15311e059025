"""Keyed and operator state, timers: each part is read by the schema it was written with, and refused by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from rekindle.checkpoint.redistribute import operator_share
from rekindle.common import Time, Types
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream import AggregateFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.errors import IncompatibleStateError
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.evolution import reads_as_is, rewritten
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.keyed_state_format import decode_part, encode_group
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.state.spec import value_spec
from rekindle.runtime.timers import InternalTimers
from rekindle.serde import value_codec_for
from rekindle.serde.type_schema import decode_state_schema
from rekindle.testing import ManualClock
from tests.support.whole_state import whole_parts

GROUPS = 4
Parts = Sequence[tuple[int, bytes]]


# By position: read without their schema, the values of one version would be those of another field.


def named(name: str) -> Callable[[type], type]:
    def rename(cls: type) -> type:
        cls.__qualname__ = cls.__name__ = name
        return cls

    return rename


@named("Total")
class Total1(msgspec.Struct, frozen=True, array_like=True):
    count: int


@named("Total")
class Total2(msgspec.Struct, frozen=True, array_like=True):
    count: int
    price: int = 7


@named("Total")
class Total3(msgspec.Struct, frozen=True, array_like=True):
    price: float = 0.5
    count: float = 0.0
    note: str = "none"


@named("Total")
class Wrong(msgspec.Struct, frozen=True, array_like=True):
    count: str


VERSIONS = (Total1, Total2, Total3)


class Last(AggregateFunction):
    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        return value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return b


def last(a, b):
    return b


class States:
    """A backend with every kind of state, whose values are of one version of the class."""

    def __init__(self, version: type, parts: Parts = (), ttl: StateTtlConfig | None = None) -> None:
        options = KeyedStateOptions(clock=ManualClock(1_000_000))
        self.backend = HashMapKeyedBackend(GROUPS, range(GROUPS), options, key_codec=value_codec_for(Types.STRING()))
        self.backend.restore(parts)
        value, listed = ValueStateDescriptor("value", version), ListStateDescriptor("list", version)
        mapped = MapStateDescriptor("map", version, version)
        reducing = ReducingStateDescriptor("reducing", last, version)
        aggregating = AggregatingStateDescriptor("aggregating", Last(), version)
        if ttl is not None:
            for each in (value, listed, mapped, reducing, aggregating):
                each.enable_time_to_live(ttl)
        self.value = keyed_state(self.backend, value)
        self.list = keyed_state(self.backend, listed)
        self.map = keyed_state(self.backend, mapped)
        self.reducing = keyed_state(self.backend, reducing)
        self.aggregating = keyed_state(self.backend, aggregating)

    def write(self, key: str, total: Any) -> States:
        self.backend.set_current_key(key)
        self.value.update(total)
        self.list.add(total)
        self.map.put(total, total)
        self.reducing.add(total)
        self.aggregating.add(total)
        return self

    def read(self, key: str) -> list[Any]:
        self.backend.set_current_key(key)
        maps = sorted(self.map.items(), key=repr)
        return [self.value.value(), list(self.list.get()), maps, self.reducing.get(), self.aggregating.get()]

    def delta(self, snapshot_id: int, since: int) -> Parts:
        return list(self.backend.snapshot_delta(snapshot_id, since).encode())


def everywhere(*totals: Any) -> list[Any]:
    """All kinds of state after these were written: the last one, or all of them."""
    final = totals[-1]
    return [final, list(totals), sorted(((each, each) for each in totals), key=repr), final, final]


class TestKeyedState:
    def test_every_kind_is_read_under_the_new_type(self):
        parts = whole_parts(States(Total1).write("a", Total1(1)).backend)
        assert States(Total2, parts).read("a") == everywhere(Total2(1, 7))
        assert States(Total3, parts).read("a") == everywhere(Total3(0.5, 1.0, "none"))

    def test_deltas_under_a_second_schema_on_parts_of_a_first_are_read_under_a_third(self):
        """Restarted twice between two evolutions: no part is written anew in between."""
        first = States(Total1).write("a", Total1(1)).write("b", Total1(5))
        parts = [(each.key_group, each.encode()) for each in first.backend.snapshot_whole(1)]
        second = States(Total2, parts).write("a", Total2(2, 20))
        parts += second.delta(2, 1)
        again = States(Total2, parts).write("b", Total2(6, 60))
        parts += again.delta(3, 2)
        third = States(Total3, parts)
        assert third.read("a") == everywhere(Total3(0.5, 1.0), Total3(20.0, 2.0))
        assert third.read("b") == everywhere(Total3(0.5, 5.0), Total3(60.0, 6.0))
        schemas = {part.schema for group, data in parts for part in decode_part(group, data) if part.name == "value"}
        assert len(schemas) == 2
        whole = whole_parts(third.backend)
        assert States(Total3, whole).read("a") == third.read("a")

    def test_the_schema_is_checked_before_any_value_is_read(self):
        parts = whole_parts(States(Total1).write("a", Total1(1)).backend)
        sentence = "^State 'value': field 'count' was saved as Long, but the program declares String: declare the"
        with pytest.raises(IncompatibleStateError, match=sentence):
            States(Wrong, parts)

    def test_the_keys_of_a_map_are_named(self):
        def backend(key_type: Any, parts: Parts = ()) -> Any:
            made = HashMapKeyedBackend(GROUPS, range(GROUPS))
            made.restore(parts)
            return made, keyed_state(made, MapStateDescriptor("map", key_type, int))

        old, state = backend(Types.INT())
        old.set_current_key("a")
        state.put(1, 2)
        new, state = backend(Types.BIG_DEC(), whole_parts(old))
        new.set_current_key("a")
        assert list(state.items()) == [(Decimal(1), 2)]
        with pytest.raises(IncompatibleStateError, match="State 'map', the keys of the map: each value was saved as"):
            backend(Types.STRING(), whole_parts(old))

    def test_a_value_that_would_change_is_refused(self):
        def backend(value_type: TypeInformation, parts: Parts = ()) -> Any:
            made = HashMapKeyedBackend(GROUPS, range(GROUPS))
            made.restore(parts)
            return made, keyed_state(made, ValueStateDescriptor("sum", value_type))

        old, state = backend(Types.LONG())
        old.set_current_key("a")
        state.update(2**53 + 1)
        with pytest.raises(IncompatibleStateError, match=rf"'sum'.*{2**53 + 1} cannot become a float without a loss"):
            backend(Types.DOUBLE(), whole_parts(old))

    def test_state_that_nobody_asks_for_keeps_its_schema(self):
        parts = whole_parts(States(Total1).write("a", Total1(1)).backend)
        idle = HashMapKeyedBackend(GROUPS, range(GROUPS), key_codec=value_codec_for(Types.STRING()))
        idle.restore(parts)
        assert States(Total3, whole_parts(idle)).read("a") == everywhere(Total3(0.5, 1.0))


class TestTimeToLive:
    TTL = StateTtlConfig.new_builder(Time.days(1)).build()

    @pytest.mark.parametrize(("before", "after"), [(TTL, TTL), (TTL, None), (None, TTL)])
    def test_types_and_time_to_live_change_together(self, before, after):
        parts = whole_parts(States(Total1, ttl=before).write("a", Total1(1)).backend)
        assert States(Total3, parts, after).read("a") == everywhere(Total3(0.5, 1.0))


class TestForOtherBackends:
    """`reads_as_is` and `rewritten`: for a backend that stores parts as they are."""

    KEYS = value_codec_for(Types.STRING())
    TTL = TestTimeToLive.TTL

    def parts(self, version, ttl=None):
        written = whole_parts(States(version, ttl=ttl).write("a", version(count=1)).backend)
        return [(group, part) for group, data in written for part in decode_part(group, data)]

    def specs(self, version, ttl=None):
        columns = States(version, ttl=ttl).backend._columns
        return {name: column.spec for name, column in columns.items()}

    @pytest.mark.parametrize("ttl", [None, TTL])
    def test_the_same_schema_is_used_as_it_is(self, ttl):
        for _, part in self.parts(Total1, ttl):
            assert reads_as_is(self.specs(Total1, ttl)[part.name], part, self.KEYS)
            assert rewritten(self.specs(Total1, ttl)[part.name], part, self.KEYS) is part

    @pytest.mark.parametrize("before", [None, TTL])
    @pytest.mark.parametrize("after", [None, TTL])
    def test_another_schema_or_time_to_live_is_written_anew(self, before, after):
        groups: dict[int, list[Any]] = {}
        specs = self.specs(Total3, after)
        for group, part in self.parts(Total1, before):
            assert not reads_as_is(specs[part.name], part, self.KEYS)
            new = rewritten(specs[part.name], part, self.KEYS)
            assert reads_as_is(specs[part.name], new, self.KEYS)
            groups.setdefault(group, []).append(new)
        parts = [(group, encode_group(own)) for group, own in groups.items()]
        assert States(Total3, parts, after).read("a") == everywhere(Total3(0.5, 1.0))

    def test_what_cannot_be_read_is_refused(self):
        spec = value_spec(ValueStateDescriptor("value", Wrong), allow_pickle=False)
        (part,) = [part for _, part in self.parts(Total1) if part.name == "value"]
        with pytest.raises(IncompatibleStateError, match="field 'count'"):
            reads_as_is(spec, part, self.KEYS)


class TestKeys:
    def backend(self, key_type: Any, parts: Parts = ()) -> HashMapKeyedBackend:
        made = HashMapKeyedBackend(GROUPS, range(GROUPS), key_codec=value_codec_for(key_type, allow_pickle=True))
        made.restore(parts)
        self.sum = keyed_state(made, ValueStateDescriptor("sum", int))
        return made

    def saved(self, key_type: Any, key: Any) -> Parts:
        old = self.backend(key_type)
        old.set_current_key(key)
        self.sum.update(1)
        return whole_parts(old)

    @pytest.mark.parametrize(
        ("old", "new", "key"),
        [
            (Types.INT(), Types.LONG(), 5),
            (None, Types.TUPLE([Types.STRING(), Types.LONG()]), ("a", 1)),
            (Types.STRING(), None, "a"),
        ],
    )
    def test_the_same_keys_may_have_another_type(self, old, new, key):
        backend = self.backend(new, self.saved(old, key))
        backend.set_current_key(key)
        assert self.sum.value() == 1

    def test_keys_of_another_type_are_refused(self):
        sentence = (
            "State 'sum': its key: each value was saved as String, but the program declares Long: the type of a key"
        )
        with pytest.raises(IncompatibleStateError, match=sentence):
            self.backend(Types.LONG(), self.saved(Types.STRING(), "5"))

    def test_so_are_those_of_timers(self):
        old = InternalTimers(GROUPS, range(GROUPS), key_codec=value_codec_for(Types.STRING()))
        old.event.register(5, "7", None)
        parts = list(old.snapshot().encode())
        new = InternalTimers(GROUPS, range(GROUPS), key_codec=value_codec_for(Types.LONG()))
        with pytest.raises(IncompatibleStateError, match="The timers: their key: each value was saved as String"):
            new.restore(parts)


class TestOperatorState:
    def backend(self, version: Any, part: bytes | None = None) -> Any:
        made = OperatorStateBackend()
        if part is not None:
            made.restore(part)
        lists = made.get_list_state(ListStateDescriptor("list", version))
        union = made.get_union_list_state(ListStateDescriptor("union", version))
        rules = made.get_broadcast_state(MapStateDescriptor("rules", version, version))
        return made, lists, union, rules

    def saved(self, version: Any, *totals: Any) -> bytes:
        made, lists, union, rules = self.backend(version)
        for each in totals:
            lists.add(each)
            union.add(each)
            rules.put(each, each)
        return made.snapshot()

    def test_lists_and_broadcast_maps_are_read_under_the_new_type(self):
        _, lists, union, rules = self.backend(Total3, self.saved(Total1, Total1(1), Total1(2)))
        expected = [Total3(0.5, 1.0), Total3(0.5, 2.0)]
        assert lists.get() == union.get() == expected
        assert rules.items() == [(each, each) for each in expected]

    def test_none_stays_none(self):
        _, lists, _, rules = self.backend(Types.DOUBLE(), self.saved(Types.LONG(), 1, None))
        assert lists.get() == [1.0, None]
        assert rules.items() == [(1.0, 1.0), (None, None)]

    def test_refusals_name_state_and_field(self):
        with pytest.raises(IncompatibleStateError, match=r"^State 'list': field 'count' was saved as Long"):
            self.backend(Wrong, self.saved(Total1, Total1(1)))

    def test_subtasks_may_have_written_different_schemas(self):
        """A subtask that had ended keeps what it wrote before the program changed."""
        parts = [self.saved(Total1, Total1(1)), self.saved(Total2, Total2(2, 20))]
        expected = [Total3(0.5, 1.0), Total3(20.0, 2.0)]
        _, lists, union, rules = self.backend(Total3, operator_share(parts, 1, 0))
        assert lists.get() == union.get() == expected
        assert rules.items() == [(expected[0], expected[0])]
        shares = [self.backend(Total3, operator_share(parts, 3, subtask)) for subtask in range(3)]
        assert sorted(each.count for _, lists, _, _ in shares for each in lists.get()) == [1.0, 2.0]
        assert all(union.get() == expected for _, _, union, _ in shares)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_in_a_part_says_what_is_in_it(version):
    written = whole_parts(States(version).write("a", version(count=1)).backend)
    for part in (part for group, data in written for part in decode_part(group, data)):
        schema = decode_state_schema(part.schema)
        assert str(schema.values) == "Struct<Total>"
        assert (schema.fields is not None) is (part.name == "map")
        assert str(schema.keys) == "String"
