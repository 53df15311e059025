"""The pace of epochs: how their number of records grows and shrinks, and how long they wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rekindle.common import Configuration
from rekindle.coordinator.epoch_rules import Pace
from rekindle.graph.settings import CheckpointPolicy, EpochLimits

LIMITS = EpochLimits(initial_records=1000, max_records=1_000_000, target_ms=1000, min_interval_ms=100)


def next_pace(pace: Pace, overhead_ms: float, record_ms: float, chance_ms: float = 0.0) -> Pace:
    """After an epoch whose sources had more than the cap."""
    work_ms = pace.max_records * record_ms
    return pace.after(duration_ms=overhead_ms + work_ms + chance_ms, work_ms=work_ms, capped=True)


def test_epochs_start_small_and_grow_to_the_target_while_there_is_more():
    pace, seen = Pace.start(LIMITS), []
    for _ in range(12):
        seen.append(pace.max_records)
        pace = next_pace(pace, 100, 0.002)
    assert seen[:3] == [1000, 4000, 16_000]
    assert seen[-1] == seen[-2], "it settles"
    assert 0.3 * LIMITS.target_ms < 100 + seen[-1] * 0.002 < 1.25 * LIMITS.target_ms


def test_the_cap_halves_when_epochs_take_too_long():
    pace = Pace(LIMITS, 100_000)
    assert pace.after(duration_ms=1300, work_ms=1200, capped=True).max_records == 50_000
    for _ in range(20):
        pace = next_pace(pace, 100, 0.5)
    assert 100 + pace.max_records * 0.5 < 1.25 * LIMITS.target_ms, "expensive records: as few as the target needs"


def test_an_epoch_of_minutes_is_followed_by_one_within_its_target():
    pace = next_pace(Pace(LIMITS, 1000), 100, 250)
    assert pace.max_records * 250 + 100 < 1.25 * LIMITS.target_ms


@pytest.mark.parametrize("record_ms", [1, 10, 250])
def test_from_one_record_on_no_epoch_is_longer_than_its_target_however_much_a_record_costs(record_ms):
    pace = Pace.start(replace(LIMITS, initial_records=1, target_ms=500))
    for _ in range(10):
        duration_ms = 90 + pace.max_records * record_ms
        assert duration_ms < 1.25 * 500
        pace = next_pace(pace, 90, record_ms)
    assert 90 + pace.max_records * record_ms > 0.4 * 500, "the epochs' time is used"


def test_a_record_that_takes_longer_than_the_target_comes_alone():
    pace = Pace.start(replace(LIMITS, initial_records=1))
    for _ in range(10):
        pace = next_pace(pace, 90, 2000)
        assert pace.max_records == 1


def test_cheap_records_are_many_after_a_few_epochs():
    pace, epochs = Pace.start(replace(LIMITS, initial_records=1)), 0
    while pace.max_records < 1000:
        pace, epochs = next_pace(pace, 90, 0.001), epochs + 1
    assert epochs == 2


def test_half_as_much_follows_an_epoch_that_left_records_over():
    assert Pace(LIMITS, 4000).after(1000, 900, capped=True, left_over=True).max_records == 2000
    assert Pace(LIMITS, 1).after(1000, 900, capped=True, left_over=True).max_records == 1


def test_two_epochs_fit_into_a_checkpoint_interval():
    configuration = Configuration.from_dict({"rekindle.epoch.target-duration": "1 s"})
    targets = [
        EpochLimits.of(configuration, CheckpointPolicy(interval_ms)).target_ms for interval_ms in (1000, 60_000, -1)
    ]
    assert targets == [500, 1000, 1000]


def test_a_machine_too_busy_for_the_target_gets_more_records_per_epoch_not_fewer():
    """Each epoch has an overhead of two seconds and more: few records would not make it shorter."""
    pace, seen = Pace.start(LIMITS), []
    for epoch in range(60):
        seen.append(pace.max_records)
        pace = next_pace(pace, 2000 + 400 * (epoch % 3), 0.02)
    assert min(seen) >= LIMITS.initial_records // 2
    assert sum(seen[-10:]) / 10 > 20_000
    for _ in range(20):
        pace = next_pace(pace, 100, 0.02)
    assert 0.3 * LIMITS.target_ms < 100 + pace.max_records * 0.02 < 1.25 * LIMITS.target_ms, "quiet again"


def test_an_epoch_that_was_long_by_chance_is_forgotten():
    pace, seen = Pace(LIMITS, 100_000), []
    for epoch in range(60):
        seen.append(100 + pace.max_records * 0.1)
        pace = next_pace(pace, 100, 0.1, chance_ms=9000 if epoch == 1 else 0)
    assert max(seen[-10:]) < 1.25 * LIMITS.target_ms


def test_the_cap_is_at_least_one_and_at_most_the_maximum():
    assert Pace(LIMITS, 1).after(5000, 5000, True).max_records == 1
    assert Pace(LIMITS, 900_000).after(10, 5, True).max_records == LIMITS.max_records


def test_an_epoch_below_the_cap_does_not_change_the_cap():
    assert Pace(LIMITS, 4000).after(10, 5, capped=False).max_records == 4000
    assert Pace(LIMITS, 4000).after(5000, 4900, capped=False).max_records == 4000


def test_few_records_wait_for_the_interval_and_a_backlog_does_not():
    pace = Pace.start(LIMITS)
    assert pace.pause_ms(since_last_start_ms=30, backlog=False) == 70
    assert pace.pause_ms(since_last_start_ms=3000, backlog=False) == 0
    assert pace.pause_ms(since_last_start_ms=30, backlog=True) == 0
