"""Window joins and co-groups give the same results clean, killed and restored, and restored at another parallelism."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import CoGroupFunction, CountEvictor, FlatJoinFunction, OutputTag, TaggedUnionTypeInfo
from rekindle.datastream.state import ReducingStateDescriptor
from rekindle.datastream.window import (
    ContinuousEventTimeTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from rekindle.testing import assert_survives
from tests.support.window_driver import general_operator_only

#: (key, time, number): mostly in order, a few late, in several key groups.
RECORDS = [("abcde"[number * 3 % 5], number * 3 - (20 if number % 11 == 10 else 0), number) for number in range(45)]
RECORD = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
LATE = OutputTag("late", TaggedUnionTypeInfo(RECORD, RECORD))

TUMBLING = TumblingEventTimeWindows.of(30)
SLIDING = SlidingEventTimeWindows.of(25, 10, 3)
SESSIONS = EventTimeSessionWindows.with_gap(16)


class Smaller(FlatJoinFunction):
    def join(self, first, second):
        if first[2] < second[2]:
            yield first[2], second[2]


class Groups(CoGroupFunction):
    """Both groups, and how many elements the key has had before."""

    def open(self, runtime_context):
        descriptor = ReducingStateDescriptor("elements", lambda one, other: one + other, int)
        self.elements = runtime_context.get_reducing_state(descriptor)

    def co_group(self, first, second):
        yield sorted(each[2] for each in first), sorted(each[2] for each in second), self.elements.get()
        self.elements.add(len(first) + len(second))


def pair(one, two):
    return one[2], two[2]


JOINS = {
    "tumbling": lambda keyed: keyed.window(TUMBLING).apply(pair),
    "tumbling late firings": lambda keyed: keyed.window(TUMBLING).allowed_lateness(25).apply(pair),
    "sliding flat": lambda keyed: keyed.window(SLIDING).apply(Smaller()),
    "sessions": lambda keyed: keyed.window(SESSIONS).apply(pair, Types.TUPLE([Types.LONG(), Types.LONG()])),
}
CO_GROUPS = {
    "tumbling": lambda keyed: keyed.window(TUMBLING).apply(Groups()),
    "sliding": lambda keyed: keyed.window(SLIDING).apply(Groups()),
    "sessions": lambda keyed: keyed.window(SESSIONS).apply(Groups()),
    "sessions continuous": lambda keyed: (
        keyed.window(SESSIONS)
        .trigger(ContinuousEventTimeTrigger.of(7))
        .apply(lambda first, second: [(sorted(each[2] for each in first), sorted(each[2] for each in second))])
    ),
    "evictor": lambda keyed: keyed.window(TUMBLING).evictor(CountEvictor.of(1000)).apply(Groups()),
    "at the end": lambda keyed: keyed.window(GlobalWindows.create_with_end_of_stream_trigger()).apply(Groups()),
    "late data": lambda keyed: (
        keyed.window(TumblingEventTimeWindows.of(10)).side_output_late_data(LATE).apply(Groups()).get_side_output(LATE)
    ),
}
PROGRAMS = {("join", name): build for name, build in JOINS.items()} | {
    ("co_group", name): build for name, build in CO_GROUPS.items()
}


def keyed(env, method, typed):
    # One subtask hands out timestamps and tells both streams apart, so that late elements are late at each parallelism.
    timed = env.from_collection(RECORDS, RECORD).assign_timestamps_and_watermarks(BY_TIME).set_parallelism(1)
    sides = [timed.filter(lambda each, rest=rest: each[2] % 2 == rest).set_parallelism(1) for rest in (0, 1)]
    one, two = sides if typed else [side.map(lambda each: each).set_parallelism(1) for side in sides]
    return getattr(one, method)(two).where(lambda each: each[0], str).equal_to(lambda each: each[0])


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
@pytest.mark.parametrize(("method", "name"), PROGRAMS)
def test_it_survives(method, name, general):
    """Untyped with the general operator: then tagged elements are in the checkpoints by another codec."""
    build = PROGRAMS[method, name]
    with general_operator_only() if general else nullcontext():
        output = assert_survives(lambda env: build(keyed(env, method, typed=not general)), records_per_epoch=7)
    assert len(output) >= 3
