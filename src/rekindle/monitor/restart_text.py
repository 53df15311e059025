"""A restart strategy as Flink's answers describe it."""

from __future__ import annotations

from rekindle.coordinator.restart import ExponentialDelay, FailureRate, FixedDelay, RestartStrategy


def describe_restart(strategy: RestartStrategy) -> str:
    """The strategy as a sentence.

    >>> describe_restart(FixedDelay(attempts=50, delay_ms=2000))
    'Restart with fixed delay (PT2S). #50 restart attempts.'
    """
    match strategy:
        case FixedDelay():
            return f"Restart with fixed delay ({_iso(strategy.delay_ms)}). #{strategy.attempts} restart attempts."
        case FailureRate():
            return (
                f"Failure rate restart with maximum of {strategy.max_failures} failures within interval "
                f"{_iso(strategy.interval_ms)} and fixed delay {_iso(strategy.delay_ms)}."
            )
        case ExponentialDelay():
            return (
                f"Restart with exponential delay: initial backoff {_iso(strategy.initial_ms)}, maximum backoff "
                f"{_iso(strategy.max_ms)}, multiplier {strategy.multiplier}, reset after "
                f"{_iso(strategy.reset_threshold_ms)}, jitter {strategy.jitter}."
            )
    return "Restart deactivated."


def _iso(milliseconds: int) -> str:
    """A duration in ISO 8601, as Java prints it.

    >>> _iso(2000), _iso(90_500), _iso(3_600_000), _iso(0)
    ('PT2S', 'PT1M30.5S', 'PT1H', 'PT0S')
    """
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds = f"{rest / 1000:g}S" if rest or not (hours or minutes) else ""
    return f"PT{f'{hours}H' if hours else ''}{f'{minutes}M' if minutes else ''}{seconds}"
