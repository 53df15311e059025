"""`ctx.restored_offsets` (I8): after a restore every subtask sees the offsets of all splits, the newest of each."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from rekindle.checkpoint.part_formats import SourceState, SplitState
from rekindle.checkpoint.redistribute import newest_splits
from rekindle.datastream.functions import ParallelSourceFunction
from rekindle.testing import InProcessJob
from tests.support.environments import environment

DEADLINE_S = 30.0
SPLITS = [f"split-{number}" for number in range(5)]


class Stage:
    """State that a test shares with its jobs."""

    over = threading.Event()
    restored: dict[int, dict[str, int]] = {}


@pytest.fixture(autouse=True)
def stage():
    Stage.over.clear()
    Stage.restored = {}
    yield Stage
    Stage.over.set()


class ByIndex(ParallelSourceFunction):
    """Subtask i of n reads every n-th split from its restored offset, `limit` records of each split."""

    def __init__(self, limit, splits=SPLITS, shift=0):
        self.limit = limit
        self.splits = splits
        self.shift = shift

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.parallelism = runtime_context.get_number_of_parallel_subtasks()

    def run(self, ctx):
        Stage.restored[self.subtask] = ctx.restored_offsets
        for place, split in enumerate(SPLITS):
            if (place + self.shift) % self.parallelism == self.subtask and split in self.splits:
                for offset in range(ctx.restored_offsets.get(split, -1) + 1, self.limit):
                    ctx.collect((split, offset), offset=offset, split=split)
        Stage.over.wait(DEADLINE_S)

    def cancel(self):
        Stage.over.set()


def job_of(source, parallelism, restore=None):
    env = environment(parallelism)
    return InProcessJob.of(env.add_source(source, "splits"), max_records=7, restore=restore)


def stage_of(source, parallelism, restore, expected):
    """Run until `expected` records have come, make a checkpoint, kill the job. Returns records and checkpoint."""
    Stage.over.clear()
    Stage.restored = {}
    job = job_of(source, parallelism, restore)
    seen = []
    deadline = time.monotonic() + DEADLINE_S
    while (len(seen) < expected or len(Stage.restored) < parallelism) and time.monotonic() < deadline:
        seen.extend(job.epoch())
    checkpoint = job.checkpoint()
    seen.extend(checkpoint.results)
    job.kill()
    return seen, checkpoint


def everything(limit):
    return Counter((split, offset) for split in SPLITS for offset in range(limit))


def test_splits_that_are_assigned_by_index_go_on_at_any_parallelism():
    """3 -> 2 -> 4 -> 1: each split goes to another subtask each time, and each record comes once."""
    seen, checkpoint = stage_of(ByIndex(10), 3, None, 50)
    for limit, parallelism in ((20, 2), (30, 4), (40, 1)):
        more, checkpoint = stage_of(ByIndex(limit), parallelism, checkpoint, 50)
        assert Stage.restored == {subtask: dict.fromkeys(SPLITS, limit - 11) for subtask in range(parallelism)}, (
            "not the newest of all splits"
        )
        seen += more
        assert Counter(seen) == everything(limit)


def test_a_split_that_moves_at_the_same_parallelism_goes_on():
    """A restart after a failure may give splits to other subtasks."""
    seen, checkpoint = stage_of(ByIndex(10), 2, None, 50)
    for shift in (1, 2):
        limit = 10 * (shift + 1)
        more, checkpoint = stage_of(ByIndex(limit, shift=shift), 2, checkpoint, 50)
        seen += more
        assert Counter(seen) == everything(limit)


@pytest.mark.parametrize("parallelisms", [(3, 2, 4, 1), (2, 2, 2, 2), (1, 4, 2, 3)])
def test_a_split_that_nobody_has_read_keeps_its_offset(parallelisms):
    first, *later, last = parallelisms
    _, checkpoint = stage_of(ByIndex(10), first, None, 50)
    for limit, parallelism in zip((20, 30), later, strict=True):
        _, checkpoint = stage_of(ByIndex(limit, SPLITS[:1]), parallelism, checkpoint, 10)
    seen, _ = stage_of(ByIndex(40), last, checkpoint, 10 + 4 * 30)
    expected = {SPLITS[0]: 29, **dict.fromkeys(SPLITS[1:], 9)}
    assert Stage.restored == dict.fromkeys(range(last), expected)
    assert Counter(seen) == Counter(
        (split, offset) for split, before in expected.items() for offset in range(before + 1, 40)
    )


def test_the_newest_offset_of_a_split_is_that_of_the_latest_checkpoint_that_moved_it():
    old, new = SplitState(b"s", b"10", 3), SplitState(b"s", b"9", 4)
    other = SplitState(b"t", b"1", 1)
    for states in ([old, other], [new]), ([new], [other, old]):
        newest = newest_splits([SourceState(splits) for splits in states])
        assert sorted(newest, key=lambda split: split.split) == [new, other]
