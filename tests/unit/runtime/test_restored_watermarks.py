"""Watermarks of restored jobs (I6): late elements stay late, and a new channel promises nothing."""

from __future__ import annotations

import pytest

from rekindle.common import WatermarkStrategy
from rekindle.datastream.connectors.base import Batch, Boundedness, Source, SourceReader, SourceSplit
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed
from tests.unit.runtime.checkpoint_programs import PAIR, Times, by_time


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
    """One split is far ahead of the other in event time; a reader of both reads the one behind first."""

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

    def snapshot_state(self, checkpoint_id: int):
        return self.splits


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_channel_of_another_sender_promises_nothing(parallelism):
    """I6: a channel's watermark belongs to its sender; after a rescale of the senders it begins anew."""

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
