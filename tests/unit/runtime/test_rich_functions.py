"""`get_runtime_context()` in every method of every kind of function, from `initialize_state` to `close`."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common import Time, Types, WatermarkStrategy
from rekindle.datastream import (
    AsyncDataStream,
    DataStream,
    Function,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RichAggregateFunction,
    RichAsyncFunction,
    RichCoFlatMapFunction,
    RichCoGroupFunction,
    RichCoMapFunction,
    RichFilterFunction,
    RichFlatMapFunction,
    RichFunction,
    RichJoinFunction,
    RichMapFunction,
    RichParallelSourceFunction,
    RichReduceFunction,
    RichSinkFunction,
    RichWindowFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.datastream.window import TumblingEventTimeWindows
from rekindle.errors import StateAccessError
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed

#: (name of the task, method) of every call in which a function had its runtime context.
SEEN: set[tuple[str, str]] = set()


class Everywhere(Function):
    """Notes the task's name in each method that the engine calls."""

    def note(self, method: str) -> None:
        SEEN.add((self.get_runtime_context().get_task_name(), method))

    def initialize_state(self, context: Any) -> None:
        self.note("initialize_state")
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("kept", Types.INT()))

    def open(self, runtime_context: Any) -> None:
        assert self.get_runtime_context() is runtime_context
        self.note("open")

    def snapshot_state(self, context: Any) -> None:
        self.note("snapshot_state")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.note("notify_checkpoint_complete")

    def close(self) -> None:
        self.note("close")


class Mapping(Everywhere, RichMapFunction):
    def map(self, value: Any) -> Any:
        self.note("map")
        return value


class Flat(Everywhere, RichFlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        self.note("flat_map")
        yield value


class Kept(Everywhere, RichFilterFunction):
    def filter(self, value: Any) -> bool:
        self.note("filter")
        return True


class Larger(Everywhere, RichReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        self.note("reduce")
        return max(value1, value2)


class Processed(Everywhere, ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.note("process_element")
        yield value


class KeyedProcessed(Everywhere, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.note("process_element")
        yield value


class CoMapped(Everywhere, RichCoMapFunction):
    def map1(self, value: Any) -> Any:
        self.note("map1")
        return value

    def map2(self, value: Any) -> Any:
        return value


class CoFlat(Everywhere, RichCoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        self.note("flat_map1")
        yield value

    def flat_map2(self, value: Any) -> Any:
        yield value


class KeyedCo(Everywhere, KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        self.note("process_element1")
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class Ruled(Everywhere, KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.note("process_element")
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return None


class Windowed(Everywhere, ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        self.note("process")
        yield from elements

    def clear(self, context: Any) -> None:
        self.note("clear")


class Applied(Everywhere, RichWindowFunction):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        self.note("apply")
        yield from inputs


class Summed(RichAggregateFunction):
    def note(self, method: str) -> None:
        SEEN.add((self.get_runtime_context().get_task_name(), method))

    def open(self, runtime_context: Any) -> None:
        self.note("open")

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        self.note("add")
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Joined(Everywhere, RichJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        self.note("join")
        return first


class Grouped(Everywhere, RichCoGroupFunction):
    def co_group(self, first: Any, second: Any) -> Any:
        self.note("co_group")
        return list(first)


class Asked(Everywhere, RichAsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        self.note("async_invoke")
        return [value]


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, time: number)
    return env.from_collection(list(range(8)), Types.INT()).assign_timestamps_and_watermarks(strategy)


def parity(number: int) -> int:
    return number % 2


HOUR = TumblingEventTimeWindows.of(Time.hours(1))
RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())

KINDS: dict[str, tuple[Callable[[DataStream], DataStream], str]] = {
    "map": (lambda s: s.map(Mapping()), "map"),
    "keyed map": (lambda s: s.key_by(parity).map(Mapping()), "map"),
    "flat_map": (lambda s: s.flat_map(Flat()), "flat_map"),
    "filter": (lambda s: s.filter(Kept()), "filter"),
    "reduce": (lambda s: s.key_by(parity).reduce(Larger()), "reduce"),
    "process": (lambda s: s.process(Processed()), "process_element"),
    "keyed process": (lambda s: s.key_by(parity).process(KeyedProcessed()), "process_element"),
    "co map": (lambda s: s.connect(s).map(CoMapped()), "map1"),
    "co flat map": (lambda s: s.connect(s).flat_map(CoFlat()), "flat_map1"),
    "keyed co process": (lambda s: s.connect(s).key_by(parity, parity).process(KeyedCo()), "process_element1"),
    "broadcast": (lambda s: s.key_by(parity).connect(s.broadcast(RULES)).process(Ruled()), "process_element"),
    "window process": (lambda s: s.key_by(parity).window(HOUR).process(Windowed()), "process"),
    "window apply": (lambda s: s.key_by(parity).window(HOUR).apply(Applied()), "apply"),
    "window join": (lambda s: s.join(s).where(parity).equal_to(parity).window(HOUR).apply(Joined()), "join"),
    "co group": (
        lambda s: s.co_group(s).where(parity).equal_to(parity).window(HOUR).apply(Grouped()),
        "co_group",
    ),
    "async": (lambda s: AsyncDataStream.unordered_wait(s, Asked(), Time.seconds(60)), "async_invoke"),
}
ALWAYS = {"initialize_state", "open", "snapshot_state", "notify_checkpoint_complete", "close"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_knows_its_runtime_context_in_every_method(kind: str) -> None:
    SEEN.clear()
    build, method = KINDS[kind]
    job = InProcessJob.of(build(numbers(checkpointed(2))).name(kind), max_records=3)
    job.checkpoint()
    assert job.run() is not None
    assert {called for task, called in SEEN if task == kind} >= {*ALWAYS, method}
    assert {task for task, _ in SEEN} == {kind}


def test_what_aggregates_a_window_knows_it_too() -> None:
    SEEN.clear()
    stream = numbers(checkpointed(2)).key_by(parity).window(HOUR).aggregate(Summed(), output_type=int)
    assert sorted(InProcessJob.of(stream.name("sums")).run()) == [12, 16]
    assert {("sums", "open"), ("sums", "add")} == SEEN


class Source(Everywhere, RichParallelSourceFunction):
    def run(self, ctx: Any) -> None:
        self.note("run")
        ctx.collect(self.get_runtime_context().get_index_of_this_subtask())

    def cancel(self) -> None:
        self.note("cancel")


class Sink(Everywhere, RichSinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        self.note("invoke")

    def finish(self) -> None:
        self.note("finish")


def test_sources_and_sinks_know_it() -> None:
    SEEN.clear()
    env = checkpointed(2)
    read = env.add_source(Source()).name("source")
    read.rebalance().add_sink(Sink()).name("sink")
    job = InProcessJob.of(read)
    before = job.checkpoint().results
    assert sorted([*before, *job.run()]) == [0, 1]
    assert {called for task, called in SEEN if task.endswith("source")} >= {*ALWAYS, "run"}
    assert {called for task, called in SEEN if task.endswith("sink")} >= {*ALWAYS, "invoke", "finish"}


class CountPerKey(RichMapFunction):
    """S1's, to the letter: the state comes from `get_runtime_context()`, which `initialize_state` has, too."""

    def initialize_state(self, context: Any) -> None:
        self.count = self.get_runtime_context().get_state(ValueStateDescriptor("myCount", Types.LONG()))

    def snapshot_state(self, context: Any) -> None:
        pass

    def map(self, value: Any) -> Any:
        current = self.count.value()
        self.count.update(1 if current is None else current + 1)
        return value, self.count.value()


def test_keyed_state_can_be_asked_for_in_initialize_state_and_survives() -> None:
    def counted(parallelism: int) -> DataStream:
        env = checkpointed(2).set_parallelism(parallelism)
        return env.from_collection(["a", "b", "a", "a"], str).key_by(lambda word: word, str).map(CountPerKey())

    assert sorted(InProcessJob.of(counted(1)).run()) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    job = InProcessJob.of(counted(1), max_records=2)
    checkpoint = job.checkpoint()
    job.kill()
    rest = InProcessJob.of(counted(3), restore=checkpoint).run()
    assert sorted([*checkpoint.results, *rest]) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


def test_before_the_job_runs_there_is_no_runtime_context() -> None:
    with pytest.raises(StateAccessError, match=r"Mapping has no runtime context yet: .*initialize_state\(\) and open"):
        Mapping().get_runtime_context()


@dataclasses.dataclass(frozen=True)
class Frozen(MapFunction):
    factor: int

    def map(self, value: int) -> tuple[str, int]:
        return self.get_runtime_context().get_task_name(), value * self.factor


def test_a_function_that_cannot_be_changed_knows_it() -> None:
    env = checkpointed(2)
    stream = env.from_collection([1, 2], int).map(Frozen(3)).name("frozen")
    assert sorted(InProcessJob.of(stream).run()) == [("frozen", 3), ("frozen", 6)]


def test_the_rich_kinds_are_the_plain_ones_under_flinks_names() -> None:
    assert isinstance(Mapping(), MapFunction)
    for kind in (Mapping, Flat, Kept, Larger, CoMapped, CoFlat, Summed, Joined, Grouped, Asked, Applied, Source, Sink):
        assert issubclass(kind, RichFunction), kind
