"""A program with types, as users write it: their checker accepts each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_type

from rekindle.common import Configuration, Duration, JobExecutionResult, Row, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import TimestampAssigner
from rekindle.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    CheckpointedFunction,
    ConnectedStreams,
    DataStream,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
    WindowedStream,
)
from rekindle.datastream.state import ListState, ListStateDescriptor, ValueState, ValueStateDescriptor
from rekindle.datastream.window import TimeWindow, TumblingEventTimeWindows

Pair = tuple[str, int]
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
LATE = OutputTag("late", PAIR)
Element = Pair | tuple[OutputTag, Pair]


class Increment(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        assert_type(runtime_context.get_index_of_this_subtask(), int)

    def map(self, value: int) -> int:
        return value + 1


class Count(KeyedProcessFunction, CheckpointedFunction):
    _count: ValueState[int]
    _seen: ListState[str]

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(
        self, value: Pair, ctx: KeyedProcessFunction.Context
    ) -> Iterator[Pair | tuple[OutputTag, Pair]]:
        count = self._count.value()
        assert_type(count, int | None)
        self._count.update((count or 0) + 1)
        ctx.timer_service().register_event_time_timer(1)
        yield value
        yield LATE, value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Pair]:
        yield ctx.get_current_key(), timestamp

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self._seen = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen", Types.STRING()))
        assert_type(context.is_restored(), bool)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._seen.add(str(context.get_checkpoint_id()))


class Total(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Pair, accumulator: int) -> int:
        return accumulator + value[1]

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Shown(ProcessWindowFunction[int, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterable[str]:
        return [f"{key} {context.window().end} {sum(elements)}"]


class Lookup(AsyncFunction[str, Pair]):
    async def open(self, runtime_context: RuntimeContext) -> None:
        self.answers = {"a": 1}

    async def async_invoke(self, value: str) -> list[Pair]:
        return [(value, self.answers.get(value, 0))]


class Written(SinkFunction):
    def invoke(self, value: object, context: SinkFunction.Context) -> None:
        assert_type(context.timestamp(), int | None)


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Pair, record_timestamp: int) -> int:
        return value[1]


def collected(stream: DataStream) -> list[int]:
    with stream.execute_and_collect() as results:
        return [result for result in results if result]


def program() -> JobExecutionResult:
    configuration = Configuration()
    configuration.set_string("rekindle.master", "local[2]")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    assert_type(env, StreamExecutionEnvironment)
    env.set_parallelism(2).enable_checkpointing(1000)
    pairs = env.from_collection([("a", 1), ("b", 2)], type_info=PAIR)
    assert_type(pairs, DataStream)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    timed = pairs.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Second()))
    keyed = timed.key_by(lambda pair: pair[0], Types.STRING())
    assert_type(keyed, KeyedStream)
    windowed = keyed.window(TumblingEventTimeWindows.of(1000))
    assert_type(windowed, WindowedStream)
    windowed.aggregate(Total(), window_function=Shown(), output_type=Types.STRING()).print()
    counted = keyed.process(Count(), PAIR).name("count").uid("count")
    assert_type(counted.get_side_output(LATE), DataStream)
    numbers = counted.map(lambda pair: pair[1], Types.INT()).map(Increment(), output_type=Types.INT())
    assert_type(numbers.connect(pairs), ConnectedStreams)
    keys = pairs.map(lambda pair: pair[0], Types.STRING())
    looked_up = AsyncDataStream.unordered_wait(keys, Lookup(), Duration.of_seconds(1), 10, PAIR)
    looked_up.add_sink(Written())
    print(Row(name="a", number=1).name)
    return env.execute("typed")
