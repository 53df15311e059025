"""Records in flight: those that a task has not processed when its epoch's time is over. Checkpoints hold them.

Functions turn the clock themselves, so that each record takes an exact time.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import TimestampAssigner
from rekindle.datastream import KeyedProcessFunction, MapFunction
from rekindle.datastream.functions import KeyedBroadcastProcessFunction, KeyedCoProcessFunction, SourceFunction
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.datastream.window import TumblingEventTimeWindows
from rekindle.errors import IncompatibleStateError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing.in_process import InProcessJob
from rekindle.testing.manual_clock import ManualClock
from tests.support.environments import checkpointed

CLOCK = ManualClock()
KEYS = 5
COUNT = 60
#: Records that fit into an epoch's time.
FIT = 4
RECORD_MS = 250


class Slow(KeyedProcessFunction):
    """Counts per key, a quarter of a second for each record."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        CLOCK.advance(RECORD_MS)
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value(), value


class SlowMap(MapFunction):
    def map(self, value):
        CLOCK.advance(RECORD_MS)
        return value


def counts(env):
    return env.from_collection(list(range(COUNT)), Types.INT()).key_by(lambda n: n % KEYS, Types.INT()).process(Slow())


EXPECTED = sorted((key, n + 1, n * KEYS + key) for key in range(KEYS) for n in range(COUNT // KEYS))


def job_of(stream, **options):
    return InProcessJob.of(stream, CLOCK, **options)


def finish(job, leave_after_ms=FIT * RECORD_MS):
    """Run to the end of the input, in epochs that end when their time is over."""
    found = []
    while not job.finished:
        found += job.epoch(leave_after_ms)
    job.close()
    return found


def balanced(job):
    def total(counts):
        totals = Counter()
        for count in counts:
            totals[count.edge, count.source, count.target] += count.records
        return totals

    return total(job.sent) == total(job.received)


def test_a_task_leaves_what_it_has_no_time_for_and_goes_on_there():
    job = job_of(counts(checkpointed(1, unaligned=True)))
    found = [job.epoch(FIT * RECORD_MS) for _ in range(3)]
    assert [len(each) for each in found] == [FIT, FIT, FIT]
    assert job.in_flight == COUNT - 3 * FIT
    assert balanced(job)
    assert [value for each in found for *_, value in each] == list(range(3 * FIT)), "in their order"
    assert sorted([record for each in found for record in each] + finish(job)) == EXPECTED


def test_the_time_is_over_between_two_chunks_too():
    env = checkpointed(1, unaligned=True)
    env.get_configuration().set_string("rekindle.epoch.chunk-records", "1")
    job = job_of(counts(env))
    assert [len(job.epoch(FIT * RECORD_MS)) for _ in range(3)] == [FIT] * 3
    job.kill()


def test_a_record_that_takes_longer_than_the_epoch_is_processed_all_the_same():
    job = job_of(counts(checkpointed(1, unaligned=True)))
    assert [len(job.epoch(1)) for _ in range(5)] == [1] * 5
    job.kill()


def test_no_source_brings_more_while_something_is_in_flight():
    job = job_of(counts(checkpointed(1, unaligned=True)), max_records=10)
    job.epoch(FIT * RECORD_MS)
    assert job.in_flight == 6
    job.epoch(FIT * RECORD_MS)
    assert job.in_flight == 2
    job.kill()


def test_without_a_time_nothing_stays_in_flight():
    job = job_of(counts(checkpointed(2, unaligned=True)))
    assert len(job.epoch()) == COUNT
    assert job.in_flight == 0
    job.kill()


@pytest.mark.parametrize("epochs", [0, 1, 3])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (2, 3), (3, 2), (4, 1), (1, 4)])
def test_what_is_in_flight_comes_back_at_any_parallelism(before, after, epochs):
    job = job_of(counts(checkpointed(before, unaligned=True)))
    found = [record for _ in range(epochs) for record in job.epoch(FIT * RECORD_MS)]
    checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
    in_flight = job.in_flight
    assert in_flight
    found += checkpoint.results
    job.epoch()
    job.kill()
    restored = job_of(counts(checkpointed(after, unaligned=True)), restore=checkpoint)
    assert restored.in_flight == in_flight
    rest = finish(restored)
    assert sorted(found + rest) == EXPECTED
    in_order_per_key(found + rest)


def in_order_per_key(records):
    last = Counter()
    for key, count, value in records:
        assert count == last[key] + 1, "each record is counted once, in its order"
        assert value == (count - 1) * KEYS + key
        last[key] = count


def test_the_next_checkpoint_may_come_while_the_restored_records_are_still_in_flight():
    """Restore twice, each time at another parallelism: records of three generations of channels wait."""
    found, checkpoint = [], None
    for parallelism in (3, 2, 4, 1):
        job = job_of(counts(checkpointed(parallelism, unaligned=True)), restore=checkpoint)
        checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
        found += checkpoint.results
        assert job.in_flight
        job.kill()
    found += finish(job_of(counts(checkpointed(2, unaligned=True)), restore=checkpoint))
    assert sorted(found) == EXPECTED
    in_order_per_key(found)


PARTITIONINGS = {
    "rebalance": lambda stream: stream.rebalance(),
    "shuffle": lambda stream: stream.shuffle(),
    "rescale": lambda stream: stream.rescale(),
    "global": lambda stream: stream.global_(),
    "custom": lambda stream: stream.partition_custom(lambda key, n: key % n, lambda value: value // 7),
}


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1)])
def test_records_in_flight_pass_through_their_partitioner_again(partitioning, before, after):
    def program(parallelism):
        numbers = checkpointed(parallelism, unaligned=True).from_sequence(0, COUNT - 1)
        return PARTITIONINGS[partitioning](numbers).map(SlowMap(), Types.LONG())

    job = job_of(program(before))
    checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
    assert job.in_flight
    job.kill()
    restored = job_of(program(after), restore=checkpoint)
    if partitioning == "global":
        assert not any(task.inbox.records_waiting() for task in restored.tasks.values() if task.subtask)
    assert sorted(checkpoint.results + finish(restored)) == list(range(COUNT))


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_savepoint_has_nothing_in_flight(after):
    job = job_of(counts(checkpointed(2, unaligned=True)))
    found = job.epoch(FIT * RECORD_MS)
    assert job.in_flight
    savepoint = job.checkpoint(savepoint=True)
    assert job.in_flight == 0
    found += savepoint.results
    job.kill()
    assert sorted(found + finish(job_of(counts(checkpointed(after, unaligned=True)), restore=savepoint))) == EXPECTED


def test_forward_edges_stay_aligned():
    def program():
        numbers = checkpointed(2, unaligned=True).from_sequence(0, COUNT - 1)
        return numbers.forward().map(SlowMap(), Types.INT()).disable_chaining()

    job = job_of(program())
    assert len(job.epoch(1)) == COUNT
    assert job.in_flight == 0
    job.kill()


class WithRules(KeyedBroadcastProcessFunction):
    RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())

    def process_element(self, value, ctx):
        CLOCK.advance(RECORD_MS)
        yield value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(self.RULES).put(value, value)


def test_broadcast_edges_stay_aligned_beside_edges_that_do_not():
    env = checkpointed(2, unaligned=True)
    rules = env.from_collection(list(range(7)), Types.INT()).broadcast(WithRules.RULES)
    numbers = env.from_collection(list(range(COUNT)), Types.INT()).key_by(lambda n: n % KEYS, Types.INT())
    job = job_of(numbers.connect(rules).process(WithRules(), Types.INT()))
    job.epoch(1)
    assert job.in_flight
    partitionings = {edge.id: edge.partitioning.name for edge in job.plan.edges}
    waiting = [each for task in job.tasks.values() for each in task.inbox.waiting]
    assert {partitionings[each.header.edge] for each in waiting} == {"KEY"}
    assert sorted(finish(job))[-1] == COUNT - 1


class SlowPair(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        CLOCK.advance(RECORD_MS)
        yield "left", value

    def process_element2(self, value, ctx):
        CLOCK.advance(RECORD_MS)
        yield "right", value


def united(env):
    other = env.from_sequence(COUNT, 2 * COUNT - 1).uid("other")
    both = env.from_sequence(0, COUNT - 1).uid("one").union(other)
    return both.key_by(lambda n: n % KEYS, Types.LONG()).process(Slow()).uid("count")


def connected(env):
    left = env.from_sequence(0, COUNT - 1).uid("left").key_by(lambda n: n % KEYS, Types.LONG())
    right = env.from_sequence(0, COUNT - 1).uid("right").key_by(lambda n: n % KEYS, Types.LONG())
    return left.connect(right).process(SlowPair()).uid("pair")


@pytest.mark.parametrize("program", [united, connected])
@pytest.mark.parametrize(("before", "between", "after"), [(2, 2, 2), (2, 3, 1), (1, 4, 2)])
def test_several_edges_may_have_records_in_flight(program, before, between, after):
    """The second checkpoint comes while records restored from the first one still wait."""
    undisturbed = job_of(program(checkpointed(2, unaligned=True))).run()
    first = job_of(program(checkpointed(before, unaligned=True)))
    one = first.checkpoint(leave_after_ms=FIT * RECORD_MS)
    first.kill()
    second = job_of(program(checkpointed(between, unaligned=True)), restore=one)
    two = second.checkpoint(leave_after_ms=FIT * RECORD_MS)
    assert second.in_flight
    second.kill()
    rest = finish(job_of(program(checkpointed(after, unaligned=True)), restore=two))
    values = [record[-1] if program is united else record for record in one.results + two.results + rest]
    assert sorted(values) == sorted(record[-1] if program is united else record for record in undisturbed)


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 100


def windowed(env):
    """Sums per key and second. Late records are dropped, so a sum would show them missing."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    numbers = env.from_sequence(0, COUNT - 1)
    timed = numbers.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(OwnTime()))
    slow = timed.rebalance().map(SlowMap(), Types.LONG()).key_by(lambda n: n % KEYS, Types.INT())
    return slow.window(TumblingEventTimeWindows.of(Duration.of_seconds(1))).reduce(lambda a, b: a + b)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_watermarks_keep_their_places_among_records_in_flight(after):
    undisturbed = sorted(job_of(windowed(checkpointed(2, unaligned=True))).run())
    for epochs in range(6):
        job = job_of(windowed(checkpointed(2, unaligned=True)), max_records=13)
        found = [record for _ in range(epochs) for record in job.epoch(FIT * RECORD_MS)]
        checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
        found += checkpoint.results
        job.kill()
        restored = job_of(windowed(checkpointed(after, unaligned=True)), max_records=13, restore=checkpoint)
        assert sorted(found + finish(restored)) == undisturbed


def test_the_end_of_the_input_waits_behind_the_records_in_flight():
    job = job_of(counts(checkpointed(2, unaligned=True)))
    job.epoch(FIT * RECORD_MS)
    sources = [task for task in job.tasks.values() if task.chain.stage == 0]
    assert all(task.finished for task in sources)
    assert not job.finished
    checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
    job.kill()
    for after in (1, 2, 3):
        restored = job_of(counts(checkpointed(after, unaligned=True)), restore=checkpoint)
        assert not restored.finished
        assert finish(restored)
        assert restored.finished


def test_a_program_without_the_connection_is_refused_by_name():
    job = job_of(counts(checkpointed(2, unaligned=True)).name("count").uid("count"))
    checkpoint = job.checkpoint(leave_after_ms=1)
    job.kill()
    env = checkpointed(2, unaligned=True)
    env.get_configuration().set_string("execution.state-recovery.ignore-unclaimed-state", "true")
    other = env.from_collection([1], Types.INT()).uid("other").key_by(lambda n: n % KEYS, Types.INT())
    with pytest.raises(OperatorFailure, match="count") as failure:
        job_of(other.process(Slow()).name("count").uid("count"), restore=checkpoint)
    assert isinstance(failure.value.__cause__, IncompatibleStateError)
    assert "in flight" in str(failure.value.__cause__)


class OwnCount(SourceFunction):
    """S2's source: it keeps its own position, in operator state, and takes no lock."""

    def run(self, ctx):
        while self.next < COUNT:
            ctx.collect(self.next)
            self.next += 1

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("next", Types.INT()))
        self.next = max(self.state.get(), default=0)

    def snapshot_state(self, context):
        self.state.update([self.next])

    def cancel(self):
        """It ends by itself."""


class WithOffsets(SourceFunction):
    """The engine keeps the offset."""

    def run(self, ctx):
        for number in range((ctx.restored_offset if ctx.restored_offset is not None else -1) + 1, COUNT):
            ctx.collect(number, offset=number)

    def cancel(self):
        """It ends by itself."""


@pytest.mark.parametrize("source", [OwnCount, WithOffsets])
@pytest.mark.parametrize("epochs", [0, 2])
def test_what_a_source_function_has_collected_waits_in_the_checkpoint(source, epochs):
    """The slow function is chained to the source: the cut contains what was collected, and need not wait for it."""

    def program():
        return checkpointed(1, unaligned=True).add_source(source(), type_info=Types.INT()).map(SlowMap(), Types.INT())

    job = job_of(program())
    (task,) = job.tasks.values()
    task._head.operator._thread.join(30)
    found = [record for _ in range(epochs) for record in job.epoch(FIT * RECORD_MS)]
    checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
    assert job.in_flight
    found += checkpoint.results
    found_later = job.epoch(FIT * RECORD_MS)
    assert found_later[0] == len(found), "what was left comes first"
    job.kill()
    restored = job_of(program(), restore=checkpoint)
    assert restored.in_flight == COUNT - len(found)
    assert found + finish(restored) == list(range(COUNT))


def test_an_aborted_checkpoint_leaves_the_records_in_flight_where_they_were():
    job = job_of(counts(checkpointed(2, unaligned=True)))
    aborted = job.checkpoint(complete=False, leave_after_ms=FIT * RECORD_MS)
    job.abort(aborted)
    checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
    assert job.in_flight
    job.kill()
    rest = finish(job_of(counts(checkpointed(3, unaligned=True)), restore=checkpoint))
    assert sorted(aborted.results + checkpoint.results + rest) == EXPECTED


def test_a_drained_job_has_processed_what_was_in_flight():
    job = job_of(counts(checkpointed(2, unaligned=True)), max_records=20)
    found = job.epoch(FIT * RECORD_MS)
    assert job.in_flight
    found += job.checkpoint(savepoint=True, drain=True).results
    assert (job.in_flight, job.finished, len(found)) == (0, True, 20)
    job.close()


def test_a_program_without_unaligned_checkpoints_goes_on_from_one():
    job = job_of(counts(checkpointed(2, unaligned=True)))
    checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
    job.kill()
    env = checkpointed(3, unaligned=True)
    env.get_checkpoint_config().disable_unaligned_checkpoints()
    assert sorted(checkpoint.results + job_of(counts(env), restore=checkpoint).run()) == EXPECTED


# -- changed types -----------------------------------------------------------------------------------------------------


class Numbered(NamedTuple):
    number: int
    label: str = "old"


class Moved(NamedTuple):
    """The same class in a later program: its fields are at other places."""

    label: str = "new"
    number: float = 0.0


class Lettered(NamedTuple):
    number: str = ""


Moved.__qualname__ = Lettered.__qualname__ = "Numbered"


class SlowNumber(KeyedProcessFunction):
    def process_element(self, value, ctx):
        CLOCK.advance(RECORD_MS)
        yield value.number


class Emits(WithOffsets):
    def __init__(self, cls):
        self.cls = cls

    def run(self, ctx):
        for number in range((ctx.restored_offset if ctx.restored_offset is not None else -1) + 1, COUNT):
            ctx.collect(self.cls(number=number), offset=number)


def over_an_exchange(cls, parallelism=2):
    numbers = checkpointed(parallelism, unaligned=True).from_collection(list(range(COUNT)), Types.INT())
    typed = numbers.map(lambda n: cls(number=n), cls)
    return (
        typed.key_by(lambda each: int(each.number) % KEYS, Types.INT()).process(SlowNumber()).name("slow").uid("slow")
    )


def in_a_source(cls, parallelism=1):
    typed = checkpointed(parallelism, unaligned=True).add_source(Emits(cls), type_info=cls)
    return typed.map(SlowMap(), cls).map(lambda each: each.number).name("slow")


@pytest.mark.parametrize(
    ("program", "after"), [(over_an_exchange, {}), (over_an_exchange, {"parallelism": 3}), (in_a_source, {})]
)
def test_records_in_flight_are_read_by_the_type_that_they_were_written_with(program, after):
    job = job_of(program(Numbered))
    if program is in_a_source:
        (task,) = job.tasks.values()
        task._head.operator._thread.join(30)
    found = job.epoch(FIT * RECORD_MS)
    checkpoint = job.checkpoint(leave_after_ms=FIT * RECORD_MS)
    found += checkpoint.results
    assert job.in_flight
    job.kill()
    found += finish(job_of(program(Moved, **after), restore=checkpoint))
    assert sorted(found) == list(range(COUNT))
    with pytest.raises(OperatorFailure) as failure:
        job_of(program(Lettered, **after), restore=checkpoint)
    assert "in flight" in str(failure.value.__cause__)
    assert "field 'number' was saved as Long, but the program declares String" in str(failure.value.__cause__)
