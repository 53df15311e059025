"""Event time over random lives of a job: kills, restores, rescales in a row, records in flight, idleness, slow epochs.

A record counts as late if the watermark has passed it where it is processed. In a run that is never interrupted only
those records can be late that come behind their own split by more than the strategy allows: gaps of a split that lives
are shorter than the idle timeout. So no life may make another record late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import TimestampAssigner
from rekindle.datastream import KeyedProcessFunction, MapFunction, ProcessFunction
from rekindle.datastream.connectors.base import Batch, Boundedness, Source, SourceReader, SourceSplit
from rekindle.datastream.functions import ParallelSourceFunction, SourceFunction
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed

BOUND_MS, IDLE_MS, BEGIN_MS = 20, 500, 10_000
#: `make explore` plays more lives.
LIVES = 10_000 if settings.get_current_profile_name() == "explore" else 150


@dataclass
class World:
    """The splits' records as (arrival, event time), and how the job's parts behave."""

    splits: dict[str, list[tuple[int, int]]]
    slow_ms: int
    by_turns: bool  # whether a reader reads its splits one after the other, or the oldest arrival first
    clock: ManualClock = field(default_factory=lambda: ManualClock(BEGIN_MS))

    def end_ms(self) -> int:
        return max(records[-1][0] for records in self.splits.values() if records)

    def excused(self) -> set[tuple[str, int]]:
        """The records that come too far behind their own split."""
        found = set()
        for split, records in self.splits.items():
            highest = 0
            for place, (_, time) in enumerate(records):
                highest = max(highest, time)
                if time < highest - BOUND_MS:
                    found.add((split, place))
        return found


world = World({}, 0, False)


class WorldSource(Source):
    """Reads the world's splits; a record can be read from its arrival on."""

    def __init__(self, per_split: bool, knows_waiting: bool) -> None:
        self.has_watermarks_per_split = per_split
        self._knows_waiting = knows_waiting

    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(split, 0) for split in world.splits]

    def create_reader(self, context: Any, splits: list[SourceSplit]) -> SourceReader:
        return (KnowingReader if self._knows_waiting else WorldReader)(splits)


class WorldReader(SourceReader):
    def __init__(self, splits: list[SourceSplit]) -> None:
        self._next = {split.split_id: split.position for split in splits}

    def _waiting(self) -> dict[str, int]:
        """The splits with records that have arrived, with the arrival of the next one."""
        heads = {
            split: world.splits[split][place][0]
            for split, place in self._next.items()
            if place < len(world.splits[split])
        }
        return {split: arrival for split, arrival in heads.items() if arrival <= world.clock.wall_ms()}

    def is_available(self) -> bool:
        return bool(self._waiting()) or self._ended()

    def _ended(self) -> bool:
        read = all(place == len(world.splits[split]) for split, place in self._next.items())
        return read and world.clock.wall_ms() > world.end_ms() + 10 * IDLE_MS

    def poll(self, max_records: int) -> Any:
        if self._ended():
            return None
        records: list[Any] = []
        times: list[int] = []
        runs: list[tuple[str, int]] = []
        while len(records) < max_records and (waiting := self._waiting()):
            split = min(waiting) if world.by_turns else min(waiting, key=lambda each: (waiting[each], each))
            place = self._next[split]
            records.append((split, place))
            times.append(world.splits[split][place][1])
            runs.append((split, 1))
            self._next[split] = place + 1
        return Batch(records, times, runs)

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return [SourceSplit(split, place) for split, place in self._next.items()]


class KnowingReader(WorldReader):
    def waiting_splits(self) -> list[str]:
        return list(self._waiting())


class WorldFunction(ParallelSourceFunction):
    """Collects the splits of its subtask in the order of their arrival, with watermarks of its own or without."""

    def __init__(self, own_watermarks: bool) -> None:
        self._own_watermarks = own_watermarks

    def open(self, runtime_context: Any) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()
        self._parallelism = runtime_context.get_number_of_parallel_subtasks()

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        mine = sorted(world.splits)[self._subtask :: self._parallelism]
        restored = ctx.restored_offsets
        left = [
            (arrival, split, place, time)
            for split in mine
            for place, (arrival, time) in enumerate(world.splits[split])
            if place >= restored.get(split, 0)
        ]
        highest = 0
        for _, split, place, time in sorted(left):
            with ctx.get_checkpoint_lock():
                ctx.collect_with_timestamp((split, place), time, offset=place + 1, split=split)
            highest = max(highest, time)
            if self._own_watermarks:
                ctx.emit_watermark(highest - BOUND_MS - 1)

    def cancel(self) -> None: ...


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        split, place = value
        return world.splits[split][place][1]


class Slow(MapFunction):
    def map(self, value: Any) -> Any:
        world.clock.advance(world.slow_ms)
        return value


def is_late(split: str, place: int, ctx: Any) -> bool:
    return world.splits[split][place][1] <= ctx.timer_service().current_watermark()


class SlowJudge(ProcessFunction):
    """Judges a record behind the partitioner, before its key."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        world.clock.advance(world.slow_ms)
        split, place = value
        yield split, place, is_late(split, place, ctx)


class Judge(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        split, place, was_late = value
        yield split, place, was_late or is_late(split, place, ctx)


#: Where the watermarks come from.
KINDS = ("by split", "by split, knowing", "whole source", "mapped", "function", "function, mapped", "own watermarks")


def judged(kind: str, partitioner: str, idleness: bool, unaligned: bool, parallelism: tuple[int, int, int]):
    """The job: source, strategy, a slow judge behind a partitioner, a judge behind a key."""
    env = checkpointed(parallelism[0], unaligned=unaligned)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND_MS))
    strategy = strategy.with_timestamp_assigner(OwnTime())
    if idleness:
        strategy = strategy.with_idleness(Duration.of_millis(IDLE_MS))
    type_info = Types.TUPLE([Types.STRING(), Types.LONG()])
    if "function" in kind or kind == "own watermarks":
        stream = env.add_source(WorldFunction(kind == "own watermarks"), type_info=type_info)
        if kind == "function, mapped":
            stream = stream.map(Slow(), type_info)
        if kind != "own watermarks":
            stream = stream.assign_timestamps_and_watermarks(strategy)
    elif kind == "mapped":
        source = WorldSource(False, False)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "world", type_info)
        stream = stream.map(Slow(), type_info).assign_timestamps_and_watermarks(strategy)
    else:
        stream = env.from_source(WorldSource("split" in kind, "knowing" in kind), strategy, "world", type_info)
    if partitioner != "none":
        stream = getattr(stream, partitioner)()
    slow = stream.process(SlowJudge(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.BOOLEAN()]))
    if partitioner != "none":
        slow = slow.set_parallelism(parallelism[1])
    return slow.key_by(lambda value: value[1] % 3, Types.LONG()).process(Judge()).set_parallelism(parallelism[2])


@st.composite
def worlds(draw: st.DrawFn, kind: str) -> World:
    """Splits whose records arrive with gaps shorter than the idle timeout, until they end; some have none at all.

    The event time of some splits is far ahead of that of others.
    """
    splits: dict[str, list[tuple[int, int]]] = {}
    for number in range(draw(st.integers(1, 4))):
        arrival, records = BEGIN_MS, []
        ahead = draw(st.sampled_from([0, 0, 10 * IDLE_MS, 100 * IDLE_MS]))
        for _ in range(draw(st.integers(0 if number else 1, 25))):
            arrival += draw(st.integers(0, IDLE_MS - 1 if draw(st.booleans()) else 30))
            behind = draw(st.sampled_from([0, 0, 0, 5, BOUND_MS, 700]))
            records.append((arrival, arrival + ahead - behind))
        splits[str(number)] = records
    # One watermark for several splits is right only if they are read in the order of their arrival.
    by_turns = "split" in kind and draw(st.booleans())
    slow_ms = draw(st.sampled_from([0, 1, 30, 2 * IDLE_MS]))
    return World(splits, slow_ms, by_turns)


def in_order(drawn: World, kind: str) -> World:
    """The same world, with one event time for all splits where there is one watermark for them."""
    if "split" not in kind:
        splits = {split: [(arrival, arrival) for arrival, _ in records] for split, records in drawn.splits.items()}
        return World(splits, drawn.slow_ms, drawn.by_turns)
    return drawn


parallelisms = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
leaves = st.sampled_from([1, 40, 100, None])
steps = st.one_of(
    st.tuples(st.just("epoch"), leaves, st.integers(0, 2 * IDLE_MS)),
    st.tuples(st.just("checkpoint"), leaves, st.integers(0, 50)),
    st.tuples(st.just("restart"), parallelisms, st.none()),
)


@pytest.mark.timeout(7200)
@settings(max_examples=LIVES)
@given(st.data())
def test_no_life_makes_a_record_late(data):
    global world
    kind = data.draw(st.sampled_from(KINDS))
    partitioner = data.draw(st.sampled_from(["none", "rebalance", "rescale", "shuffle"]))
    idleness, unaligned = data.draw(st.booleans()), data.draw(st.booleans())
    # A function's thread runs by the real clock: by the manual one it may have nothing for any time.
    idleness = idleness and "function" not in kind
    world = in_order(data.draw(worlds(kind)), kind)
    per_epoch = data.draw(st.integers(1, 12))
    parallelism = data.draw(parallelisms)

    def job(numbers: tuple[int, int, int], checkpoint: Any = None) -> InProcessJob:
        return InProcessJob.of(
            judged(kind, partitioner, idleness, unaligned, numbers), world.clock, per_epoch, checkpoint
        )

    current = job(parallelism)
    safe: list[Any] = []
    since: list[Any] = []
    checkpoint = None
    for step, first, second in data.draw(st.lists(steps, max_size=14)):
        if step == "restart":
            current.kill()
            since = []
            current = job(first, checkpoint)
            continue
        world.clock.advance(second)
        leave = first if unaligned else None
        if step == "epoch":
            since += current.epoch(leave)
        else:
            checkpoint = current.checkpoint(leave_after_ms=leave)
            safe, since = safe + since + checkpoint.results, []
    while not current.finished:
        world.clock.advance(IDLE_MS // 5)
        since += current.epoch()
    current.close()
    results = safe + since
    everything = [(split, place) for split, records in world.splits.items() for place in range(len(records))]
    assert sorted((split, place) for split, place, _ in results) == sorted(everything)
    assert {(split, place) for split, place, late in results if late} <= world.excused()
