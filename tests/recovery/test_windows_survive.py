"""Every kind of window survives being killed: clean, restored, and restored at another parallelism, with equal output.

The checkpoints before the kill are deltas, so all state goes through them; fast operators are run beside the general.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import AggregateFunction, OutputTag, ProcessWindowFunction
from rekindle.datastream.state import ListStateDescriptor, ReducingStateDescriptor
from rekindle.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rekindle.testing import InProcessJob, ManualClock, assert_survives
from tests.support.environments import checkpointed
from tests.support.window_driver import general_operator_only

KEYS = "abcdefg"
#: (key, time, number): mostly in order, a few late, in several key groups.
RECORDS = [
    (KEYS[(number * 5) % len(KEYS)], number * 3 - (20 if number % 11 == 10 else 0), number) for number in range(48)
]
RECORD = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
LATE = OutputTag("late", RECORD)


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Everything(ProcessWindowFunction):
    """Emits the numbers of the window, and the sizes of the key's last windows."""

    past = ListStateDescriptor("past", int)
    fired = ReducingStateDescriptor("fired", lambda a, b: a + b, int)

    def process(self, key, context, elements):
        numbers = sorted(element[2] for element in elements)
        past = context.global_state().get_list_state(self.past)
        yield key, context.window().max_timestamp(), tuple(numbers), tuple(past.get())
        past.update([*past.get(), len(numbers)][-3:])


class WithWindowState(Everything):
    def process(self, key, context, elements):
        fired = context.window_state().get_reducing_state(self.fired)
        fired.add(1)
        yield key, context.window().start, fired.get(), len(list(elements))

    def clear(self, context):
        context.window_state().get_reducing_state(self.fired).clear()


def keyed(env):
    # One subtask hands out timestamps, so that the same elements are late at each parallelism.
    stream = env.from_collection(RECORDS, RECORD).set_parallelism(1)
    timed = stream.assign_timestamps_and_watermarks(BY_TIME).set_parallelism(1)
    return timed.key_by(lambda record: record[0], key_type=Types.STRING())


TUMBLING = TumblingEventTimeWindows.of(20)
SLIDING = SlidingEventTimeWindows.of(25, 10, 3)
SESSIONS = EventTimeSessionWindows.with_gap(16)
DYNAMIC = EventTimeSessionWindows.with_dynamic_gap(lambda record: 10 + record[2] % 3 * 8)

EVENT_TIME = {
    "tumbling reduce": lambda s: s.window(TUMBLING).reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2])),
    "tumbling aggregate": lambda s: s.window(TUMBLING).aggregate(Average()),
    "tumbling process": lambda s: s.window(TUMBLING).process(Everything()),
    "tumbling late firings": lambda s: s.window(TUMBLING).allowed_lateness(15).process(Everything()),
    "tumbling with state of the window": lambda s: s.window(TUMBLING).allowed_lateness(15).process(WithWindowState()),
    "sliding aggregate": lambda s: s.window(SLIDING).aggregate(
        Average(), accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG()])
    ),
    "sliding process": lambda s: s.window(SLIDING).process(Everything()),
    "sessions reduce": lambda s: s.window(SESSIONS).reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2])),
    "sessions aggregate": lambda s: s.window(SESSIONS).allowed_lateness(10).aggregate(Average(), WithBounds()),
    "sessions process": lambda s: s.window(SESSIONS).process(Everything()),
    "sessions dynamic": lambda s: s.window(DYNAMIC).allowed_lateness(30).process(Everything()),
    "sessions continuous": lambda s: s.window(SESSIONS).trigger(ContinuousEventTimeTrigger.of(7)).process(Everything()),
    "sessions evictor": lambda s: s.window(SESSIONS).evictor(TimeEvictor.of(12)).process(Everything()),
    "tumbling evictor": lambda s: s.window(TUMBLING).evictor(CountEvictor.of(2)).sum(2),
    "count": lambda s: s.count_window(3).sum(2),
    "count sliding": lambda s: s.count_window(4, 2).process(CountedOnly()),
    "global purging count": lambda s: (
        s.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(3))).process(Everything())
    ),
    "global delta": lambda s: (
        s.window(GlobalWindows.create())
        .trigger(DeltaTrigger.of(12, lambda old, new: new[2] - old[2], RECORD))
        .process(Everything())
    ),
    "global at the end": lambda s: s.window(GlobalWindows.create_with_end_of_stream_trigger()).process(Everything()),
    "whole stream": lambda s: s.window_all(TUMBLING).sum(2),
    "late data": lambda s: s.window(TUMBLING).side_output_late_data(LATE).sum(2).get_side_output(LATE),
}


class WithBounds(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, list(elements)


class CountedOnly(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().id, tuple(sorted(element[2] for element in elements))


@pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])
@pytest.mark.parametrize("name", EVENT_TIME)
def test_windows_survive(name, general):
    with general_operator_only() if general else nullcontext():
        output = assert_survives(lambda env: EVENT_TIME[name](keyed(env)), records_per_epoch=7)
    assert len(output) >= 3


PROCESSING_TIME = {
    "tumbling": lambda s: s.window(TumblingProcessingTimeWindows.of(1_000)).process(WithBounds()),
    "sessions": lambda s: s.window(ProcessingTimeSessionWindows.with_gap(400)).process(WithBounds()),
    "timeout": lambda s: (
        s.window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(ProcessingTimeoutTrigger.of(CountTrigger.of(5), 300)))
        .process(CountElements())
    ),
}


class CountElements(ProcessWindowFunction):
    def process(self, key, context, elements):
        for element in elements:
            yield element[2]


@pytest.mark.parametrize("name", PROCESSING_TIME)
def test_timers_of_processing_time_survive(name):
    """The clock decides when a processing-time window ends; but every element is in exactly one window."""

    def stream(parallelism):
        env = checkpointed(parallelism)
        return PROCESSING_TIME[name](keyed(env))

    def numbers(results):
        return [element[2] for each in results for element in each[3]] if name != "timeout" else results

    clock = ManualClock(5)
    job = InProcessJob.of(stream(2), clock, max_records=12)
    seen = []
    for parallelism in (1, 3, 2):
        checkpoint = job.checkpoint()
        seen += numbers(checkpoint.results)
        job.epoch()
        job.kill()
        clock.advance(250)
        job = InProcessJob.of(stream(parallelism), clock, max_records=12, restore=checkpoint)
    seen += numbers(job.epoch())
    clock.advance(10_000)
    seen += numbers(job.run())
    assert sorted(seen) == list(range(48))
