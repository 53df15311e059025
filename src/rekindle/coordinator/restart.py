"""Restart strategies: whether and when a failed job is restarted. Pure: history, time and randomness are arguments.

The strategies are Flink's, with its arithmetic; `common.restart_strategy` has the users' configuration of them.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.restart_strategy import (
    ExponentialDelayRestartStrategyConfiguration,
    FailureRateRestartStrategyConfiguration,
    FallbackRestartStrategyConfiguration,
    FixedDelayRestartStrategyConfiguration,
    NoRestartStrategyConfiguration,
    RestartStrategies,
    RestartStrategyConfiguration,
)
from rekindle.common.time import as_millis
from rekindle.errors import ConfigurationError

#: A delay beyond every maximum: keeps a power of the multiplier inside the range of a float.
_BEYOND_MS = 1e15


@dataclass(frozen=True)
class FailureHistory:
    """The earlier failures of a job, as far as a strategy needs them; bounded."""

    restarts: int = 0  # over the whole life of the job
    streak: int = 0  # restarts since the delay was last the initial one
    next_restart_ms: float | None = None  # when the restart after the last failure was due
    recent_ms: tuple[float, ...] = ()  # the last failures, oldest first, as many as FailureRate needs


@dataclass(frozen=True)
class Restart:
    """Restart after `delay_ms`; pass `history` at the next failure."""

    delay_ms: int
    history: FailureHistory


@dataclass(frozen=True)
class GiveUp:
    """Let the job fail; `reason` is a sentence for people."""

    reason: str


class RestartStrategy(ABC):
    """Decides whether a job restarts after a failure."""

    @abstractmethod
    def on_failure(self, history: FailureHistory, now_ms: float, chance: random.Random) -> Restart | GiveUp:
        """Decide about a failure at `now_ms` (monotonic) after the failures in `history`."""


@dataclass(frozen=True)
class NoRestart(RestartStrategy):
    """Never restarts the job."""

    def on_failure(self, history: FailureHistory, now_ms: float, chance: random.Random) -> Restart | GiveUp:
        """Always gives up."""
        return GiveUp("The job is not started again: its restart strategy is 'none'.")


@dataclass(frozen=True)
class FixedDelay(RestartStrategy):
    """Restarts the job a fixed number of times over its life, each time after the same delay.

    >>> FixedDelay(attempts=1, delay_ms=500).on_failure(FailureHistory(), 0, random.Random(0)).delay_ms
    500
    """

    attempts: int
    delay_ms: int

    def on_failure(self, history: FailureHistory, now_ms: float, chance: random.Random) -> Restart | GiveUp:
        """Gives up when the restarts are used up."""
        if history.restarts >= self.attempts:
            return GiveUp(f"The job is not started again: it used up the {self.attempts} restarts of 'fixed-delay'.")
        return Restart(self.delay_ms, FailureHistory(restarts=history.restarts + 1))


@dataclass(frozen=True)
class FailureRate(RestartStrategy):
    """Restarts while there were at most `max_failures` within the interval that ends now."""

    max_failures: int
    interval_ms: int
    delay_ms: int

    def on_failure(self, history: FailureHistory, now_ms: float, chance: random.Random) -> Restart | GiveUp:
        """Gives up when this failure exceeds `max_failures`."""
        recent = (*(at for at in history.recent_ms if now_ms - at <= self.interval_ms), now_ms)
        if len(recent) > self.max_failures:
            return GiveUp(
                f"The job is not started again: it failed {len(recent)} times within {self.interval_ms} ms, "
                f"'failure-rate' allows {self.max_failures}."
            )
        return Restart(self.delay_ms, FailureHistory(restarts=history.restarts + 1, recent_ms=recent))


@dataclass(frozen=True)
class ExponentialDelay(RestartStrategy):
    """Restarts after a delay that grows with each failure, and is the initial one again after a time without failures.

    >>> steady = ExponentialDelay(1000, 60_000, 2.0, 3_600_000, jitter=0.0, attempts_before_reset=10)
    >>> first = steady.on_failure(FailureHistory(), 0, random.Random(0))
    >>> first.delay_ms, steady.on_failure(first.history, 5000, random.Random(0)).delay_ms
    (1000, 2000)
    """

    initial_ms: int
    max_ms: int
    multiplier: float
    reset_threshold_ms: int
    jitter: float
    attempts_before_reset: int

    def on_failure(self, history: FailureHistory, now_ms: float, chance: random.Random) -> Restart | GiveUp:
        """Gives up after `attempts_before_reset` restarts without `reset_threshold_ms` of quiet in between."""
        due = history.next_restart_ms
        if due is not None and now_ms <= due:
            # The restart after the last failure is still to come: it covers this failure too.
            return Restart(math.ceil(due - now_ms), history)
        quiet = due is None or now_ms - due >= self.reset_threshold_ms
        streak = 0 if quiet else history.streak
        if streak >= self.attempts_before_reset:
            return GiveUp(
                f"The job is not started again: 'exponential-delay' restarted it {streak} times "
                f"without {self.reset_threshold_ms} ms of quiet in between."
            )
        delay_ms = self._delay_ms(streak, chance)
        return Restart(delay_ms, FailureHistory(history.restarts + 1, streak + 1, now_ms + delay_ms))

    def _delay_ms(self, streak: int, chance: random.Random) -> int:
        backoff = self._backoff_ms(streak)
        spread = int(backoff * self.jitter)
        return max(self.initial_ms, min(backoff + chance.randint(-spread, spread), self.max_ms))

    def _backoff_ms(self, streak: int) -> int:
        if self.initial_ms == 0:
            return 0
        growth = streak * math.log(self.multiplier)
        if growth > math.log(_BEYOND_MS / self.initial_ms):
            return int(_BEYOND_MS)
        return int(self.initial_ms * self.multiplier**streak)


def restart_strategy(
    chosen: RestartStrategyConfiguration | None, configuration: Configuration, checkpointing: bool
) -> RestartStrategy:
    """The strategy set in the program (`chosen`), else the configuration's, else Flink's default.

    >>> restart_strategy(None, Configuration(), checkpointing=False)
    NoRestart()
    >>> restart_strategy(RestartStrategies.fixed_delay_restart(5, 30_000), Configuration(), checkpointing=True)
    FixedDelay(attempts=5, delay_ms=30000)
    """
    if chosen is None or isinstance(chosen, FallbackRestartStrategyConfiguration):
        if configuration.get(config.RESTART_STRATEGY) is None and not checkpointing:
            return NoRestart()  # also in batch mode, where an interval may be set and means nothing
        chosen = RestartStrategies.from_configuration(configuration)
    match chosen:
        case NoRestartStrategyConfiguration():
            return NoRestart()
        case FixedDelayRestartStrategyConfiguration():
            return FixedDelay(chosen.restart_attempts, as_millis(chosen.delay_between_attempts_interval))
        case FailureRateRestartStrategyConfiguration():
            return FailureRate(
                chosen.max_failure_rate,
                as_millis(chosen.failure_interval),
                as_millis(chosen.delay_between_attempts_interval),
            )
        case ExponentialDelayRestartStrategyConfiguration():
            return ExponentialDelay(
                as_millis(chosen.initial_backoff),
                as_millis(chosen.max_backoff),
                chosen.backoff_multiplier,
                as_millis(chosen.reset_backoff_threshold),
                chosen.jitter_factor,
                chosen.attempts_before_reset_backoff,
            )
    raise ConfigurationError(f"{chosen!r} is no restart strategy; make one with RestartStrategies.")
