"""Every kind of state equals a plain Python value after any operations in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.common import Types
from rekindle.datastream.functions import AggregateFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.operator_state import OperatorStateBackend
from tests.support.keyed_backends import BACKENDS
from tests.support.whole_state import whole_parts

GROUPS = 4
KEYS = ["a", ("a",), 1, None, (None, "")]
numbers = st.integers(-3, 3)
some = st.lists(numbers, max_size=3)
fields = st.sampled_from([None, "x", "", ("t", 1), 7])
entries = st.dictionaries(fields, numbers | st.none(), max_size=3)


def call(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, tuple[Any, ...]]]:
    return st.tuples(st.just(name), st.tuples(*arguments))


class ValueModel:
    """None is "no value"."""

    def __init__(self) -> None:
        self.held: Any = None

    def value(self) -> Any:
        return self.held

    def update(self, value: Any) -> None:
        self.held = value

    def clear(self) -> None:
        self.held = None


class ListModel:
    def __init__(self) -> None:
        self.held: list[Any] = []

    def get(self) -> list[Any]:
        return list(self.held)

    def add(self, value: Any) -> None:
        self.held.append(value)

    def add_all(self, values: list[Any]) -> None:
        self.held.extend(values)

    def update(self, values: list[Any]) -> None:
        self.held = list(values)

    def clear(self) -> None:
        self.held = []


class MapModel:
    """A dict; None is a value like any other."""

    def __init__(self) -> None:
        self.held: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        return self.held.get(key)

    def put(self, key: Any, value: Any) -> None:
        self.held[key] = value

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        self.held.update(dict_value)

    def remove(self, key: Any) -> None:
        self.held.pop(key, None)

    def contains(self, key: Any) -> bool:
        return key in self.held

    def items(self) -> list[tuple[Any, Any]]:
        return list(self.held.items())

    def keys(self) -> list[Any]:
        return list(self.held)

    def values(self) -> list[Any]:
        return list(self.held.values())

    def is_empty(self) -> bool:
        return not self.held

    def clear(self) -> None:
        self.held = {}


class SumModel:
    """A sum; the sum of nothing is None."""

    def __init__(self) -> None:
        self.added: list[int] = []

    def get(self) -> Any:
        return sum(self.added) if self.added else None

    def add(self, value: int) -> None:
        self.added.append(value)

    def clear(self) -> None:
        self.added = []


class MeanModel(SumModel):
    def get(self) -> Any:
        return sum(self.added) / len(self.added) if self.added else None


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
VALUE_CALLS = call("value") | call("update", numbers | st.none() | some) | call("clear")
LIST_CALLS = call("get") | call("add", numbers) | call("add_all", some) | call("update", some) | call("clear")
READ_MAP_CALLS = (
    call("get", fields) | call("contains", fields) | call("items") | call("keys") | call("values") | call("is_empty")
)
WRITE_MAP_CALLS = (
    call("put", fields, numbers | st.none()) | call("put_all", entries) | call("remove", fields) | call("clear")
)
MAP_CALLS = READ_MAP_CALLS | WRITE_MAP_CALLS
SUM_CALLS = call("get") | call("add", numbers) | call("clear")

Registered = Callable[[Any], Any]
KEYED: dict[str, tuple[Registered, Callable[[], Any], st.SearchStrategy[Any]]] = {
    "value": (lambda b: keyed_state(b, ValueStateDescriptor("value", None)), ValueModel, VALUE_CALLS),
    "list": (lambda b: keyed_state(b, ListStateDescriptor("list", Types.LONG())), ListModel, LIST_CALLS),
    "map": (lambda b: keyed_state(b, MapStateDescriptor("map", None, Types.LONG())), MapModel, MAP_CALLS),
    "sum": (
        lambda b: keyed_state(b, ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG())),
        SumModel,
        SUM_CALLS,
    ),
    "mean": (lambda b: keyed_state(b, AggregatingStateDescriptor("mean", Mean(), PAIR)), MeanModel, SUM_CALLS),
}
one_call = st.one_of([st.tuples(st.just(kind), calls) for kind, (_, _, calls) in KEYED.items()])
steps = st.lists(
    st.tuples(st.sampled_from(range(len(KEYS))), one_call) | st.sampled_from(["restore", "forget"]),
    min_size=1,
    max_size=60,
)


def backend(kind: str, parts: list[tuple[int, bytes]]) -> tuple[Any, dict[str, Any]]:
    keyed = BACKENDS[kind](GROUPS, range(GROUPS))
    keyed.restore(parts)
    return keyed, {kind: register(keyed) for kind, (register, _, _) in KEYED.items()}


def comparable(answer: Any) -> Any:
    """The answer without the order of a map's entries, which is the backend's own."""
    if isinstance(answer, Iterator):
        answer = list(answer)
    return Counter(map(repr, answer)) if isinstance(answer, list) else answer


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=200)
@given(steps=steps)
def test_keyed_state_of_each_kind_and_key_is_a_value_of_its_own(name: str, steps: list[Any]) -> None:
    """Interleaved over keys that a careless cache would confuse, and over restores."""
    keyed, states = backend(name, [])
    models = {(place, kind): model() for place in range(len(KEYS)) for kind, (_, model, _) in KEYED.items()}
    for step in steps:
        if step == "restore":
            keyed, states = backend(name, whole_parts(keyed))
        elif step == "forget":
            keyed.forget_changes()
        else:
            place, (kind, (method, arguments)) = step
            keyed.set_current_key(KEYS[place])
            answer, wanted = (getattr(each, method)(*arguments) for each in (states[kind], models[place, kind]))
            alike = comparable if kind == "map" else lambda each: each
            assert alike(answer) == alike(wanted), (kind, method, arguments)
    for (place, kind), model in models.items():
        keyed.set_current_key(KEYS[place])
        read = {"value": "value", "map": "items"}.get(kind, "get")
        alike = comparable if kind == "map" else lambda each: each
        assert alike(getattr(states[kind], read)()) == alike(getattr(model, read)())


operator_calls = st.one_of(
    st.tuples(st.just("split"), LIST_CALLS),
    st.tuples(st.just("union"), LIST_CALLS),
    st.tuples(st.just("broadcast"), MAP_CALLS),
    st.tuples(st.just("read only"), READ_MAP_CALLS),
)


def operator_states(backend: OperatorStateBackend) -> dict[str, Any]:
    rules = MapStateDescriptor("rules", None, Types.LONG())
    return {
        "split": backend.get_list_state(ListStateDescriptor("split", Types.LONG())),
        "union": backend.get_union_list_state(ListStateDescriptor("union", Types.LONG())),
        "broadcast": backend.get_broadcast_state(rules),
        "read only": backend.get_read_only_broadcast_state(rules),
    }


@settings(max_examples=100)
@given(steps=st.lists(operator_calls | st.just("restore"), min_size=1, max_size=50))
def test_operator_state_of_each_kind_is_a_value_of_its_own(steps: list[Any]) -> None:
    holder = OperatorStateBackend()
    states = operator_states(holder)
    rules = MapModel()
    models: dict[str, Any] = {"split": ListModel(), "union": ListModel(), "broadcast": rules, "read only": rules}
    for step in steps:
        if step == "restore":
            data = holder.snapshot()
            holder = OperatorStateBackend()
            holder.restore(data)
            states = operator_states(holder)
        else:
            kind, (method, arguments) = step
            answer = getattr(states[kind], method)(*arguments)
            assert answer == getattr(models[kind], method)(*arguments), (kind, method, arguments)
