"""Sources, functions and programs that several tests of checkpoints use."""

from __future__ import annotations

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.datastream import AggregateFunction, KeyedProcessFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
#: Event times far in the future: their timers fire when the input ends.
END_OF_TIME = 10**15


def by_time(bound_ms: int = 0) -> WatermarkStrategy:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return strategy.with_timestamp_assigner(lambda value, _: value[1])


class EveryKindOfState(KeyedProcessFunction):
    """Value, list, map, reducing and aggregating state, and a timer at the end of time that emits all of them."""

    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG()))
        self.listed = runtime_context.get_list_state(ListStateDescriptor("listed", Types.LONG()))
        self.mapped = runtime_context.get_map_state(MapStateDescriptor("mapped", Types.LONG(), Types.LONG()))
        self.largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", max, Types.LONG()))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), PAIR))

    def process_element(self, value, ctx):
        self.value.update((self.value.value() or 0) + value)
        self.listed.add(value)
        self.mapped.put(value % 5, (self.mapped.get(value % 5) or 0) + 1)
        if value % 7 == 0:
            self.mapped.remove(value % 5)
        self.largest.add(value)
        self.mean.add(value)
        ctx.timer_service().register_event_time_timer(END_OF_TIME)
        yield "count", ctx.get_current_key()

    def on_timer(self, timestamp, ctx):
        yield (
            ctx.get_current_key(),
            self.value.value(),
            sorted(self.listed.get()),
            sorted(self.mapped.items()),
            self.largest.get(),
            self.mean.get(),
        )


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Gathered(KeyedProcessFunction):
    """Emits all elements of its key at the end of time."""

    def open(self, runtime_context):
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.LONG()))

    def process_element(self, value, ctx):
        self.values.add(value)
        ctx.timer_service().register_event_time_timer(END_OF_TIME)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), sorted(self.values.get())


def keyed_sums(env):
    numbers = env.from_collection([(n % 5, n) for n in range(40)], PAIR)
    return numbers.key_by(lambda pair: pair[0], int).reduce(lambda a, b: (a[0], a[1] + b[1]))


def every_kind_of_state(env):
    return env.from_collection(list(range(40)), int).key_by(lambda n: n % 6, int).process(EveryKindOfState())


class Times(KeyedProcessFunction):
    """Emits the timestamp and the watermark that each record sees."""

    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()
