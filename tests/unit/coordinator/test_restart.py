"""Restart strategies: Flink's arithmetic, with time and chance passed in."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.common import Configuration, RestartStrategies
from rekindle.coordinator.restart import (
    ExponentialDelay,
    FailureHistory,
    FailureRate,
    FixedDelay,
    GiveUp,
    NoRestart,
    Restart,
    RestartStrategy,
    restart_strategy,
)

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


def configured(**entries: str) -> Configuration:
    configuration = Configuration()
    for key, value in entries.items():
        configuration.set_string(f"restart-strategy.{key.replace('__', '.').replace('_', '-')}", value)
    return configuration


def decisions(strategy: RestartStrategy, *failures_ms: float, seed: int = 0) -> list[int | None]:
    """The delay after each failure, None where the strategy gives up."""
    history, chance, delays = FailureHistory(), random.Random(seed), list[int | None]()
    for now_ms in failures_ms:
        decision = strategy.on_failure(history, now_ms, chance)
        if isinstance(decision, GiveUp):
            delays.append(None)
        else:
            delays.append(decision.delay_ms)
            history = decision.history
    return delays


def steady(**changes: float) -> ExponentialDelay:
    settings = {
        "initial_ms": 1000,
        "max_ms": 5000,
        "multiplier": 2.0,
        "reset_threshold_ms": 8000,
        "jitter": 0.0,
        "attempts_before_reset": 100,
    }
    return ExponentialDelay(**(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("strategy", "failures_ms", "delays"),
    [
        (NoRestart(), [0], [None]),
        (FixedDelay(0, 10), [0], [None]),
        (FixedDelay(2, 10), [0, 5, 9], [10, 10, None]),
        (FixedDelay(2, 10), [0, HOUR_MS, 24 * HOUR_MS], [10, 10, None]),  # quiet brings no attempt back
        (FailureRate(1, 1000, 10), [0, 500], [10, None]),
        (FailureRate(1, 1000, 10), [0, 1000], [10, None]),  # the interval includes its end
        (FailureRate(1, 1000, 10), [0, 1001, 2002], [10, 10, 10]),
        (FailureRate(3, 1000, 10), [0, 400, 800, 1001, 1002], [10, 10, 10, 10, None]),
        (steady(), [0, 1001, 4000, 9000, 15_000], [1000, 2000, 4000, 5000, 5000]),
        (steady(), [0, 1001, 3001 + 8000], [1000, 2000, 1000]),  # as long after the restart, not the failure
        (steady(), [0, 1001, 3001 + 7999], [1000, 2000, 4000]),
        (steady(), [0, 400, 999], [1000, 600, 1]),  # the same trouble: the restart that is due stays due
        (steady(attempts_before_reset=2), [0, 1001, 4000], [1000, 2000, None]),
        (steady(attempts_before_reset=2), [0, 1001, 20_000, 21_001, 25_000], [1000, 2000, 1000, 2000, None]),
        (steady(multiplier=1.0), [0, 1001, 2002], [1000, 1000, 1000]),
    ],
)
def test_delays(strategy: RestartStrategy, failures_ms: list[float], delays: list[int | None]):
    assert decisions(strategy, *failures_ms) == delays


def test_a_strategy_that_gives_up_says_why():
    none = NoRestart().on_failure(FailureHistory(), 0, random.Random(0))
    assert none == GiveUp("The job is not started again: its restart strategy is 'none'.")
    rate = FailureRate(1, 1000, 0)
    first = rate.on_failure(FailureHistory(), 0, random.Random(0))
    assert isinstance(first, Restart)
    second = rate.on_failure(first.history, 10, random.Random(0))
    assert isinstance(second, GiveUp)
    assert second.reason.endswith("it failed 2 times within 1000 ms, 'failure-rate' allows 1.")


def test_an_exponent_beyond_every_float_is_the_maximum():
    strategy = steady(multiplier=1000.0, max_ms=HOUR_MS, reset_threshold_ms=10**12)
    history = FailureHistory(restarts=5000, streak=50, next_restart_ms=0)
    decision = strategy.on_failure(history, 1, random.Random(0))
    assert isinstance(decision, Restart)
    assert decision.delay_ms == HOUR_MS


@given(seed=st.integers(), streak=st.integers(0, 60), jitter=st.floats(0, 1), multiplier=st.floats(1, 10))
def test_jitter_stays_around_the_delay_and_within_the_bounds(seed: int, streak: int, jitter: float, multiplier: float):
    strategy = steady(jitter=jitter, multiplier=multiplier)
    history = FailureHistory(streak=streak, next_restart_ms=0)
    decision = strategy.on_failure(history, 1, random.Random(seed))
    assert isinstance(decision, Restart)
    expected = 1000 * multiplier**streak
    assert max(1000, min(5000, expected * (1 - jitter) - 1)) <= decision.delay_ms <= 5000
    assert decision.delay_ms <= expected * (1 + jitter) + 1
    assert decision == strategy.on_failure(history, 1, random.Random(seed)), "the same seed, the same delay"


def test_jitter_spreads_jobs_that_failed_together():
    delays = {decisions(steady(jitter=0.5), 0, 2000, seed=seed)[1] for seed in range(50)}
    assert len(delays) > 25


@given(failures_ms=st.lists(st.integers(0, 5000), max_size=60).map(sorted), allowed=st.integers(1, 5))
def test_a_rate_is_never_exceeded_and_the_history_is_bounded(failures_ms: list[int], allowed: int):
    strategy, history, survived = FailureRate(allowed, 100, 0), FailureHistory(), list[int]()
    for now_ms in failures_ms:
        decision = strategy.on_failure(history, now_ms, random.Random(0))
        within = [at for at in survived if now_ms - at <= 100]
        assert isinstance(decision, GiveUp) is (len(within) >= allowed)
        if isinstance(decision, GiveUp):
            return
        history = decision.history
        survived.append(now_ms)
        assert len(history.recent_ms) <= allowed


# -- from code and configuration --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (configured(type="none"), NoRestart()),
        (configured(type="off"), NoRestart()),
        (configured(type="fixed-delay"), FixedDelay(1, 1000)),
        (
            configured(type="fixed-delay", fixed_delay__attempts="5", fixed_delay__delay="30 s"),
            FixedDelay(5, 30_000),
        ),
        (configured(type="failure-rate"), FailureRate(1, MINUTE_MS, 1000)),
        (
            configured(
                type="failure-rate",
                failure_rate__max_failures_per_interval="3",
                failure_rate__failure_rate_interval="5 min",
                failure_rate__delay="10 s",
            ),
            FailureRate(3, 300_000, 10_000),
        ),
        (
            configured(
                type="exponential-delay",
                exponential_delay__initial_backoff="2 s",
                exponential_delay__max_backoff="20 s",
                exponential_delay__backoff_multiplier="3",
                exponential_delay__reset_backoff_threshold="10 min",
                exponential_delay__jitter_factor="0",
                exponential_delay__attempts_before_reset_backoff="7",
            ),
            ExponentialDelay(2000, 20_000, 3.0, 600_000, 0.0, 7),
        ),
    ],
)
def test_a_strategy_comes_from_the_configuration(configuration: Configuration, expected: RestartStrategy):
    for chosen in (None, RestartStrategies.fall_back_restart()):
        assert restart_strategy(chosen, configuration, checkpointing=False) == expected


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (RestartStrategies.no_restart(), NoRestart()),
        (RestartStrategies.fixed_delay_restart(5, 30_000), FixedDelay(5, 30_000)),
        (RestartStrategies.failure_rate_restart(3, 300_000, 10_000), FailureRate(3, 300_000, 10_000)),
        (
            RestartStrategies.exponential_delay_restart(1, 2000, 1.5, 3000, 0.1),
            ExponentialDelay(1, 2000, 1.5, 3000, 0.1, 2**31 - 1),
        ),
    ],
)
def test_the_programs_strategy_overrides_the_configured_one(chosen: object, expected: RestartStrategy):
    assert restart_strategy(chosen, configured(type="fixed-delay"), checkpointing=True) == expected  # type: ignore[arg-type]


def test_the_default_is_exponential_delay_with_checkpoints_and_none_without():
    configuration = Configuration()
    assert restart_strategy(None, configuration, checkpointing=False) == NoRestart()
    configuration.set_string("execution.checkpointing.interval", "10 s")
    flinks_default = ExponentialDelay(1000, MINUTE_MS, 1.5, HOUR_MS, 0.1, 2**31 - 1)
    assert restart_strategy(None, configuration, checkpointing=True) == flinks_default
    assert restart_strategy(None, configuration, checkpointing=False) == NoRestart(), "batch mode: no checkpoints"
