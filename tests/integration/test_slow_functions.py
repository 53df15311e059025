"""Checkpoints complete in time however slow a function is (I22). Counted in records: seconds depend on the machine."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rekindle.common import JobStatus, Types
from rekindle.common.checkpoint_statistics import CheckpointStatus
from rekindle.datastream import MapFunction
from tests.support.environments import checkpointed
from tests.support.waiting import wait_until

DEADLINE_S = 100.0
SLOW_S = 0.25
#: Records per subtask before the function becomes slow from one record to the next.
QUICK = 200
INTERVAL_MS = 200
PARALLELISM = 2


class Slow(MapFunction):
    """Writes into a file how many slow records it has seen."""

    def __init__(self, folder: Path, quick: int, slow_s: float = SLOW_S, fail_after: int | None = None) -> None:
        self.folder, self.quick, self.slow_s, self.fail_after = folder, quick, slow_s, fail_after

    def open(self, runtime_context):
        self.seen = 0
        self.fails = self.fail_after is not None and runtime_context.get_attempt_number() == 0
        self.file = self.folder / str(runtime_context.get_index_of_this_subtask())

    def map(self, value):
        self.seen += 1
        if self.seen <= self.quick:
            time.sleep(0.0001)
            return value
        time.sleep(self.slow_s)
        slow = self.seen - self.quick
        if self.fails and slow > self.fail_after:
            raise RuntimeError("on purpose")
        self.file.write_text(str(slow))
        return value


def slow_records(folder: Path) -> int:
    """The number of slow records that the slower subtask has seen."""
    return max((int(file.read_text() or 0) for file in folder.iterdir()), default=0)


def completed(client) -> int:
    return client.get_checkpoint_statistics().counts.completed


STAGES = {
    "first": lambda numbers, slow: numbers.map(slow, Types.LONG()).rebalance().map(lambda n: n, Types.LONG()),
    "middle": lambda numbers, slow: (
        numbers.key_by(lambda n: n % 100, Types.LONG()).map(slow, Types.LONG()).rebalance().map(lambda n: n)
    ),
    "last": lambda numbers, slow: numbers.rebalance().map(lambda n: n, Types.LONG()).rebalance().map(slow),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("unaligned", [False, True])
def test_a_few_slow_records_lie_between_two_checkpoints(spark, tmp_path, stage, unaligned):
    """The function is always slow, or, with unaligned checkpoints, becomes slow in the middle of an epoch."""
    env = checkpointed(PARALLELISM, INTERVAL_MS, restarts=1, unaligned=unaligned)
    STAGES[stage](env.from_sequence(1, 1_000_000), Slow(tmp_path, QUICK if unaligned else 0)).print()
    client = env.execute_async(f"slow in the {stage} stage")
    try:
        wait_until(lambda: slow_records(tmp_path) > 0, "a slow record comes", DEADLINE_S)
        wait_until(lambda: completed(client) >= 2, "two checkpoints are complete", DEADLINE_S)
        for _ in range(3):
            records, before = slow_records(tmp_path), completed(client)
            wait_until(lambda before=before: completed(client) > before, "the next checkpoint completes", DEADLINE_S)
            assert slow_records(tmp_path) - records <= 2 * (PARALLELISM + 1)
    finally:
        client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_records_in_flight_are_counted_once_after_a_failure(spark, tmp_path):
    """Three hundred records of twenty milliseconds wait in front of each subtask when the function fails."""
    env = checkpointed(PARALLELISM, INTERVAL_MS, restarts=1, unaligned=True)
    slow = Slow(tmp_path, QUICK, slow_s=0.02, fail_after=50)
    counts = env.from_sequence(1, 1000).key_by(lambda n: n % 100, Types.LONG()).map(slow, Types.LONG())
    with counts.execute_and_collect("in flight") as results:
        client = results.get_job_client()
        assert sorted(results) == list(range(1, 1001))
    history = client.get_checkpoint_statistics()
    assert history.latest_restored is not None
    done = [each for each in history.history if each.status is CheckpointStatus.COMPLETED]
    assert any(each.persisted_data for each in done), "nothing was in flight: the test shows nothing"
