"""Accumulators: the values of all subtasks are merged into one result."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
    encode_accumulators,
    merge_encoded,
)
from rekindle.datastream import MapFunction
from rekindle.errors import RekindleError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob
from tests.support.environments import environment


class Longest(Accumulator[str, str]):
    """An accumulator of the user's own class."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, value: str) -> None:
        self.text = max(self.text, value, key=len)

    def get_local_value(self) -> str:
        return self.text

    def reset_local(self) -> None:
        self.text = ""

    def merge(self, other: Longest) -> None:
        self.add(other.text)


KINDS: list[tuple[type[Accumulator[Any, Any]], list[Any], Any, Any]] = [
    (IntCounter, [1, 2, 3], 6, 0),
    (LongCounter, [1, 2, 3], 6, 0),
    (DoubleCounter, [0.5, 1.5], 2.0, 0.0),
    (IntMaximum, [1, 3, 2], 3, None),
    (IntMinimum, [2, 1, 3], 1, None),
    (DoubleMaximum, [-1.5, -0.5], -0.5, None),
    (DoubleMinimum, [1.5, 0.5], 0.5, None),
    (AverageAccumulator, [1, 2, 6], 3.0, 0.0),
    (ListAccumulator, ["a", None, ("b", 1)], ["a", None, ("b", 1)], []),
    (Histogram, [3, 1, 3], {1: 1, 3: 2}, {}),
    (Longest, ["a", "ccc", "bb"], "ccc", ""),
]


@pytest.mark.parametrize(("kind", "values", "expected", "empty"), KINDS)
def test_however_values_are_spread_the_result_is_the_same(kind, values, expected, empty):
    assert kind().get_local_value() == empty
    for cut in range(len(values) + 1):
        slots = []
        for part in (values[:cut], values[cut:]):
            accumulator = kind()
            for value in part:
                accumulator.add(value)
            slots.append(encode_accumulators([("it", accumulator)]))
        merged = merge_encoded(slots)["it"]
        assert merged == expected
        assert type(merged) is type(expected)


@pytest.mark.parametrize(("kind", "values", "expected", "empty"), KINDS)
def test_a_clone_is_apart_and_reset_forgets(kind, values, expected, empty):
    accumulator = kind()
    for value in values:
        accumulator.add(value)
    clone = accumulator.clone()
    accumulator.reset_local()
    assert (accumulator.get_local_value(), clone.get_local_value()) == (empty, expected)


def test_one_name_of_two_kinds_is_refused():
    with pytest.raises(RekindleError, match="'it' is a Histogram in one function and a IntCounter in another"):
        merge_encoded([encode_accumulators([("it", IntCounter())]), encode_accumulators([("it", Histogram())])])


class Counting(MapFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_int_counter("seen")
        self.again = runtime_context.get_int_counter("seen")
        self.lengths = runtime_context.get_histogram("lengths")
        self.total = runtime_context.get_double_counter("total")
        runtime_context.add_accumulator("longest", Longest())
        self.longest = runtime_context.get_accumulator("longest")
        self.missing = runtime_context.get_accumulator("no such")

    def map(self, value):
        assert self.seen is self.again
        assert self.missing is None
        self.seen.add(1)
        self.lengths.add(len(value))
        self.total.add(0.5)
        self.longest.add(value)
        return value


def test_all_subtasks_and_operators_add_to_one_result():
    env = environment(3)
    words = env.from_collection(["a", "bb", "cc", "dddd"]).rebalance().map(Counting()).map(Counting())
    job = InProcessJob.of(words)
    job.run()
    assert job.accumulators.values == {"seen": 8, "lengths": {1: 2, 2: 4, 4: 2}, "total": 4.0, "longest": "dddd"}


class Twice(MapFunction):
    def open(self, runtime_context):
        runtime_context.add_accumulator("it", IntCounter())
        runtime_context.add_accumulator("it", IntCounter())

    def map(self, value):
        return value


class Mistaken(Twice):
    def open(self, runtime_context):
        runtime_context.get_histogram("it")
        runtime_context.get_int_counter("it")


@pytest.mark.parametrize(
    ("function", "sentence"),
    [(Twice(), "has an accumulator 'it' already"), (Mistaken(), "'it' is a Histogram, not a IntCounter")],
)
def test_mistakes_are_named(function, sentence):
    env = environment(1)
    with pytest.raises(OperatorFailure) as caught:
        InProcessJob.of(env.from_collection([1]).map(function))
    assert sentence in str(caught.value.__cause__)
