"""Jobs whose state expires, killed and restored: the time that passes while they are down counts."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Time, Types
from rekindle.datastream import AggregateFunction, DataStream, KeyedProcessFunction
from rekindle.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rekindle.testing import InProcessJob, ManualClock
from tests.support.environments import checkpointed

START_MS = 1_700_000_000_000
TTL_MS = 10
#: The keys of each epoch; the clock moves 4 ms after each epoch.
EPOCHS = [["a", "b"], ["a", "c"], ["a", "d"], ["a", "b"], ["b", "c"], ["a", "d"]]
STEP_MS = 4


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Visits(KeyedProcessFunction):
    """Counts the visits of a key in each kind of state, all with the same time to live, and emits all the counts."""

    def __init__(self, config: StateTtlConfig | None) -> None:
        self._config = config

    def open(self, runtime_context: Any) -> None:
        def expiring(descriptor: Any) -> Any:
            if self._config is not None:
                descriptor.enable_time_to_live(self._config)
            return descriptor

        context, long = runtime_context, Types.LONG()
        self.value = context.get_state(expiring(ValueStateDescriptor("value", long)))
        self.listed = context.get_list_state(expiring(ListStateDescriptor("listed", long)))
        self.mapped = context.get_map_state(expiring(MapStateDescriptor("mapped", Types.STRING(), long)))
        self.sum = context.get_reducing_state(expiring(ReducingStateDescriptor("sum", lambda a, b: a + b, long)))
        self.count = context.get_aggregating_state(expiring(AggregatingStateDescriptor("count", Count(), long)))

    def process_element(self, value: str, ctx: Any) -> Any:
        self.value.update((self.value.value() or 0) + 1)
        self.listed.add(1)
        self.mapped.put("visits", (self.mapped.get("visits") or 0) + 1)
        self.sum.add(1)
        self.count.add(1)
        listed, mapped = len(self.listed.get()), self.mapped.get("visits")
        yield value, self.value.value(), listed, mapped, self.sum.get(), self.count.get()


def visits(config: StateTtlConfig | None, parallelism: int) -> DataStream:
    env = checkpointed(parallelism)
    stream = env.from_collection([key for epoch in EPOCHS for key in epoch], Types.STRING())
    return stream.key_by(lambda key: key, Types.STRING()).process(Visits(config))


def config_of(cleanup: str) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).disable_cleanup_in_background()
    if cleanup == "incremental":
        builder.cleanup_incrementally(2, True)
    if cleanup == "full snapshot":
        builder.cleanup_full_snapshot()
    return builder.build()


def expected(pauses: dict[int, int]) -> list[list[tuple[Any, ...]]]:
    """The counts of each epoch: a count expires 10 ms after the last visit, each element by itself.

    `pauses`: milliseconds that pass after an epoch with this number.
    """
    now = START_MS
    last: dict[str, tuple[int, int]] = {}
    listed: dict[str, list[int]] = {}
    output: list[list[tuple[Any, ...]]] = []
    for number, epoch in enumerate(EPOCHS, 1):
        output.append([])
        for key in epoch:
            visited, count = last.get(key, (0, 0))
            count = count + 1 if visited + TTL_MS > now else 1
            last[key] = (now, count)
            listed[key] = [*(stamp for stamp in listed.get(key, []) if stamp + TTL_MS > now), now]
            output[-1].append((key, count, len(listed[key]), count, count, count))
        now += STEP_MS + pauses.get(number, 0)
    return output


def run_epoch(job: InProcessJob, clock: ManualClock) -> list[Any]:
    found = job.checkpoint().results
    clock.advance(STEP_MS)
    return sorted(found)


@pytest.mark.parametrize("cleanup", ["none", "incremental", "full snapshot"])
@pytest.mark.parametrize("down_ms", [0, 3, 50])
@pytest.mark.parametrize("cut", [1, 2, 4])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_what_expires_does_so_across_a_restore(cut: int, down_ms: int, parallelism: int, cleanup: str) -> None:
    clock = ManualClock(START_MS)
    config = config_of(cleanup)
    job = InProcessJob.of(visits(config, 2), clock, max_records=2)
    found = [run_epoch(job, clock) for _ in range(cut - 1)]
    checkpoint = job.checkpoint()
    found.append(sorted(checkpoint.results))
    clock.advance(STEP_MS)
    job.kill()
    clock.advance(down_ms)
    job = InProcessJob.of(visits(config, parallelism), clock, max_records=2, restore=checkpoint)
    found += [run_epoch(job, clock) for _ in range(len(EPOCHS) - cut)]
    job.run()
    assert found == [sorted(epoch) for epoch in expected({cut: down_ms})]


def test_a_job_gets_a_time_to_live_and_loses_it_again() -> None:
    clock = ManualClock(START_MS)
    config = config_of("none")
    plain = InProcessJob.of(visits(None, 2), clock, max_records=2)
    first = plain.checkpoint()
    plain.kill()
    clock.advance(1000)
    timed = InProcessJob.of(visits(config, 2), clock, max_records=2, restore=first)
    second = timed.checkpoint()
    assert sorted(second.results) == [("a", 2, 2, 2, 2, 2), ("c", 1, 1, 1, 1, 1)]
    timed.kill()
    clock.advance(TTL_MS)
    expired = InProcessJob.of(visits(config, 2), clock, max_records=2, restore=second)
    assert sorted(expired.epoch()) == [("a", 1, 1, 1, 1, 1), ("d", 1, 1, 1, 1, 1)]
    expired.kill()
    kept = InProcessJob.of(visits(None, 1), clock, max_records=2, restore=second)
    assert sorted(kept.epoch()) == [("a", 3, 3, 3, 3, 3), ("d", 1, 1, 1, 1, 1)]
    kept.kill()
