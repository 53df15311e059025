"""Event time after restores and rescales: nothing is late that was not."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import TimestampAssigner
from rekindle.datastream import KeyedProcessFunction, MapFunction, ProcessFunction
from rekindle.datastream.connectors.base import Batch, Boundedness, Source, SourceReader, SourceSplit
from rekindle.datastream.functions import ParallelSourceFunction
from rekindle.runtime.operators.sources import FunctionSourceOperator
from rekindle.runtime.watermarks import WatermarkValve
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed
from tests.support.waiting import wait_until

CLOCK = ManualClock()
RECORD_MS = 10
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Log(Source):
    """Splits "0" and "1", of 20 records each; the event times of "0" are far ahead."""

    has_watermarks_per_split = True
    records = {"0": list(range(10_000, 10_020)), "1": list(range(20))}
    silent: set[str] = set()  # splits that have nothing for now

    def boundedness(self):
        return Boundedness.BOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit(split, 0) for split in self.records]

    def create_reader(self, context, splits):
        return LogReader({split.split_id: split.position for split in splits})


class LogReader(SourceReader):
    """Reads the lowest split that has records left, so that one split may use up the budget of an epoch."""

    def __init__(self, places):
        self.places = places

    def poll(self, max_records):
        for split, place in sorted(self.places.items()):
            times = Log.records[split][place : place + max_records]
            if times and split not in Log.silent:
                self.places[split] += len(times)
                return Batch([(split, time) for time in times], times, [(split, len(times))])
        return [] if Log.silent & self.places.keys() else None

    def snapshot_state(self, checkpoint_id):
        return [SourceSplit(split, place) for split, place in self.places.items()]


class Late(KeyedProcessFunction):
    def process_element(self, value, ctx):
        if value[1] <= ctx.timer_service().current_watermark():
            yield value


class Slow(MapFunction):
    def map(self, value):
        CLOCK.advance(RECORD_MS)
        return value


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def in_order() -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OwnTime())


def by_first(value: Any) -> str:
    return value[0]


# -- idleness ----------------------------------------------------------------------------------------------------------


def late_records_of_splits(strategy: WatermarkStrategy, epoch_ms: int) -> list[Any]:
    """Both splits in one subtask, four records per epoch, so that split "1" waits for split "0"."""
    stream = checkpointed(1).from_source(Log(), strategy, "log", PAIR).key_by(by_first).process(Late())
    clock = ManualClock()
    job = InProcessJob.of(stream, clock, max_records=4)
    late = []
    while not job.finished:
        late += job.epoch()
        clock.advance(epoch_ms)
    job.close()
    return late


def test_a_split_whose_records_wait_does_not_become_idle():
    """Epochs take 11 s, a split is idle after 10 s, and the records of the other split use up the budget."""
    assert late_records_of_splits(in_order().with_idleness(Duration.of_seconds(10)), epoch_ms=11_000) == []


class Announced(ParallelSourceFunction):
    """Collects split "0" or "1", by its subtask, with a watermark after each record."""

    def open(self, runtime_context):
        self.mine = [str(n) for n in range(2)][
            runtime_context.get_index_of_this_subtask() :: runtime_context.get_number_of_parallel_subtasks()
        ]

    def run(self, ctx):
        left = sorted(
            (place, split, time)
            for split in self.mine
            for place, time in enumerate(Log.records[split])
            if place >= ctx.restored_offsets.get(split, 0)
        )
        for place, split, time in left:
            ctx.collect_with_timestamp((split, time), time, offset=place + 1, split=split)
            if len(self.mine) == 1:
                ctx.emit_watermark(time - 1)

    def cancel(self):
        pass


class Plain(Announced):
    """Collects its splits in the order of event time, without times and watermarks."""

    def run(self, ctx):
        for split in sorted(self.mine, reverse=True):
            for place, time in enumerate(Log.records[split]):
                if place >= ctx.restored_offsets.get(split, 0):
                    ctx.collect((split, time), offset=place + 1, split=split)


def test_a_strategy_behind_an_exchange_does_not_become_idle_while_sources_have_records():
    """The strategy's input is filtered: for many slow epochs nothing comes, while its records wait in the source."""
    env = checkpointed(1)
    clock = ManualClock()
    source = env.from_source(Log(), WatermarkStrategy.no_watermarks(), "log", PAIR)
    strategy = in_order().with_idleness(Duration.of_seconds(10))
    waiting = source.filter(lambda value: value[0] == "1").rebalance()
    waiting = waiting.assign_timestamps_and_watermarks(strategy)
    ahead = source.filter(lambda value: value[0] == "0").rebalance().assign_timestamps_and_watermarks(in_order())
    job = InProcessJob.of(waiting.union(ahead).key_by(by_first).process(Late()), clock, max_records=4)
    late = []
    while not job.finished:
        late += job.epoch()
        clock.advance(11_000)
    job.close()
    assert late == []


class Endless(Log):
    """Split "0", and then nothing for ever."""

    def boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism):
        return [SourceSplit("0", 0)]

    def create_reader(self, context, splits):
        reader = LogReader({split.split_id: split.position for split in splits})
        poll = reader.poll
        reader.poll = lambda most: poll(most) or []
        return reader


@pytest.mark.parametrize("with_ended", [False, True])
def test_a_strategy_behind_an_exchange_becomes_idle_when_its_sources_have_nothing(with_ended):
    """Also if one of them is a function whose buffer was full to its end."""
    env = checkpointed(1)
    clock = ManualClock()
    source = env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "log", PAIR)
    strategy = in_order().with_idleness(Duration.of_seconds(10))
    before = source.union(env.add_source(Plain(), type_info=PAIR)) if with_ended else source
    silent = before.filter(lambda value: False).rebalance().assign_timestamps_and_watermarks(strategy)
    ahead = source.rebalance().assign_timestamps_and_watermarks(in_order())
    job = InProcessJob.of(silent.union(ahead).key_by(by_first).process(Fires()), clock, max_records=4)
    fired = []
    for _ in range(40):
        wait_for_functions(job)
        fired += job.epoch()
        clock.advance(4_000)
    job.kill()
    assert fired == [10_005]


class Fires(KeyedProcessFunction):
    """Fires when the watermark has passed 10,005."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10_005)
        yield from ()

    def on_timer(self, timestamp, ctx):
        yield timestamp


# -- a second restore --------------------------------------------------------------------------------------------------


def test_a_channel_without_a_watermark_still_counts_after_a_second_restore():
    restored = WatermarkValve([(0, 0), (0, 1)])
    restored.current = 100  # the parallelism has changed: the task has its watermark, the channels have none
    again = WatermarkValve([(0, 0), (0, 1)])
    again.seek(restored.position())
    assert again.advance((0, 0), 500) is None, "channel 1 may still bring anything above 100"
    assert again.advance((0, 1), 300) == 300


def test_a_channel_that_became_active_behind_the_others_still_does_not_count():
    valve = WatermarkValve([(0, 0), (0, 1)])
    valve.idle((0, 1))
    valve.advance((0, 0), 500)
    valve.active((0, 1))
    again = WatermarkValve([(0, 0), (0, 1)])
    again.seek(valve.position())
    assert again.advance((0, 0), 600) == 600


def lives(build: Any, parallelisms: list[int], leave_after_ms: float | None = None, before: int = 1) -> list[Any]:
    """Run a job through a checkpoint at each parallelism; return what it gives in all."""
    found: list[Any] = []
    checkpoint = None
    for parallelism in parallelisms:
        job = InProcessJob.of(build(parallelism), CLOCK, 4, checkpoint)
        if checkpoint is None:
            for _ in range(before):
                found += job.epoch(leave_after_ms)
        wait_for_functions(job)
        checkpoint = job.checkpoint(leave_after_ms=leave_after_ms)
        found += checkpoint.results
        job.kill()
    last = InProcessJob.of(build(parallelisms[-1]), CLOCK, 4, checkpoint)
    while not last.finished:
        found += last.epoch()
    last.close()
    return found


def is_full_or_over(head: FunctionSourceOperator) -> bool:
    return head._source_context.is_full() or head._run_returned


def wait_for_functions(job: InProcessJob) -> None:
    """Wait until each source function has filled its buffer or returned: then a cut leaves records over."""
    for task in job.tasks.values():
        if isinstance(head := task._head.operator, FunctionSourceOperator):
            wait_until(partial(is_full_or_over, head), "a full buffer", 60)


def test_a_rescale_and_a_second_restore_make_no_record_late(monkeypatch):
    """In its second life the job reads nothing of split "1", so that this channel sends no watermark before the cut."""

    def life(parallelism, checkpoint=None):
        stream = checkpointed(parallelism).from_source(Log(), in_order(), "log", PAIR)
        return InProcessJob.of(stream.key_by(by_first).process(Late()), CLOCK, 4, checkpoint)

    first = life(1)
    monkeypatch.setattr(Log, "silent", {"1"})
    first.epoch()
    monkeypatch.setattr(Log, "silent", {"0"})
    first.epoch()
    checkpoint = first.checkpoint()
    first.kill()
    monkeypatch.setattr(Log, "silent", {"1"})
    second = life(2, checkpoint)
    checkpoint = second.checkpoint()
    second.kill()
    third = life(2, checkpoint)
    third.epoch()
    monkeypatch.setattr(Log, "silent", set())
    assert third.run() == []


# -- records in flight -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelisms", [[2, 1], [2, 1, 1], [2, 3], [2, 1, 2]])
@pytest.mark.parametrize("strategy", ["own", "assigned"])
def test_records_that_a_source_function_left_over_make_no_other_record_late(parallelisms, strategy):
    def build(parallelism):
        env = checkpointed(parallelism, unaligned=True)
        if strategy == "own":
            stream = env.add_source(Announced(), type_info=PAIR).map(Slow(), PAIR)
        else:
            stream = env.add_source(Plain(), type_info=PAIR).map(Slow(), PAIR)
            stream = stream.assign_timestamps_and_watermarks(in_order())
        return stream.key_by(by_first).process(Late())

    assert lives(build, parallelisms, leave_after_ms=RECORD_MS, before=2) == []


@pytest.mark.parametrize("parallelisms", [[2, 1], [2, 3], [2, 1, 1], [2, 3, 2]])
def test_records_in_flight_over_rescale_make_no_other_record_late(parallelisms):
    def build(parallelism):
        stream = checkpointed(parallelism, unaligned=True).from_source(Log(), in_order(), "log", PAIR)
        mapped = stream.rescale().map(UnevenlySlow(), PAIR)
        return mapped.key_by(by_first).process(Late())

    assert lives(build, parallelisms, leave_after_ms=RECORD_MS, before=2) == []


class UnevenlySlow(MapFunction):
    """Slow for the split that is ahead: only its records stay in flight."""

    def map(self, value):
        CLOCK.advance(RECORD_MS if value[0] == "0" else 0)
        return value


# -- other senders, the same subtasks ----------------------------------------------------------------------------------


class LateBefore(ProcessFunction):
    """Says which records are late in front of the key."""

    def process_element(self, value, ctx):
        yield *value, value[1] <= ctx.timer_service().current_watermark()


class LateAnywhere(KeyedProcessFunction):
    def process_element(self, value, ctx):
        if value[2] or value[1] <= ctx.timer_service().current_watermark():
            yield value


def late_over_rescale(parallelism: tuple[int, int, int], clock: ManualClock, unaligned: bool, restore=None):
    """Split "1" is far behind split "0"; the subtasks behind `rescale()` follow some subtasks of the source only."""
    env = checkpointed(parallelism[0], unaligned=unaligned)
    stream = env.from_source(Log(), in_order(), "log", PAIR).rescale()
    judged = stream.process(LateBefore(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.BOOLEAN()]))
    keyed = judged.set_parallelism(parallelism[1]).key_by(lambda value: value[1] % 3, Types.LONG())
    late = keyed.process(LateAnywhere()).set_parallelism(parallelism[2])
    return InProcessJob.of(late, clock, max_records=3, restore=restore)


@pytest.mark.parametrize("unaligned", [False, True])
@pytest.mark.parametrize(
    "lives",
    [
        [(2, 2, 2), (3, 2, 2)],  # the second subtask has no split behind it any more, the first one both
        [(2, 2, 2), (1, 2, 2)],
        [(2, 2, 2), (2, 2, 2), (3, 2, 3)],
        [(1, 1, 1), (2, 2, 2), (3, 2, 3)],
        [(2, 3, 3), (3, 3, 1), (2, 3, 3)],
    ],
)
def test_a_subtask_with_other_senders_goes_by_the_lowest_watermark(lives, unaligned):
    clock = ManualClock()
    leave = 0 if unaligned else None
    job = late_over_rescale(lives[0], clock, unaligned)
    late = []
    for parallelism in lives[1:]:
        late += job.epoch(leave)
        checkpoint = job.checkpoint(leave_after_ms=leave)
        late += checkpoint.results
        job.kill()
        job = late_over_rescale(parallelism, clock, unaligned, checkpoint)
    while not job.finished:
        late += job.epoch()
    job.close()
    assert late == []
