"""A NumPy scalar is the same key as its Python value, whichever of the two comes first (I11)."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from rekindle.common import Types, WatermarkStrategy
from rekindle.common.time import Time
from rekindle.common.types import Row
from rekindle.datastream import KeyedProcessFunction
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from rekindle.errors import InvalidKeyError
from rekindle.runtime.key_bytes import canonical_bytes, owned_key
from rekindle.runtime.key_hash import key_group
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Place:
    name: object
    point: object


class Spot(msgspec.Struct, frozen=True):
    name: object
    point: object


PAIRS = [
    (np.int64(-5), -5),
    (np.int8(7), 7),
    (np.uint64(2**63 + 5), 2**63 + 5),
    (np.float64(0.1), 0.1),
    (np.float64(3.0), 3.0),
    (np.float32(0.5), 0.5),
    (np.bool_(True), True),
    (np.str_("ä"), "ä"),
    (np.bytes_(b"a"), b"a"),
    ((1, np.int64(2), ("x", np.str_("y"))), (1, 2, ("x", "y"))),
    (Point(np.int64(1), 2), Point(1, 2)),
    (Place(np.str_("a"), Point(np.int64(1), 2)), Place("a", Point(1, 2))),
    (Spot(np.str_("a"), np.int64(1)), Spot("a", 1)),
    (Row(np.int64(1), np.str_("a")), Row(1, "a")),
]


def has_numpy(key):
    fields = getattr(key, "__struct_fields__", None) or getattr(key, "__dataclass_fields__", ())
    parts = [getattr(key, name) for name in fields] or (list(key) if isinstance(key, tuple | Row) else [])
    return type(key).__module__ == "numpy" or any(map(has_numpy, parts))


@pytest.mark.parametrize(("numpy_key", "key"), PAIRS, ids=repr)
def test_it_is_the_key_of_its_python_value(numpy_key, key):
    assert canonical_bytes(numpy_key) == canonical_bytes(key)
    assert key_group(numpy_key, 128) == key_group(key, 128)
    owned = owned_key(numpy_key)
    assert owned == key
    assert type(owned) is type(key)
    assert has_numpy(numpy_key)
    assert not has_numpy(owned)


@pytest.mark.parametrize("key", [np.datetime64(1, "ns"), np.timedelta64(1, "s"), np.longdouble(1.5), np.complex128(1j)])
def test_what_has_no_equal_python_value_is_refused_by_name(key):
    with pytest.raises(InvalidKeyError, match=rf"numpy\.{type(key).__name__} cannot be a key"):
        canonical_bytes(key)


def test_nan_is_refused_as_ever():
    with pytest.raises(InvalidKeyError, match="NaN is not equal to itself"):
        canonical_bytes(np.float64("nan"))


class Counts(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(2**60)
        return ()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.count.value()


def counted(keyed):
    return keyed.process(Counts())


def summed(windows):
    sums = windows.reduce(lambda a, b: (a[0], a[1] + b[1]))
    return sums.map(lambda pair: (owned_key(pair[0]), pair[1]))


def tumbling(keyed):
    return summed(keyed.window(TumblingEventTimeWindows.of(Time.days(1))))


def sessions(keyed):
    return summed(keyed.window(EventTimeSessionWindows.with_gap(Time.days(1))))


def general(keyed):
    windows = keyed.window(TumblingEventTimeWindows.of(Time.days(1)))
    return summed(windows.trigger(PurgingTrigger.of(EventTimeTrigger.create())))


@pytest.mark.parametrize("operation", [counted, tumbling, sessions, general])
@pytest.mark.parametrize("declared", [Types.LONG(), None])
@pytest.mark.parametrize("first", [np.int64, int])
def test_the_order_does_not_matter_also_across_a_restore(operation, declared, first):
    """A declared type takes nothing but the Python value into a checkpoint."""
    second = int if first is np.int64 else np.int64
    records = [(first(1), 1), (second(1), 1), (first(2), 1), (first(1), 1), (second(2), 1), (second(3), 1)]

    def program(parallelism):
        env = checkpointed(parallelism)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: 5)
        stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
        return operation(stream.key_by(lambda record: record[0], declared))

    job = InProcessJob.of(program(2), max_records=3)
    checkpoint = job.checkpoint()
    job.kill()
    for parallelism in (1, 3):
        results = InProcessJob.of(program(parallelism), restore=checkpoint).run()
        assert sorted(results) == [(1, 3), (2, 2), (3, 1)]
        assert {type(key) for key, _ in results} == {int}
