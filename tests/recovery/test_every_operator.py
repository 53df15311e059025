"""Every operator except windows gives the same results clean, killed and restored, and restored at another parallelism.

Async I/O is in `tests/unit/runtime/operators/test_async_checkpoints.py`, with the same table of runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rekindle.common import Row, Time, Types, WatermarkStrategy
from rekindle.common.accumulators import IntCounter
from rekindle.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoProcessFunction,
    DataStream,
    FixedDelayRetryStrategy,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStateFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.testing import InProcessJob, assert_survives
from tests.support.environments import environment

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
END = 2**63 - 1
ASIDE = OutputTag("aside")
RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())
TOTAL = ValueStateDescriptor("total", Types.LONG())


def pairs(env: StreamExecutionEnvironment, count: int = 30, typed: bool = True) -> DataStream:
    return env.from_collection([(n * 7 % 4, n) for n in range(count)], PAIR if typed else None)


def timed(env: StreamExecutionEnvironment, count: int = 30) -> DataStream:
    return pairs(env, count).assign_timestamps_and_watermarks(BY_TIME)


def by_key(stream: DataStream) -> Any:
    return stream.key_by(lambda pair: pair[0], int)


def with_aside(stream: DataStream) -> DataStream:
    """Main and side output in one stream, each record with the name of its output."""
    return stream.map(lambda value: ("main", value)).union(
        stream.get_side_output(ASIDE).map(lambda value: ("aside", value))
    )


# -- rolling aggregations ---------------------------------------------------------------------------------------------


@dataclass
class Sale:
    shop: int
    amount: int
    item: str


def sales(env: StreamExecutionEnvironment, shape: Callable[[int, int, str], Any]) -> Any:
    records = [shape(n % 3, n * 37 % 20, f"item {n}") for n in range(24)]
    return env.from_collection(records).key_by(lambda sale: sale.shop if hasattr(sale, "shop") else sale[0])


# -- functions --------------------------------------------------------------------------------------------------------


class Total(KeyedProcessFunction):
    """A running total; each tenth one goes to a side output; a timer emits the last one at the end."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(TOTAL)

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(END)
        if value[1] % 10 == 0:
            yield ASIDE, (ctx.get_current_key(), value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.total.value()
        yield ASIDE, ("end of", ctx.get_current_key())


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        yield (ASIDE, value) if value[1] % 3 else value


class SplitBoth(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield ASIDE, value

    def process_element2(self, value, ctx):
        yield value


class TotalOfBoth(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(TOTAL)

    def add(self, value, ctx):
        self.total.update((self.total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(END)

    def process_element1(self, value, ctx):
        self.add(value, ctx)
        yield ASIDE, value

    def process_element2(self, value, ctx):
        self.add(value, ctx)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.total.value()


class Repeated(CoFlatMapFunction):
    def flat_map1(self, value):
        return [value, value]

    def flat_map2(self, value):
        return None if value[1] % 2 else [value]


class Ruled(BroadcastProcessFunction):
    """Elements wait until their rule has come: the result does not depend on the order of the inputs."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.waiting = store.get_list_state(ListStateDescriptor("waiting", PAIR))

    def snapshot_state(self, context):
        pass

    def process_element(self, value, ctx):
        factor = ctx.get_broadcast_state(RULES).get(value[0])
        if factor is None:
            self.waiting.add(value)
        else:
            yield value[1] * factor
            yield ASIDE, value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        ready = [each for each in self.waiting.get() if each[0] == value[0]]
        self.waiting.update([each for each in self.waiting.get() if each[0] != value[0]])
        for each in ready:
            yield each[1] * value[1]
            yield ASIDE, each


class AddToAll(KeyedStateFunction):
    def __init__(self, amount: int) -> None:
        self.amount = amount

    def process(self, key, state):
        state.update(state.value() + self.amount)


class RaisedTotals(KeyedBroadcastProcessFunction):
    """Broadcast elements change the state of all keys that have one."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(TOTAL)

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(END)
        yield ASIDE, ctx.get_broadcast_state(RULES).keys()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        ctx.apply_to_keyed_state(TOTAL, AddToAll(1000 * value[1]))
        if value[0] == 2:
            ctx.apply_to_keyed_state(TOTAL, lambda key, state: state.clear() if key == 3 else None)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.total.value()


class PairUp(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right, ctx.get_timestamp()
        if left[1] == right[1]:
            yield ASIDE, left


class AskedAgain(AsyncFunction):
    """Fails for every element the first time."""

    def open(self, runtime_context):
        self.asked: set[Any] = set()

    async def async_invoke(self, value):
        await asyncio.sleep(value[1] % 5 / 1000)
        if value not in self.asked:
            self.asked.add(value)
            raise ConnectionError
        return [value, (value[0], -value[1])]


def ruled(env: StreamExecutionEnvironment) -> DataStream:
    rules = env.from_collection([(n, n + 2) for n in range(4)], PAIR).broadcast(RULES)
    return with_aside(pairs(env).connect(rules).process(Ruled()))


def raised(env: StreamExecutionEnvironment) -> DataStream:
    rules = env.from_collection([(n, n + 2) for n in range(4)], PAIR)
    stamped = rules.assign_timestamps_and_watermarks(BY_TIME).broadcast(RULES)
    return with_aside(by_key(timed(env)).connect(stamped).process(RaisedTotals()))


def joined(env: StreamExecutionEnvironment) -> DataStream:
    late = OutputTag("late", PAIR)
    join = by_key(timed(env)).interval_join(by_key(timed(env, 20))).between(-8, 4).upper_bound_exclusive()
    stream = join.side_output_left_late_data(late).side_output_right_late_data(late).process(PairUp())
    return with_aside(stream).union(stream.get_side_output(late))


def asked(env: StreamExecutionEnvironment) -> DataStream:
    strategy = FixedDelayRetryStrategy(2, 1, None, lambda error: isinstance(error, ConnectionError))
    stream = AsyncDataStream.unordered_wait_with_retry(timed(env), AskedAgain(), Time.minutes(1), strategy, 7, PAIR)
    return by_key(stream).process(Total())


PROGRAMS: dict[str, Callable[[StreamExecutionEnvironment], DataStream]] = {
    "sum by position": lambda env: by_key(pairs(env)).sum(1),
    "sum by name": lambda env: sales(env, Sale).sum("amount"),
    "min of rows": lambda env: sales(env, lambda *fields: Row(*fields)).min(1),
    "max of dataclasses": lambda env: sales(env, Sale).max("amount"),
    "min_by of tuples": lambda env: sales(env, lambda *fields: fields).min_by(1),
    "max_by of named rows": lambda env: sales(env, lambda a, b, c: Row(shop=a, amount=b, item=c)).max_by("amount"),
    "reduce of anything": lambda env: by_key(pairs(env, typed=False)).reduce(lambda a, b: (a[0], a[1] ^ b[1])),
    "project": lambda env: by_key(pairs(env)).sum(1).project(1, 0),
    "partition_custom": lambda env: (
        by_key(pairs(env).partition_custom(lambda key, n: key % n, lambda pair: pair[1]).map(lambda pair: pair, PAIR))
        .max(1)
        .map(lambda pair: pair[0])
    ),
    "process": lambda env: with_aside(pairs(env).process(Split())),
    "keyed process": lambda env: with_aside(by_key(timed(env)).process(Total())),
    "co process": lambda env: with_aside(pairs(env).connect(pairs(env, 10)).process(SplitBoth())),
    "keyed co process": lambda env: with_aside(
        timed(env).connect(timed(env, 12)).key_by(lambda a: a[0], lambda b: b[0], int).process(TotalOfBoth())
    ),
    "co flat map": lambda env: pairs(env).connect(pairs(env, 10)).flat_map(Repeated()),
    "union": lambda env: by_key(timed(env).union(timed(env, 5), timed(env, 0))).process(Total()),
    "broadcast process": ruled,
    "keyed broadcast process": raised,
    "interval join": joined,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_operator_survives(program):
    assert assert_survives(PROGRAMS[program], records_per_epoch=4), "a program that gives nothing shows nothing"


def test_async_with_retries_survives():
    """The number of epochs depends on the answers, so the cuts are in the first epochs."""
    results = assert_survives(asked, records_per_epoch=4, cuts=(1, 2, 4, 8))
    assert sorted(results) == [(key, 0) for key in range(4)]


def test_apply_to_keyed_state_reaches_every_key_of_every_subtask_once():
    clean = assert_survives(raised, parallelism=3, parallelisms=(3,), records_per_epoch=1000, cuts=(1,))
    totals = dict(value for side, value in clean if side == "main")
    # In one epoch the elements come first; key 3 is cleared by rule 2, so that rule 3 does not find it.
    raised_by = 1000 * (2 + 3 + 4 + 5)
    assert totals == {key: sum(range(-key % 4, 30, 4)) + raised_by for key in range(3)} | {3: None}


def test_an_accumulator_is_of_the_last_attempt_only():
    """As in Flink: accumulators are not part of checkpoints."""

    class Counted(ProcessFunction):
        def open(self, runtime_context):
            self.seen = IntCounter()
            runtime_context.add_accumulator("seen", self.seen)

        def process_element(self, value, ctx):
            self.seen.add(1)

    def program():
        env = environment(1)
        return env.from_collection(range(10)).process(Counted())

    job = InProcessJob.of(program(), max_records=4)
    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(program(), restore=checkpoint)
    restored.run()
    assert (job.accumulators.values, restored.accumulators.values) == ({"seen": 4}, {"seen": 6})
