"""Jobs restored at any cut and any parallelism give the same results; with the same epochs, in the same order (I1)."""

from __future__ import annotations

import pytest

from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import CheckpointingMode, CoProcessFunction, KeyedProcessFunction, MapFunction, ProcessFunction
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.testing import InProcessJob, assert_survives
from tests.support.environments import checkpointed
from tests.unit.runtime.checkpoint_programs import PAIR, Gathered, Times, by_time, every_kind_of_state, keyed_sums

# -- programs that must give the same multiset whatever happens --------------------------------------------------------


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
    """A cut after each epoch of one program, not only after the four that `assert_survives` picks."""
    assert_survives(every_kind_of_state, parallelism=2, parallelisms=(2, 3), cuts=range(1, 15))


@pytest.mark.parametrize("unaligned", [False, True])
def test_at_least_once_and_unaligned_are_accepted_and_give_exactly_once(unaligned):
    """Whatever the mode and the alignment, each record counts exactly once."""

    def program(env):
        checkpoints = env.get_checkpoint_config()
        mode = CheckpointingMode.EXACTLY_ONCE if unaligned else CheckpointingMode.AT_LEAST_ONCE
        checkpoints.set_checkpointing_mode(mode)
        checkpoints.enable_unaligned_checkpoints(unaligned)
        numbers = env.from_sequence(1, 30)
        return numbers.key_by(lambda n: n % 3, int).reduce(lambda a, b: a + b)

    totals = assert_survives(program, parallelism=1, parallelisms=(1, 2))
    assert len(totals) == 30


# -- the same boundaries give the same result, to the order (I1) ------------------------------------------------------


class Tagged(MapFunction):
    """Adds the index of the subtask that saw the record."""

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.subtask, value


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
