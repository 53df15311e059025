"""How epochs grow, shrink and wait."""

from __future__ import annotations

from rekindle.coordinator.pacing import EpochLimits, Pace

LIMITS = EpochLimits(initial_records=1000, max_records=1_000_000, target_ms=1000, min_interval_ms=100)


def test_it_starts_small_and_grows_to_the_target_while_there_is_more():
    pace, seen = Pace.start(LIMITS), []
    for _ in range(12):
        seen.append(pace.max_records)
        pace = pace.after(duration_ms=100 + pace.max_records * 0.002, capped=True)
    assert seen[:3] == [1000, 4000, 16_000]
    assert seen[-1] == seen[-2], "it settles"
    assert 0.3 * LIMITS.target_ms < 100 + seen[-1] * 0.002 < 1.25 * LIMITS.target_ms


def test_it_halves_when_epochs_take_too_long():
    pace = Pace(LIMITS, 100_000)
    assert pace.after(duration_ms=1300, capped=True).max_records == 50_000
    for _ in range(20):
        pace = pace.after(duration_ms=100 + pace.max_records * 0.5, capped=True)
    assert 100 + pace.max_records * 0.5 < 1.25 * LIMITS.target_ms, "expensive records: as few as the target needs"


def test_a_machine_too_busy_for_the_target_gets_more_records_per_epoch_not_fewer():
    """Each epoch takes two seconds and more by itself: few records would make it no shorter, only less worthwhile."""
    pace, seen = Pace.start(LIMITS), []
    for epoch in range(60):
        seen.append(pace.max_records)
        pace = pace.after(duration_ms=2000 + 400 * (epoch % 3) + pace.max_records * 0.02, capped=True)
    assert min(seen) >= LIMITS.initial_records // 2
    assert sum(seen[-10:]) / 10 > 20_000
    for _ in range(20):
        pace = pace.after(duration_ms=100 + pace.max_records * 0.02, capped=True)
    assert 0.3 * LIMITS.target_ms < 100 + pace.max_records * 0.02 < 1.25 * LIMITS.target_ms, "quiet again"


def test_an_epoch_that_was_long_by_chance_is_forgotten():
    pace, seen = Pace(LIMITS, 100_000), []
    for epoch in range(60):
        chance_ms = 9000 if epoch == 1 else 0
        seen.append(100 + pace.max_records * 0.1)
        pace = pace.after(duration_ms=seen[-1] + chance_ms, capped=True)
    assert max(seen[-10:]) < 1.25 * LIMITS.target_ms


def test_it_never_reaches_zero_nor_the_sky():
    assert Pace(LIMITS, 1).after(5000, True).max_records == 1
    assert Pace(LIMITS, 900_000).after(10, True).max_records == LIMITS.max_records


def test_an_epoch_that_was_not_full_says_nothing_about_the_cap():
    assert Pace(LIMITS, 4000).after(10, capped=False).max_records == 4000
    assert Pace(LIMITS, 4000).after(5000, capped=False).max_records == 4000


def test_a_trickle_waits_for_the_interval_and_a_backlog_does_not():
    pace = Pace.start(LIMITS)
    assert pace.pause_ms(since_last_start_ms=30, backlog=False) == 70
    assert pace.pause_ms(since_last_start_ms=3000, backlog=False) == 0
    assert pace.pause_ms(since_last_start_ms=30, backlog=True) == 0
