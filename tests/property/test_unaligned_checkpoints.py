"""A job with unaligned checkpoints, killed, restored and rescaled at random, gives the undisturbed result."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.common import Duration, Types, WatermarkStrategy
from rekindle.common.watermark_strategy import TimestampAssigner
from rekindle.datastream import MapFunction
from rekindle.datastream.window import TumblingEventTimeWindows
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed

CLOCK = ManualClock()
COUNT, KEYS, RECORD_MS = 50, 4, 10


class Slow(MapFunction):
    def map(self, value):
        CLOCK.advance(RECORD_MS)
        return value


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 100


def sums(parallelism: int):
    """Sums per key and second of event time, behind two slow exchanges. A late record would be missing."""
    env = checkpointed(parallelism, unaligned=True)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    timed = env.from_sequence(0, COUNT - 1).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(OwnTime())
    )
    slow = timed.rebalance().map(Slow(), Types.LONG()).key_by(lambda n: n % KEYS, Types.LONG()).map(Slow())
    keyed = slow.key_by(lambda n: n % KEYS, Types.LONG())
    return keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(1))).reduce(lambda a, b: a + b)


def expected() -> list[int]:
    windows: dict[tuple[int, int], int] = {}
    for number in range(COUNT):
        place = number % KEYS, number // 10
        windows[place] = windows.get(place, 0) + number
    return sorted(windows.values())


leaves = st.sampled_from([1, 3 * RECORD_MS, 8 * RECORD_MS, None])
steps = st.one_of(
    st.tuples(st.just("epoch"), leaves),
    st.tuples(st.just("checkpoint"), leaves),
    st.tuples(st.just("restart"), st.integers(1, 4)),
)


@settings(max_examples=60)
@given(parallelism=st.integers(1, 3), life=st.lists(steps, max_size=10), per_epoch=st.integers(3, 40))
def test_nothing_is_lost_doubled_or_late(parallelism, life, per_epoch):
    job = InProcessJob.of(sums(parallelism), CLOCK, max_records=per_epoch)
    safe, since, checkpoint = [], [], None
    for step, argument in life:
        if step == "epoch":
            since += job.epoch(argument)
        elif step == "checkpoint":
            checkpoint = job.checkpoint(leave_after_ms=argument)
            safe, since = safe + since + checkpoint.results, []
        else:
            job.kill()
            since = []
            job = InProcessJob.of(sums(argument), CLOCK, per_epoch, checkpoint)
    while not job.finished:
        since += job.epoch(3 * RECORD_MS)
    job.close()
    assert sorted(safe + since) == expected()
