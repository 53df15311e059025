"""Checkpoints and restores through the real tasks, in process: small programs × where the cut falls × parallelism."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from rekindle.checkpoint.manifest import FileRef, ManifestKind, PartKind
from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CheckpointListener,
    CoProcessFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ParallelSourceFunction,
    ProcessFunction,
    SourceFunction,
)
from rekindle.datastream.connectors.base import Batch, Boundedness, Source, SourceReader, SourceSplit
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rekindle.errors import CorruptCheckpointError, IncompatibleStateError, TypeMismatchError
from rekindle.graph.nodes import OperatorKind
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.snapshot import SnapshotDeclinedError
from rekindle.testing import InProcessJob, ManualClock, assert_survives
from tests.environments import checkpointed, environment

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
BEGINNING = -(2**63)
#: Event times far in the future: their timers fire when the input ends.
END_OF_TIME = 10**15


def by_time(bound_ms: int = 0) -> WatermarkStrategy:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return strategy.with_timestamp_assigner(lambda value, _: value[1])


# -- programs that must give the same multiset whatever happens --------------------------------------------------------


class EveryKindOfState(KeyedProcessFunction):
    """Value, list, map, reducing and aggregating state, and a timer at the end of time that tells them all."""

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
    """Tells at the end what came."""

    def open(self, runtime_context):
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.LONG()))

    def process_element(self, value, ctx):
        self.values.add(value)
        ctx.timer_service().register_event_time_timer(END_OF_TIME)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), sorted(self.values.get())


class Sessions(KeyedProcessFunction):
    """Timers that are moved with every record, and fire in between."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.due = runtime_context.get_state(ValueStateDescriptor("due", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        service = ctx.timer_service()
        if self.due.value() is not None:
            service.delete_event_time_timer(self.due.value())
        self.due.update(max(self.due.value() or 0, value[1] + 15))
        service.register_event_time_timer(self.due.value())

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.count.value()
        self.count.clear()
        self.due.clear()


class Joined(CoProcessFunction):
    """A keyed join by hand: both sides wait for each other."""

    def open(self, runtime_context):
        self.sides = [
            runtime_context.get_list_state(ListStateDescriptor(name, Types.LONG())) for name in ("left", "right")
        ]

    def process_element1(self, value, ctx):
        self.sides[0].add(value)
        for other in self.sides[1].get() or ():
            yield value, other

    def process_element2(self, value, ctx):
        self.sides[1].add(value)
        for other in self.sides[0].get() or ():
            yield other, value


def keyed_sums(env):
    numbers = env.from_collection([(n % 5, n) for n in range(40)], PAIR)
    return numbers.key_by(lambda pair: pair[0], int).reduce(lambda a, b: (a[0], a[1] + b[1]))


def every_kind_of_state(env):
    return env.from_collection(list(range(40)), int).key_by(lambda n: n % 6, int).process(EveryKindOfState())


def event_timers(env):
    records = [(n % 3, n * 4 % 90) for n in range(36)]
    stream = env.from_collection(sorted(records, key=lambda pair: pair[1] // 10), PAIR)
    return stream.assign_timestamps_and_watermarks(by_time(10)).key_by(lambda pair: pair[0], int).process(Sessions())


def joined(env):
    left, right = env.from_sequence(0, 15), env.from_sequence(0, 24)
    key = lambda n: n % 4  # noqa: E731
    return left.connect(right).key_by(key, key, int).process(Joined())


def splits_and_exchanges(env):
    stream = env.from_sequence(1, 50).rebalance().map(lambda n: n * 3).shuffle().filter(lambda n: n % 2)
    return stream.rescale().map(lambda n: n + 1).set_parallelism(1)


def sources_of_unequal_length(env):
    short, long = env.from_sequence(1, 3), env.from_collection(list(range(100, 130)), int)
    generated = env.from_source(
        DataGeneratorSource(lambda n: -n, 17), WatermarkStrategy.no_watermarks(), "generated", int
    )
    return short.union(long, generated).key_by(lambda n: n % 3, int).process(Gathered())


PROGRAMS = [
    keyed_sums,
    every_kind_of_state,
    event_timers,
    joined,
    splits_and_exchanges,
    sources_of_unequal_length,
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_the_same_output_wherever_the_cut_falls_and_whoever_goes_on(program, parallelism):
    expected = assert_survives(program, parallelism=parallelism, parallelisms=(1, 2, 3))
    assert expected


def test_checkpoints_may_stand_anywhere():
    """Each epoch of one program, not only the four that the table picks."""
    assert_survives(every_kind_of_state, parallelism=2, parallelisms=(2, 3), cuts=range(1, 15))


# -- the same boundaries give the same result, to the order (I1) ------------------------------------------------------


class Tagged(MapFunction):
    """With the subtask that saw the record."""

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.subtask, value


class Times(KeyedProcessFunction):
    """What each record sees of event time."""

    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class UnkeyedTimes(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def round_robin(env):
    return env.from_collection(list(range(31)), int).rebalance().map(Tagged()).set_parallelism(3)


def rescaled_round_robin(env):
    return env.from_collection(list(range(31)), int).rescale().map(Tagged()).set_parallelism(3)


def shuffled(env):
    return env.from_sequence(1, 80).shuffle().map(Tagged())


def watermarks_after_an_exchange(env):
    records = [(n % 4, 7 * n % 50) for n in range(36)]
    return (
        env.from_collection(records, PAIR)
        .assign_timestamps_and_watermarks(by_time(3))
        .key_by(lambda pair: pair[0], int)
        .process(Times())
    )


def watermarks_inside_a_chain(env):
    records = [(n % 4, 7 * n % 50) for n in range(36)]
    return env.from_collection(records, PAIR).assign_timestamps_and_watermarks(by_time(3)).process(UnkeyedTimes())


IN_ORDER = [round_robin, rescaled_round_robin, shuffled, watermarks_after_an_exchange, watermarks_inside_a_chain]


@pytest.mark.parametrize("cut", [1, 3, 7])
@pytest.mark.parametrize("program", IN_ORDER)
def test_same_checkpoint_same_boundaries_same_result(program, cut):
    """I1: counters of round robin, seeds of shuffle and watermarks (I6) belong to the cut."""
    undisturbed = InProcessJob.of(program(checkpointed(2)), max_records=3)
    before = [undisturbed.checkpoint().results for _ in range(cut)]
    after = [undisturbed.epoch() for _ in range(4)]
    job = InProcessJob.of(program(checkpointed(2)), max_records=3)
    for expected in before:
        checkpoint = job.checkpoint()
        assert checkpoint.results == expected
    job.epoch()
    job.kill()
    restored = InProcessJob.of(program(checkpointed(2)), max_records=3, restore=checkpoint)
    assert [restored.epoch() for _ in range(4)] == after
    assert any(after)
    undisturbed.kill()
    restored.kill()


# -- watermarks (I6) ---------------------------------------------------------------------------------------------------


def late(parallelism, strategy=None):
    env = checkpointed(parallelism)
    records = [(1, 100), (2, 100), (1, 50), (2, 60)]
    stream = env.from_collection(records, PAIR).assign_timestamps_and_watermarks(strategy or by_time())
    return stream.set_parallelism(1).key_by(lambda pair: pair[0], int).process(Times())


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_late_elements_are_late_after_a_restore(parallelism):
    """I6: the watermark an operator had is the least that it has after a restore, whatever its parallelism."""
    job = InProcessJob.of(late(2), max_records=2)
    checkpoint = job.checkpoint()
    job.kill()
    results = InProcessJob.of(late(parallelism), max_records=2, restore=checkpoint).run()
    assert sorted(results) == [((1, 50), 50, 99), ((2, 60), 60, 99)]


class TwoSplits(Source):
    """One split is far ahead of the other in event time; who has both reads the one behind first."""

    SPLITS = {"0": [1000, 1010, 1020, 1030, 1040], "1": [10, 20, 30, 40, 50]}

    def boundedness(self):
        return Boundedness.BOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit(name, 0) for name in self.SPLITS]

    def create_reader(self, context, splits):
        return TwoSplitsReader(splits)


class TwoSplitsReader(SourceReader):
    def __init__(self, splits):
        self.splits = list(splits)

    def poll(self, max_records):
        while self.splits:
            split = self.splits.pop()
            times = TwoSplits.SPLITS[split.split_id]
            if split.position < len(times):
                self.splits.append(SourceSplit(split.split_id, split.position + 1))
                time = times[split.position]
                return Batch([(int(split.split_id), time)], [time])
        return None

    def snapshot_state(self):
        return self.splits


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_channel_of_another_sender_promises_nothing(parallelism):
    """I6: what a channel had promised holds for the sender of then; after a rescale of the senders it begins anew."""

    def program(width):
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        stream = checkpointed(width).from_source(TwoSplits(), strategy, "two splits", PAIR)
        return stream.key_by(lambda pair: pair[0], int).process(Times()).set_parallelism(1)

    job = InProcessJob.of(program(2), max_records=1)
    checkpoint = job.checkpoint()
    assert sorted(value for value, *_ in checkpoint.results) == [(0, 1000), (1, 10)]
    job.kill()
    restored = InProcessJob.of(program(parallelism), max_records=1, restore=checkpoint)
    results = restored.run()
    assert sorted(value for value, *_ in results) == [
        (split, time) for split in (0, 1) for time in TwoSplits.SPLITS[str(split)][1:]
    ]
    assert all(watermark < timestamp for _, timestamp, watermark in results), "some became late"
    assert min(watermark for *_, watermark in results) >= 9, "the watermark went back"


# -- sources: positions and their end (I8, I9) -------------------------------------------------------------------------


class Remembering(SourceFunction):
    """Notes where it started; waits in the middle if told to."""

    started: list[object] = []
    paused = threading.Event()
    go = threading.Event()

    def __init__(self, count, pause_at=None):
        self.count = count
        self.pause_at = pause_at

    def run(self, ctx):
        self.started.append(ctx.restored_offset)
        start = -1 if ctx.restored_offset is None else ctx.restored_offset
        for number in range(start + 1, self.count):
            ctx.collect(number, offset=number)
            if number == self.pause_at:
                self.paused.set()
                self.go.wait(10)

    def cancel(self):
        self.go.set()


@pytest.fixture
def started():
    Remembering.started.clear()
    Remembering.paused.clear()
    Remembering.go.clear()
    return Remembering.started


def wait_until_returned(job):
    for task in job.tasks.values():
        if task.chain.stage == 0 and hasattr(task._head, "_thread") and task._head._thread.ident is not None:
            task._head._thread.join(10)
            assert not task._head._thread.is_alive()


def test_a_source_function_goes_on_after_the_offset_of_the_cut(started):
    """I8: the offset of the last record before the cut, whatever was collected after it."""
    job = InProcessJob.of(checkpointed(1).add_source(Remembering(10, pause_at=5), type_info=int))
    assert Remembering.paused.wait(10)
    checkpoint = job.checkpoint()
    Remembering.go.set()
    wait_until_returned(job)
    job.epoch()
    job.kill()
    restored = InProcessJob.of(checkpointed(1).add_source(Remembering(10), type_info=int), restore=checkpoint)
    wait_until_returned(restored)
    assert restored.run() == [6, 7, 8, 9]
    assert started == [None, 5]


def finished_and_not(parallelism):
    env = checkpointed(parallelism)
    done = env.add_source(Remembering(3), type_info=int)
    return done.union(env.from_collection(list(range(100, 110)), int)).key_by(lambda n: n % 2, int).process(Gathered())


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_source_that_had_ended_is_not_run_again(started, parallelism):
    """I9: its end is said again, whoever has forgotten it, and the job ends with what the others still bring."""
    job = InProcessJob.of(finished_and_not(2), max_records=4)
    wait_until_returned(job)
    job.epoch()
    checkpoint = job.checkpoint()
    job.kill()
    assert started == [None]
    restored = InProcessJob.of(finished_and_not(parallelism), max_records=4, restore=checkpoint)
    results = restored.run()
    assert started == [None], "the source that had ended was run again"
    assert sorted(results) == [(0, [0, 2, 100, 102, 104, 106, 108]), (1, [1, 101, 103, 105, 107, 109])]


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("tail", [(1, 1), (2, 2), (2, 3), (3, 1)])
def test_one_subtask_has_ended_and_another_has_not(before, after, tail):
    """I9: the tasks behind a subtask that ended early end with it, and wake up when others send to them now."""
    tail_before, tail_after = tail

    def program(parallelism, tail_parallelism):
        env = checkpointed(parallelism)
        # Three splits of unequal length, so that subtasks end in different epochs.
        numbers = env.from_source(Uneven(), WatermarkStrategy.no_watermarks(), "uneven", int)
        mapped = numbers.map(lambda n: n + 1).disable_chaining()
        again = mapped.map(lambda n: n - 1).disable_chaining()
        return again.key_by(lambda n: n % 2, int).process(Gathered()).set_parallelism(tail_parallelism)

    job = InProcessJob.of(program(before, tail_before), max_records=2)
    for _ in range(2):
        checkpoint = job.checkpoint()
        assert checkpoint.results == []
    job.kill()
    restored = InProcessJob.of(program(after, tail_after), max_records=2, restore=checkpoint)
    gathered = run_at_most(restored, 20)
    assert sorted(gathered) == [(rest, [n for n in Uneven.everything() if n % 2 == rest]) for rest in (0, 1)]


class Uneven(Source):
    """Splits "1", "4" and "9": the numbers below each, times a hundred."""

    LENGTHS = (1, 4, 9)

    @classmethod
    def everything(cls):
        return [length * 100 + number for length in cls.LENGTHS for number in range(length)]

    def boundedness(self):
        return Boundedness.BOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit(str(length), 0) for length in self.LENGTHS]

    def create_reader(self, context, splits):
        return UnevenReader(splits)


class UnevenReader(SourceReader):
    def __init__(self, splits):
        self.left = list(splits)

    def poll(self, max_records):
        while self.left:
            split = self.left[0]
            length, until = int(split.split_id), min(int(split.split_id), split.position + max_records)
            records = [length * 100 + number for number in range(split.position, until)]
            if records:
                self.left[0] = SourceSplit(split.split_id, until)
                return records
            self.left.pop(0)
        return None

    def snapshot_state(self):
        return list(self.left)


def run_at_most(job, epochs):
    """A job that does not end is a failure, not an endless test."""
    collected = []
    for _ in range(epochs):
        if job.finished:
            return collected + job.run()
        collected += job.epoch()
    raise AssertionError(f"the job did not end within {epochs} epochs")


def test_a_restore_from_the_last_checkpoint_of_a_job_gives_nothing_new():
    """I9: everything had ended, so nothing is emitted, fired or finished again."""
    job = InProcessJob.of(every_kind_of_state(checkpointed(2)), max_records=10)
    while not job.finished:
        job.epoch()
    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(every_kind_of_state(checkpointed(2)), restore=checkpoint)
    assert run_at_most(restored, 3) == []


# -- operator state ----------------------------------------------------------------------------------------------------


class Holding(FlatMapFunction, CheckpointedFunction):
    """Keeps everything in operator state and tells, when it begins, what it has."""

    begun: list[tuple[int, bool, int | None, list[int]]] = []

    def __init__(self, union):
        self.union = union

    def open(self, runtime_context):
        restored, checkpoint_id, held = self.found
        self.begun.append((runtime_context.get_index_of_this_subtask(), restored, checkpoint_id, held))

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        get = store.get_union_list_state if self.union else store.get_list_state
        self.state = get(ListStateDescriptor("held", Types.LONG()))
        self.held = list(self.state.get())
        self.found = context.is_restored(), context.get_restored_checkpoint_id(), list(self.held)

    def snapshot_state(self, context):
        self.state.update(self.held)

    def flat_map(self, value):
        self.held.append(value)
        return ()


@pytest.fixture
def begun():
    Holding.begun.clear()
    return Holding.begun


def holding(parallelism, union=False):
    return checkpointed(parallelism).from_collection(list(range(7)), int).rebalance().flat_map(Holding(union))


def holding_cut(begun, union):
    job = InProcessJob.of(holding(2, union))
    assert begun == [(0, False, None, []), (1, False, None, [])]
    checkpoint = job.checkpoint()
    job.kill()
    begun.clear()
    return checkpoint


def test_split_lists_stay_with_their_subtask_or_are_dealt_out_again(begun):
    checkpoint = holding_cut(begun, union=False)
    own = [[1, 3, 5], [0, 2, 4, 6]]
    InProcessJob.of(holding(2), restore=checkpoint).kill()
    assert begun == [(0, True, 1, own[0]), (1, True, 1, own[1])]
    begun.clear()
    InProcessJob.of(holding(3), restore=checkpoint).kill()
    assert [subtask for subtask, *_ in begun] == [0, 1, 2]
    assert sorted(value for *_, held in begun for value in held) == list(range(7))
    assert max(len(held) for *_, held in begun) - min(len(held) for *_, held in begun) <= 1, "not dealt in turn"
    begun.clear()
    InProcessJob.of(holding(1), restore=checkpoint).kill()
    assert begun == [(0, True, 1, own[0] + own[1])]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_union_lists_go_to_everybody(begun, parallelism):
    checkpoint = holding_cut(begun, union=True)
    InProcessJob.of(holding(parallelism, union=True), restore=checkpoint).kill()
    assert [(subtask, sorted(held)) for subtask, _, _, held in begun] == [
        (subtask, list(range(7))) for subtask in range(parallelism)
    ]


class Listed(MapFunction, ListCheckpointed):
    """Numbers its records over all attempts."""

    def __init__(self):
        self.seen = 0

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.seen]

    def restore_state(self, state):
        self.seen = sum(state)

    def map(self, value):
        self.seen += 1
        return self.seen


def test_list_checkpointed():
    expected = assert_survives(
        lambda env: env.from_collection(list(range(12))).map(Listed()).set_parallelism(1), parallelisms=(1, 2)
    )
    assert expected == list(range(1, 13))


class Flushing(MapFunction):
    """Keeps nothing, but has work to do at the barrier: the method counts by its name, without its partner."""

    flushed: list[int] = []

    def snapshot_state(self, context):
        self.flushed.append(context.get_checkpoint_id())

    def map(self, value):
        return value


def test_a_function_that_only_flushes_is_told_of_every_snapshot():
    Flushing.flushed.clear()
    job = InProcessJob.of(checkpointed(1).from_collection([1, 2], int).map(Flushing()), max_records=1)
    job.checkpoint()
    job.checkpoint()
    assert Flushing.flushed == [1, 2]


class ListedNothing(Listed):
    """Has nothing to say."""

    def snapshot_state(self, checkpoint_id, timestamp):
        return None


def test_list_checkpointed_with_none_is_an_empty_list():
    def program(env):
        return env.from_collection(list(range(4))).map(ListedNothing())

    job = InProcessJob.of(program(checkpointed(1)), max_records=3)
    checkpoint = job.checkpoint()
    job.kill()
    assert checkpoint.declined is None
    assert InProcessJob.of(program(checkpointed(1)), restore=checkpoint).run() == [1]


class Misdeclared(KeyedProcessFunction):
    """Keeps what it did not declare."""

    def open(self, runtime_context):
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.LONG()))

    def process_element(self, value, ctx):
        self.kept.update(str(value))
        yield value


def test_state_that_does_not_fit_its_declared_type_is_not_checkpointed():
    """A checkpoint with it would be complete, and nobody could restore it."""
    env = checkpointed(1)
    job = InProcessJob.of(env.from_collection([1, 2]).key_by(lambda n: n).process(Misdeclared()), max_records=1)
    checkpoint = job.checkpoint(complete=False)
    with pytest.raises(TypeMismatchError, match="'1' does not fit its declared type Long"):
        job.complete(checkpoint)
    job.kill()


RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class Ruled(BroadcastProcessFunction):
    """Answers with the rules it knows."""

    def process_element(self, value, ctx):
        rules = dict(ctx.get_broadcast_state(RULES).items())
        yield value, sorted(rules.items())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, value * value)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_broadcast_state_goes_to_everybody(parallelism):
    def program(width):
        env = checkpointed(width)
        rules = env.from_collection([1, 2, 3], int).broadcast(RULES)
        slow = env.from_collection(list(range(12)), int).rebalance()
        return slow.connect(rules).process(Ruled())

    job = InProcessJob.of(program(2), max_records=3)
    checkpoint = job.checkpoint()
    job.kill()
    results = InProcessJob.of(program(parallelism), max_records=3, restore=checkpoint).run()
    assert sorted(results) == [(value, [(1, 1), (2, 4), (3, 9)]) for value in range(3, 12)]


def test_broadcast_state_is_there_from_the_start(caplog):
    """Whoever declares it need not have asked for it, and learns at once that it cannot be taken back."""

    def program(rules):
        env = checkpointed(1)
        broadcast = env.from_collection([1, 2, 3], int).broadcast(rules)
        return env.from_collection([], int).connect(broadcast).process(Ruled())

    job = InProcessJob.of(program(RULES))
    checkpoint = job.checkpoint()
    job.kill()
    job = InProcessJob.of(program(RULES), restore=checkpoint)
    job.checkpoint()
    job.kill()
    assert "nothing has asked" not in caplog.text
    with pytest.raises(OperatorFailure, match="Co-Process-Broadcast") as caught:
        InProcessJob.of(program(MapStateDescriptor("rules", Types.STRING(), Types.LONG())), restore=checkpoint)
    assert isinstance(caught.value.__cause__, IncompatibleStateError)


# -- the life of a checkpoint ------------------------------------------------------------------------------------------


class Trace(MapFunction, CheckpointedFunction, CheckpointListener):
    """Writes down what is called, in order."""

    calls: list[str] = []

    def __init__(self, name, fails=False):
        self.name = name
        self.fails = fails

    def initialize_state(self, context):
        self.calls.append(f"initialize {self.name}")

    def open(self, runtime_context):
        self.calls.append(f"open {self.name}")

    def snapshot_state(self, context):
        self.calls.append(f"snapshot {self.name} {context.get_checkpoint_id()}")
        if self.fails:
            raise ValueError("no snapshot today")

    def notify_checkpoint_complete(self, checkpoint_id):
        self.calls.append(f"complete {self.name} {checkpoint_id}")

    def notify_checkpoint_aborted(self, checkpoint_id):
        self.calls.append(f"aborted {self.name} {checkpoint_id}")

    def close(self):
        self.calls.append(f"close {self.name}")

    def map(self, value):
        return value


@pytest.fixture
def calls():
    Trace.calls.clear()
    return Trace.calls


def traced(fails=False):
    env = checkpointed(1)
    stream = env.from_collection([1, 2, 3, 4], int).map(Trace("head")).map(Trace("middle", fails))
    return stream.rebalance().map(Trace("tail"))


def test_chained_functions_begin_snapshot_and_hear_from_tail_to_head(calls):
    """I2: in each chain the sink's side first, the source's last; of a savepoint nobody is told."""
    job = InProcessJob.of(traced(), max_records=1)
    begin = ["initialize middle", "initialize head", "open middle", "open head", "initialize tail", "open tail"]
    assert calls == begin
    calls.clear()
    job.checkpoint()
    snapshots = ["snapshot middle 1", "snapshot head 1", "snapshot tail 1"]
    assert calls == [*snapshots, "complete tail 1", "complete middle 1", "complete head 1"]
    calls.clear()
    job.abort(job.checkpoint(complete=False))
    assert calls[3:] == ["aborted tail 2", "aborted middle 2", "aborted head 2"]
    calls.clear()
    assert job.checkpoint(savepoint=True).manifest.kind is ManifestKind.SAVEPOINT
    assert calls == ["snapshot middle 3", "snapshot head 3", "snapshot tail 3"]
    calls.clear()
    job.run()
    assert calls[:3] == ["snapshot middle 4", "snapshot head 4", "snapshot tail 4"], "no final checkpoint"
    assert calls[3:6] == ["complete tail 4", "complete middle 4", "complete head 4"]
    assert calls[6:] == ["close middle", "close head", "close tail"]


def test_a_snapshot_that_fails_is_declined_with_its_cause(calls):
    """I19: a failed checkpoint is not a failed epoch; everybody hears that it was aborted."""
    job = InProcessJob.of(traced(fails=True), max_records=1)
    checkpoint = job.checkpoint()
    assert isinstance(checkpoint.declined, SnapshotDeclinedError)
    assert str(checkpoint.declined).startswith("Could not complete snapshot 1 for operator Map")
    assert isinstance(checkpoint.declined.__cause__, ValueError)
    assert calls[-3:] == ["aborted tail 1", "aborted middle 1", "aborted head 1"]
    assert checkpoint.results + job.epoch() == [1, 2]
    with pytest.raises(AssertionError, match="Could not complete snapshot 1"):
        InProcessJob.of(traced(), restore=checkpoint)
    job.kill()


def test_what_came_after_the_barrier_is_not_in_a_slow_upload():
    """I13: snapshots are encoded long after the cut, while user code has changed everything."""
    job = InProcessJob.of(every_kind_of_state(checkpointed(2)), max_records=5)
    checkpoint = job.checkpoint(complete=False)
    collected = list(checkpoint.results)
    for _ in range(3):
        job.epoch()
    job.complete(checkpoint)  # written only now
    job.kill()
    collected += InProcessJob.of(every_kind_of_state(checkpointed(2)), restore=checkpoint).run()
    clean = InProcessJob.of(every_kind_of_state(checkpointed(2))).run()
    assert Counter(map(repr, collected)) == Counter(map(repr, clean))


def test_an_aborted_checkpoint_leaves_its_changes_to_the_next():
    """I12, I19: deltas stand on the last completed one; what an aborted one covered is in the next."""
    job = InProcessJob.of(keyed_sums(checkpointed(2)), max_records=4)
    collected = list(job.checkpoint().results)
    lost = job.checkpoint(complete=False)
    collected += lost.results + job.epoch()
    job.abort(lost)
    with pytest.raises(AssertionError, match="was aborted"):
        lost.manifest  # noqa: B018
    checkpoint = job.checkpoint()
    collected += checkpoint.results
    assert checkpoint.order.base_id == 1
    job.kill()
    collected += InProcessJob.of(keyed_sums(checkpointed(2)), restore=checkpoint).run()
    assert sorted(collected) == sorted(InProcessJob.of(keyed_sums(checkpointed(2))).run())


def test_checkpoints_that_are_not_incremental_hold_everything():
    env = checkpointed(2)
    env.get_configuration().set_string("execution.checkpointing.incremental", "false")
    job = InProcessJob.of(keyed_sums(env), max_records=4)
    checkpoints = [job.checkpoint() for _ in range(3)]
    assert [kinds(checkpoint.manifest) for checkpoint in checkpoints] == [{PartKind.FULL}] * 3
    collected = [result for checkpoint in checkpoints for result in checkpoint.results]
    job.kill()
    collected += InProcessJob.of(keyed_sums(checkpointed(2)), restore=checkpoints[-1]).run()
    assert sorted(collected) == sorted(InProcessJob.of(keyed_sums(checkpointed(2))).run())


def test_later_checkpoints_hold_deltas_and_savepoints_everything():
    """I12: savepoints neither stand on another nor carry one."""
    job = InProcessJob.of(keyed_sums(checkpointed(2)), max_records=4)
    first, second = job.checkpoint().manifest, job.checkpoint().manifest
    savepoint, third = job.checkpoint(savepoint=True).manifest, job.checkpoint()
    assert kinds(first) == kinds(savepoint) == {PartKind.FULL}
    assert PartKind.DELTA in kinds(second)
    assert third.order.base_id == 2
    assert any(isinstance(blob, FileRef) for blob in third.manifest.blobs())
    job.kill()


def kinds(manifest):
    return {part.kind for state in manifest.operators for subtask in state.subtasks for part in subtask.keyed}


def test_processing_time_timers_fire_after_the_restore_when_their_time_has_come():
    """I4: a timer that comes due after barrier n is in snapshot n, and what it emits belongs to a later epoch."""

    class Alarm(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(1000 * (1 + value))

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    def program(parallelism):
        env = checkpointed(parallelism)
        return (
            env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "none", int)
            .key_by(lambda n: n)
            .process(Alarm())
        )

    job = InProcessJob.of(program(2), ManualClock())
    checkpoint = job.checkpoint()
    assert checkpoint.results == []
    job.kill()
    clock = ManualClock()
    restored = InProcessJob.of(program(3), clock, restore=checkpoint)
    assert restored.epoch() == []
    clock.advance(2000)
    assert sorted(restored.epoch()) == [(0, 1000), (1, 2000)]
    clock.advance(1000)
    assert restored.epoch() == [(2, 3000)]
    restored.kill()


class Endless(Source):
    """Three numbers, and then nothing, for ever."""

    def boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit("0", 0)]

    def create_reader(self, context, splits):
        return EndlessReader(splits)


class EndlessReader(SourceReader):
    def __init__(self, splits):
        self.splits = splits

    def poll(self, max_records):
        if not self.splits or self.splits[0].position:
            return []
        self.splits = [SourceSplit("0", 3)]
        return [0, 1, 2]

    def snapshot_state(self):
        return self.splits


def test_a_restored_function_sees_another_attempt_number():
    class Attempt(MapFunction):
        def open(self, runtime_context):
            self.attempt = runtime_context.get_attempt_number()

        def map(self, value):
            return self.attempt

    def program():
        return checkpointed(1).from_collection([1, 2], int).map(Attempt())

    job = InProcessJob.of(program(), max_records=1)
    checkpoint = job.checkpoint()
    job.kill()
    assert (checkpoint.results, InProcessJob.of(program(), restore=checkpoint).run()) == ([0], [1])


def wait_for(condition, seconds=10.0):
    """Asks often; whether it became true."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition() and time.monotonic() < deadline:
        pause.wait(0.005)
    return condition()


def test_offsets_without_splits_keep_their_parallelism(started):
    """I8: an offset per subtask says nothing about another number of subtasks."""

    class EachItsOwn(ParallelSourceFunction):
        def run(self, ctx):
            ctx.collect(1, offset=1)
            Remembering.go.wait(10)

        def cancel(self):
            Remembering.go.set()

    def program(parallelism):
        return checkpointed(parallelism).add_source(EachItsOwn(), "each its own", int)

    job = InProcessJob.of(program(2))
    assert wait_for(lambda: all(task.has_input() for task in job.tasks.values()))
    checkpoint = job.checkpoint()
    job.kill()
    with pytest.raises(OperatorFailure) as refused:
        InProcessJob.of(program(3), restore=checkpoint)
    assert isinstance(refused.value.__cause__, IncompatibleStateError)
    assert "'Source: each its own' keeps an offset per subtask" in str(refused.value.__cause__)


def test_an_operator_that_is_gone_is_named_and_may_be_dropped():
    def numbers(allow=False):
        env = environment(**{"execution.state-recovery.ignore-unclaimed-state": str(allow)})
        return env.from_collection([1, 2, 3], int)

    job = InProcessJob.of(numbers().key_by(lambda n: n, int).process(Gathered()).name("gathered"), max_records=1)
    checkpoint = job.checkpoint()
    job.kill()
    with pytest.raises(IncompatibleStateError, match="state of the operator 'gathered'"):
        InProcessJob.of(numbers().map(str), restore=checkpoint)
    assert InProcessJob.of(numbers(allow=True).map(str), restore=checkpoint).run() == ["2", "3"]


def test_a_killed_job_ends_the_threads_of_its_sources():
    class Forever(SourceFunction):
        def run(self, ctx):
            number = 0
            while True:
                ctx.collect(number)
                number += 1

        def cancel(self):
            """The full buffer ends it."""

    job = InProcessJob.of(checkpointed(1).add_source(Forever(), type_info=int), max_records=10)
    job.epoch()
    threads = [task._head._thread for task in job.tasks.values() if task.chain.stage == 0]
    job.kill()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_the_error_of_a_function_comes_out_of_the_checkpoint_s_epoch():
    job = InProcessJob.of(checkpointed(1).from_collection([0], int).map(lambda n: 1 // n))
    with pytest.raises(OperatorFailure):
        job.checkpoint()
    job.kill()


# -- damage (I16) ------------------------------------------------------------------------------------------------------


def cut_short(data):
    return data[:-3]


def flipped(data):
    changed = bytearray(data)
    changed[len(data) * 2 // 3] ^= 1
    return bytes(changed)


def foreign(data):
    return b"PK\x03\x04 an archive"


def newer(data):
    changed = bytearray(data)
    changed[8] = 3  # the format's version
    return bytes(changed)


@pytest.mark.parametrize(
    ("file", "damage", "sentence"),
    [
        ("_metadata", cut_short, r"chk-2/_metadata is truncated"),
        ("_metadata", flipped, r"chk-2/_metadata is damaged: its checksum"),
        ("_metadata", foreign, r"chk-2/_metadata was not written by Rekindle"),
        ("_metadata", newer, r"chk-2/_metadata has format 3, which a newer version of Rekindle wrote"),
        (".state", cut_short, r"state file .*shared/2-.*\.state is truncated"),
        (".state", flipped, r"state file .*shared/2-.*\.state is damaged: the checksum"),
        (".state", lambda data: None, r"state file .*shared/2-.*\.state is missing"),
    ],
)
def test_a_damaged_checkpoint_is_refused_by_name(file, damage, sentence):
    """I16: through the restore of the tasks, where checksums of state are compared; the older one is still good."""
    job = InProcessJob.of(every_kind_of_state(checkpointed(2)), max_records=5)
    first, second = job.checkpoint(), job.checkpoint()
    job.kill()
    store = second.store
    for entry in store.list():
        if ("/chk-2/" in entry.path or "/2-" in entry.path) and entry.path.endswith(file):
            content = damage(store.read(entry.path))
            store.delete(entry.path)
            if content is not None:
                store.put(entry.path, content)
    with pytest.raises(CorruptCheckpointError, match=sentence):
        InProcessJob.of(every_kind_of_state(checkpointed(3)), restore=second)
    collected = first.results + InProcessJob.of(every_kind_of_state(checkpointed(2)), restore=first).run()
    clean = InProcessJob.of(every_kind_of_state(checkpointed(2))).run()
    assert Counter(map(repr, collected)) == Counter(map(repr, clean))


# -- the number of key groups ------------------------------------------------------------------------------------------


def with_key_groups(parallelism, maximum=None):
    env = checkpointed(parallelism)
    if maximum is not None:
        env.set_max_parallelism(maximum)
    return keyed_sums(env)


def keyed_cut(maximum):
    job = InProcessJob.of(with_key_groups(2, maximum), max_records=10)
    checkpoint = job.checkpoint()
    job.kill()
    return checkpoint


@pytest.mark.parametrize("parallelism", [1, 2, 3, 7])
def test_a_maximum_that_nobody_sets_is_the_stored_one(parallelism):
    checkpoint = keyed_cut(7)
    restored = InProcessJob.of(with_key_groups(parallelism), restore=checkpoint)
    assert {node.name: node.max_parallelism for node in restored.plan.nodes}["Reduce"] == 7
    collect = next(node for node in restored.plan.nodes if node.kind is OperatorKind.COLLECT)
    assert collect.max_parallelism == 128, "nothing binds it"
    collected = checkpoint.results + restored.run()
    assert sorted(collected) == sorted(InProcessJob.of(with_key_groups(2)).run())


def test_another_maximum_is_refused_by_name():
    with pytest.raises(IncompatibleStateError, match=r"'Reduce' has maximum parallelism 9.*saved with 7.*set_max_para"):
        InProcessJob.of(with_key_groups(2, 9), restore=keyed_cut(7))


@pytest.mark.parametrize("maximum", [None, 128])
def test_more_subtasks_than_key_groups_are_refused_by_name(maximum):
    with pytest.raises(IncompatibleStateError, match=r"'Reduce' cannot run with parallelism 8: its state has 7 key gr"):
        InProcessJob.of(with_key_groups(8, maximum), restore=keyed_cut(7))


def test_the_stored_maximum_is_kept_over_several_restores():
    job = InProcessJob.of(with_key_groups(3), max_records=10, restore=keyed_cut(7))
    checkpoint = job.checkpoint()
    job.kill()
    restored = InProcessJob.of(with_key_groups(1), restore=checkpoint)
    assert {node.name: node.max_parallelism for node in restored.plan.nodes}["Reduce"] == 7
    restored.run()
