"""Emitted is emitted: what a function does to its objects afterwards changes no record."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest

from rekindle.common import Types
from rekindle.datastream import KeyedProcessFunction, SourceFunction, StreamExecutionEnvironment
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.runtime.isolation import hint_is_immutable, isolator
from rekindle.testing import InProcessJob


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


class GrowsInState(KeyedProcessFunction):
    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("d", None))

    def process_element(self, value, ctx):
        held = self.state.value() or {"n": 0}
        held["n"] += 1
        self.state.update(held)
        yield held


def add_in_place(left, right):
    left["n"] += right["n"]
    return left


def mutate(record):
    record["seen"] = True
    return record


class ReusesItsRecord(SourceFunction):
    def run(self, ctx):
        record = {}
        for number in range(3):
            record["n"] = number
            ctx.collect(record)

    def cancel(self):
        pass


def test_a_value_that_stays_in_state():
    stream = environment().from_collection([1, 1, 1]).key_by(lambda n: n).process(GrowsInState())
    assert InProcessJob.of(stream).run() == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_reduce_in_place_over_equal_objects():
    stream = environment().from_collection([{"n": 1}] * 3).key_by(lambda d: 0).reduce(add_in_place)
    assert InProcessJob.of(stream).run() == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_two_branches_of_one_chain():
    env = environment()
    source = env.from_collection([{"n": 1}]).map(lambda d: d)
    results = InProcessJob.of(source.map(mutate).union(source.map(lambda d: ("other", d)))).run()
    assert ("other", {"n": 1}) in results


def test_a_source_that_reuses_its_record():
    assert InProcessJob.of(environment().add_source(ReusesItsRecord())).run() == [{"n": 0}, {"n": 1}, {"n": 2}]


class Kind(Enum):
    A = "a"


@dataclass(frozen=True)
class Frozen:
    name: str
    amounts: tuple[int, ...]


@dataclass
class Loose:
    name: str


@pytest.mark.parametrize(
    ("type_info", "needs_a_look"),
    [
        (Types.LONG(), False),
        (Types.TUPLE([Types.STRING(), Types.DOUBLE()]), False),
        (Types.TUPLE([Types.STRING(), Types.LIST(Types.LONG())]), True),
        (None, True),
    ],
)
def test_declared_immutable_types_cost_nothing(type_info, needs_a_look):
    assert (isolator(type_info, object_reuse=False) is not None) is needs_a_look
    assert isolator(type_info, object_reuse=True) is None


def test_frozen_classes_need_no_copy():
    assert hint_is_immutable(Frozen)
    assert not hint_is_immutable(Loose)
    assert hint_is_immutable(tuple[Kind, ...])
