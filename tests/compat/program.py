"""A job with every kind of state that a checkpoint can hold. Its checkpoints are kept in `tests/data/checkpoints`.

What it does and the uids of its operators must stay as they are: later versions have to go on from those checkpoints.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from rekindle.common import Configuration, Duration, Time, Types, WatermarkStrategy
from rekindle.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    SourceFunction,
    StreamExecutionEnvironment,
    TwoPhaseCommitSinkFunction,
)
from rekindle.datastream.connectors import (
    Committer,
    Sink,
    StatefulSinkWriter,
    SupportsCommitter,
    SupportsWriterState,
)
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
#: (key, number); event time goes with the number, with a gap after each ten.
RECORDS = [(number * 7 % 3, number) for number in range(40)]
BY_NUMBER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda record, _: record[1] * 1000 + record[1] // 10 * 60_000
)
RULES = MapStateDescriptor("rules", Types.LONG(), Types.STRING())
START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
#: Where the job stands still when its checkpoint is to be kept: what comes from a thread cannot be cut exactly.
PAUSE = 20
#: Records before the pause that have no answer yet.
IN_FLIGHT = 3


@dataclass
class Basket:
    """State without a declared type: pickled."""

    items: list[int]


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class EveryKind(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG()))
        self.untyped = runtime_context.get_state(ValueStateDescriptor("untyped", Types.PICKLED_BYTE_ARRAY()))
        self.elements = runtime_context.get_list_state(ListStateDescriptor("elements", Types.LONG()))
        self.entries = runtime_context.get_map_state(MapStateDescriptor("entries", Types.STRING(), PAIR))
        self.largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", max, Types.LONG()))
        mean = AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.mean = runtime_context.get_aggregating_state(mean)

    def process_element(self, value, ctx):
        number = value[1]
        self.value.update((self.value.value() or 0) + number)
        basket = self.untyped.value() or Basket([])
        self.untyped.update(Basket([*basket.items[-2:], number]))
        self.elements.add(number)
        if number % 5 == 0:
            self.elements.update(list(self.elements.get())[-2:])
        self.entries.put(f"entry {number % 4}", value)
        if number % 6 == 0:
            self.entries.remove("entry 1")
        self.largest.add(number)
        self.mean.add(value)
        entries = sorted(self.entries.items())
        held = self.value.value(), self.untyped.value().items, list(self.elements.get()), entries
        yield ctx.get_current_key(), held, self.largest.get(), self.mean.get()


class Timers(KeyedProcessFunction):
    """One timer of each kind per key and ten numbers."""

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_event_time_timer(ctx.timestamp() + 15_000)
        timers.register_processing_time_timer(START_MS + 90 * MINUTE_MS + value[1] // 10)
        return ()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp


class Expires(KeyedProcessFunction):
    def open(self, runtime_context):
        config = StateTtlConfig.new_builder(Time.hours(1)).build()
        last = ValueStateDescriptor("last", Types.LONG())
        seen = ListStateDescriptor("seen", Types.LONG())
        for each in (last, seen):
            each.enable_time_to_live(config)
        self.last = runtime_context.get_state(last)
        self.seen = runtime_context.get_list_state(seen)

    def process_element(self, value, ctx):
        yield ctx.get_current_key(), self.last.value(), list(self.seen.get() or ())
        self.last.update(value[1])
        self.seen.add(value[1])


class Lists(MapFunction, CheckpointedFunction):
    """Split and union lists of the operator."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split", Types.LONG()))
        self.union = store.get_union_list_state(ListStateDescriptor("union", None))
        self.known = sorted(self.union.get())

    def snapshot_state(self, context):
        self.union.update([("until", max(self.split.get(), default=0))])

    def map(self, value):
        self.split.update([*list(self.split.get())[-3:], value[1]])
        return value[1], list(self.split.get()), self.known


class Listed(MapFunction, ListCheckpointed):
    def __init__(self):
        self.total = 0

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.total]

    def restore_state(self, state):
        self.total = sum(state)

    def map(self, value):
        self.total += value[1]
        return self.total


class Applies(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, f"rule {value}")
        return ()


class Contents(ProcessWindowFunction):
    def process(self, key, context, elements):
        rounds = context.global_state().get_state(ValueStateDescriptor("rounds", Types.LONG()))
        rounds.update((rounds.value() or 0) + 1)
        yield key, rounds.value(), sorted(number for _, number in elements)


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


class Asks(AsyncFunction):
    """Has no answer for the last records before the pause while the checkpoint is made."""

    def __init__(self, pauses):
        self.pauses = pauses

    async def async_invoke(self, value):
        if self.pauses and value[1] >= PAUSE - IN_FLIGHT:
            await asyncio.Event().wait()
        return [value]


class Numbers(SourceFunction):
    """From a thread, with the number as the offset."""

    def __init__(self, pauses):
        self.pauses = pauses
        self.stopped = False

    def run(self, ctx):
        begin = 0 if ctx.restored_offset is None else ctx.restored_offset + 1
        for key, number in RECORDS[begin : PAUSE if self.pauses else None]:
            ctx.collect((key, number), offset=number)
        while self.pauses and not self.stopped:
            time.sleep(0.01)

    def cancel(self):
        self.stopped = True


class Committing(Sink, SupportsCommitter, SupportsWriterState):
    """Commits a file for each committable: the sum so far, which is the writer's state, and the numbers."""

    def __init__(self, directory):
        self.directory = directory

    def create_writer(self, context):
        return CommittingWriter(0)

    def restore_writer(self, context, recovered_state):
        return CommittingWriter(sum(recovered_state))

    def create_committer(self, context):
        return WritesFiles(self.directory)


class CommittingWriter(StatefulSinkWriter):
    def __init__(self, total):
        self.total = total
        self.numbers = []

    def write(self, element, context):
        self.total += element[1]
        self.numbers.append(element[1])

    def flush(self, end_of_input):
        """Nothing is held back."""

    def prepare_commit(self):
        numbers, self.numbers = self.numbers, []
        return [(self.total, numbers)] if numbers else []

    def snapshot_state(self, checkpoint_id):
        return [self.total]

    def close(self):
        """Nothing is open."""


class WritesFiles(Committer):
    def __init__(self, directory):
        self.directory = directory

    def commit(self, commit_requests):
        for request in commit_requests:
            write_file(self.directory, "sink", request.get_committable())

    def close(self):
        """Nothing is open."""


class TwoPhase(TwoPhaseCommitSinkFunction):
    """A transaction is the list of its numbers."""

    def __init__(self, directory):
        super().__init__()
        self.directory = directory

    def begin_transaction(self):
        return []

    def invoke(self, transaction, value, context):
        transaction.append(value[1])

    def pre_commit(self, transaction):
        """Everything is in the transaction."""

    def commit(self, transaction):
        if transaction:
            write_file(self.directory, "two-phase", transaction)

    def abort(self, transaction):
        """Nobody has seen it."""


def write_file(directory, sink, content):
    """Once and again the same file."""
    numbers = content[-1] if sink == "sink" else content
    (Path(directory) / f"{sink}-{numbers[0]}").write_text(repr(content))


def committed(directory):
    """What the sinks have committed, as lines."""
    return sorted(f"{path.name}: {path.read_text()}" for path in Path(directory).iterdir())


def job(directory, *, parallelism=1, pauses=False, **settings):
    """The stream of everything that comes out; the sinks write into the directory."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(parallelism).set_max_parallelism(4).enable_checkpointing(1000)
    pairs = env.from_collection(RECORDS, PAIR).uid("records")
    # By one subtask, so that the order of a key's records does not depend on parallelism.
    timed = pairs.assign_timestamps_and_watermarks(BY_NUMBER).uid("time").set_parallelism(1)
    keyed = timed.key_by(lambda pair: pair[0], Types.LONG())
    rules = env.from_collection([1, 2], Types.LONG()).uid("rules").broadcast(RULES)
    asked = AsyncDataStream.ordered_wait(pairs, Asks(pauses), Time.hours(10), 100, PAIR)
    tumbling = keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(30)))
    sliding = keyed.window(SlidingEventTimeWindows.of(Duration.of_minutes(2), Duration.of_minutes(1)))
    other = timed.key_by(lambda pair: pair[0], Types.LONG())
    branches = {
        "every kind": keyed.process(EveryKind()),
        "timers": keyed.process(Timers()),
        "expires": keyed.process(Expires()),
        "lists": timed.map(Lists()),
        "listed": timed.map(Listed()),
        "applies": keyed.connect(rules).process(Applies()),
        "tumbling": tumbling.reduce(lambda a, b: (a[0], a[1] + b[1])),
        "sliding": sliding.aggregate(Mean(), accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG()])),
        "sessions": keyed.window(EventTimeSessionWindows.with_gap(Duration.of_seconds(30))).process(Contents()),
        "global": keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(3)).process(Contents()),
        "counted": keyed.count_window(4).process(Contents()),
        "rolling": keyed.reduce(lambda a, b: (a[0], a[1] + b[1])),
        "joined": keyed.interval_join(other).between(Time.seconds(-3), Time.seconds(0)).process(Pairs()),
        "asked": asked,
        "numbers": env.add_source(Numbers(pauses), "numbers", PAIR),
    }
    pairs.sink_to(Committing(str(directory))).uid("committing")
    pairs.add_sink(TwoPhase(str(directory))).uid("two-phase")
    results = [
        stream.uid(name).map(lambda result, name=name: (name, result)).uid(f"to {name}")
        for name, stream in branches.items()
    ]
    return results[0].union(*results[1:])
