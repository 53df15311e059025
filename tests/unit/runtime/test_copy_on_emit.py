"""An emitted record does not change when the function changes its object afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest

from rekindle.common import Types
from rekindle.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    SourceFunction,
)
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.runtime.copy_on_emit import isolator
from rekindle.runtime.immutability import hint_is_immutable
from rekindle.testing import InProcessJob
from tests.support.environments import environment


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


ASIDE = OutputTag("aside")


class GrowsAside(ProcessFunction):
    def __init__(self):
        self.seen = []

    def process_element(self, value, ctx):
        self.seen.append(value)
        yield ASIDE, self.seen
        yield value


class GrowsAsideInWindows(ProcessWindowFunction):
    def __init__(self):
        self.seen = []

    def process(self, key, context, elements):
        self.seen.extend(elements)
        context.output(ASIDE, self.seen)
        yield key


def test_a_value_that_goes_aside_beside_results_that_cannot_change():
    stream = environment().from_collection([1, 2, 3]).process(GrowsAside(), output_type=Types.INT())
    assert InProcessJob.of(stream.get_side_output(ASIDE)).run() == [[1], [1, 2], [1, 2, 3]]


def test_a_value_that_a_window_function_puts_aside():
    keyed = environment().from_collection([1, 2, 3], Types.INT()).key_by(lambda n: 0)
    stream = keyed.count_window(1).process(GrowsAsideInWindows(), Types.INT())
    assert InProcessJob.of(stream.get_side_output(ASIDE)).run() == [[1], [1, 2], [1, 2, 3]]


def test_two_branches_of_a_side_output():
    aside = environment().from_collection([1, 2]).process(GrowsAside()).get_side_output(ASIDE)

    def mutate_list(record):
        record.clear()
        return record

    results = InProcessJob.of(aside.map(mutate_list).union(aside.map(list))).run()
    assert [each for each in results if each] == [[1], [1, 2]]


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
