"""Restart strategies: whether, when and how often a job restarts after a failure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.time import Duration, Time, as_millis
from rekindle.errors import ConfigurationError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]

#: The forms of a duration; an int is milliseconds.
Amount = Duration | Time | timedelta | int


class RestartStrategyConfiguration(ABC):
    """Base of the restart strategies, which are data: the coordinator acts on them."""

    @abstractmethod
    def get_description(self) -> str:
        """The strategy as text."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.get_description())


def _is_from(least: int, number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= least


def _factor(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"The {name} of an exponential delay restart is a number, not {value!r}.")
    return float(value)


def _span(amount: Amount) -> timedelta:
    millis = as_millis(amount)
    if millis < 0:
        raise ValueError(f"An amount of time cannot be negative: {amount!r}.")
    return timedelta(milliseconds=millis)


@dataclass(frozen=True)
class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
    """The first failure ends the job."""

    def get_description(self) -> str:
        """The strategy as text."""
        return "Restart deactivated."


@dataclass(frozen=True)
class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
    """The strategy that the configuration names."""

    def get_description(self) -> str:
        """The strategy as text."""
        return "Cluster level default restart strategy"


@dataclass(frozen=True)
class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """At most `restart_attempts` restarts, each after a fixed delay."""

    restart_attempts: int
    delay_between_attempts_interval: timedelta

    def __post_init__(self) -> None:
        if not _is_from(0, self.restart_attempts):
            raise ConfigurationError(f"A fixed delay restart takes 0 restarts or more, not {self.restart_attempts!r}.")

    def get_restart_attempts(self) -> int:
        """The number of restarts before the job fails."""
        return self.restart_attempts

    def get_delay_between_attempts_interval(self) -> timedelta:
        """Time between a failure and its restart."""
        return self.delay_between_attempts_interval

    def get_description(self) -> str:
        """The strategy as text."""
        delay_ms = as_millis(self.delay_between_attempts_interval)
        return f"Restart with fixed delay ({delay_ms} ms). #{self.restart_attempts} restart attempts."


@dataclass(frozen=True)
class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Restarts until there are more than `max_failure_rate` failures within an interval."""

    max_failure_rate: int
    failure_interval: timedelta
    delay_between_attempts_interval: timedelta

    def __post_init__(self) -> None:
        if not _is_from(1, self.max_failure_rate):
            raise ConfigurationError(
                f"A failure rate restart takes 1 failure or more per interval, not {self.max_failure_rate!r}."
            )

    def get_max_failure_rate(self) -> int:
        """The most failures within the interval after which the job still restarts."""
        return self.max_failure_rate

    def get_failure_interval(self) -> timedelta:
        """The interval over which failures are counted."""
        return self.failure_interval

    def get_delay_between_attempts_interval(self) -> timedelta:
        """Time between a failure and its restart."""
        return self.delay_between_attempts_interval

    def get_description(self) -> str:
        """The strategy as text."""
        return (
            f"Failure rate restart with maximum of {self.max_failure_rate} failures within interval "
            f"{as_millis(self.failure_interval)} ms and fixed delay "
            f"{as_millis(self.delay_between_attempts_interval)} ms."
        )


@dataclass(frozen=True)
class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Restarts after a backoff that grows with each failure and is reset after a time without failures."""

    initial_backoff: timedelta
    max_backoff: timedelta
    backoff_multiplier: float
    reset_backoff_threshold: timedelta
    jitter_factor: float
    attempts_before_reset_backoff: int = config.EXPONENTIAL_ATTEMPTS.default

    def __post_init__(self) -> None:
        if not 1.0 <= self.backoff_multiplier < math.inf:
            raise ValueError(f"The backoff multiplier must be at least 1: {self.backoff_multiplier}.")
        if not 0.0 <= self.jitter_factor <= 1.0:
            raise ValueError(f"The jitter factor must be between 0 and 1: {self.jitter_factor}.")
        if self.max_backoff < self.initial_backoff:
            raise ValueError(f"The maximum backoff {self.max_backoff} is below the initial {self.initial_backoff}.")

    def get_initial_backoff(self) -> timedelta:
        """Time between the first failure and its restart."""
        return self.initial_backoff

    def get_max_backoff(self) -> timedelta:
        """The longest time between a failure and its restart."""
        return self.max_backoff

    def get_backoff_multiplier(self) -> float:
        """The factor by which the backoff grows after each failure."""
        return self.backoff_multiplier

    def get_reset_backoff_threshold(self) -> timedelta:
        """The time without a failure after which the backoff is the initial one again."""
        return self.reset_backoff_threshold

    def get_jitter_factor(self) -> float:
        """The random part of the backoff."""
        return self.jitter_factor

    def get_description(self) -> str:
        """The strategy as text."""
        return (
            f"Restart with exponential delay: starting at {as_millis(self.initial_backoff)} ms, increasing by "
            f"{self.backoff_multiplier}, with maximum {as_millis(self.max_backoff)} ms. Delay resets after "
            f"{as_millis(self.reset_backoff_threshold)} ms with jitter {self.jitter_factor}."
        )


class RestartStrategies:
    """Makes restart strategies; an int is milliseconds.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'Restart with fixed delay (10000 ms). #3 restart attempts.'
    """

    if not TYPE_CHECKING:
        # PyFlink's names for the classes; type checkers use the module's.
        NoRestartStrategyConfiguration: ClassVar = NoRestartStrategyConfiguration
        FallbackRestartStrategyConfiguration: ClassVar = FallbackRestartStrategyConfiguration
        FixedDelayRestartStrategyConfiguration: ClassVar = FixedDelayRestartStrategyConfiguration
        FailureRateRestartStrategyConfiguration: ClassVar = FailureRateRestartStrategyConfiguration
        ExponentialDelayRestartStrategyConfiguration: ClassVar = ExponentialDelayRestartStrategyConfiguration

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """The first failure ends the job."""
        return NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """The strategy that the configuration names."""
        return FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: Amount
    ) -> FixedDelayRestartStrategyConfiguration:
        """At most `restart_attempts` restarts, each `delay_between_attempts` after its failure."""
        return FixedDelayRestartStrategyConfiguration(restart_attempts, _span(delay_between_attempts))

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Amount, delay_interval: Amount
    ) -> FailureRateRestartStrategyConfiguration:
        """Restarts until there are more than `failure_rate` failures within `failure_interval`."""
        return FailureRateRestartStrategyConfiguration(failure_rate, _span(failure_interval), _span(delay_interval))

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: Amount,
        max_backoff: Amount,
        backoff_multiplier: float,
        reset_backoff_threshold: Amount,
        jitter_factor: float,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Restarts after a backoff that grows with each failure and is reset after a time without failures.

        >>> RestartStrategies.exponential_delay_restart(1_000, 60_000, 1.5, 3_600_000, 0.1).get_max_backoff()
        datetime.timedelta(seconds=60)
        """
        return ExponentialDelayRestartStrategyConfiguration(
            _span(initial_backoff),
            _span(max_backoff),
            _factor("backoff multiplier", backoff_multiplier),
            _span(reset_backoff_threshold),
            _factor("jitter factor", jitter_factor),
        )

    @staticmethod
    def from_configuration(configuration: Configuration) -> RestartStrategyConfiguration:
        """The strategy that a configuration asks for; unset: exponential delay with checkpoints, none without.

        >>> RestartStrategies.from_configuration(Configuration()).get_description()
        'Restart deactivated.'
        """
        get = configuration.get
        kind = get(config.RESTART_STRATEGY)
        if kind is None:
            kind = "none" if get(config.CHECKPOINT_INTERVAL) is None else "exponential-delay"
        if kind == "none":
            return NoRestartStrategyConfiguration()
        if kind == "fixed-delay":
            return FixedDelayRestartStrategyConfiguration(get(config.FIXED_DELAY_ATTEMPTS), get(config.FIXED_DELAY))
        if kind == "failure-rate":
            return FailureRateRestartStrategyConfiguration(
                get(config.FAILURE_RATE_MAX_FAILURES),
                get(config.FAILURE_RATE_INTERVAL),
                get(config.FAILURE_RATE_DELAY),
            )
        return ExponentialDelayRestartStrategyConfiguration(
            get(config.EXPONENTIAL_INITIAL_BACKOFF),
            get(config.EXPONENTIAL_MAX_BACKOFF),
            get(config.EXPONENTIAL_MULTIPLIER),
            get(config.EXPONENTIAL_RESET_THRESHOLD),
            get(config.EXPONENTIAL_JITTER),
            get(config.EXPONENTIAL_ATTEMPTS),
        )
