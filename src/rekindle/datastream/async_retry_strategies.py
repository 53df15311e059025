"""Retry strategies of async functions: no retry, fixed delay, exponential backoff."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from rekindle.datastream.functions.async_function import AsyncRetryPredicate, AsyncRetryStrategy
from rekindle.errors import GraphError

__all__ = [
    "NO_RETRY_STRATEGY",
    "AsyncRetryStrategies",
    "ExponentialBackoffDelayRetryStrategy",
    "ExponentialBackoffDelayRetryStrategyBuilder",
    "FixedDelayRetryStrategy",
    "FixedDelayRetryStrategyBuilder",
    "NoRetryStrategy",
    "RetryPredicate",
]

OUT = TypeVar("OUT")
_Number = TypeVar("_Number", int, float)
ResultPredicate = Callable[[list[Any]], bool]
ExceptionPredicate = Callable[[Exception], bool]


class RetryPredicate(AsyncRetryPredicate[OUT], Generic[OUT]):
    """A retry predicate made of a result predicate and an exception predicate."""

    def __init__(
        self: RetryPredicate[Any],  # no argument tells a checker the type
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Never retries.

    >>> NoRetryStrategy().can_retry(1)
    False
    """

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


class _Retrying(AsyncRetryStrategy[OUT]):
    """The base of strategies that retry."""

    def __init__(
        self,
        max_attempts: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        self._max_attempts = _positive(type(self), "max_attempts", max_attempts)
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class FixedDelayRetryStrategy(_Retrying[OUT], Generic[OUT]):
    """Retries at most `max_attempts` times, each `backoff_time_millis` after the last call ended.

    >>> FixedDelayRetryStrategy(2, 50, None, None).can_retry(3)
    False
    """

    def __init__(
        self: FixedDelayRetryStrategy[Any],  # no argument tells a checker the type
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        self._backoff_time_millis = _positive(type(self), "backoff_time_millis", backoff_time_millis)

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis


class ExponentialBackoffDelayRetryStrategy(_Retrying[OUT], Generic[OUT]):
    """Retries at most `max_attempts` times, after delays that grow from `initial_delay` to `max_retry_delay` ms.

    >>> strategy = ExponentialBackoffDelayRetryStrategy(9, 100, 500, 2.0, None, None)
    >>> [strategy.get_backoff_time_millis(calls) for calls in (1, 2, 3, 4)]
    [100, 200, 400, 500]
    """

    def __init__(
        self: ExponentialBackoffDelayRetryStrategy[Any],  # no argument tells a checker the type
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        self._initial_delay = _positive(type(self), "initial_delay", initial_delay)
        self._max_retry_delay = _positive(type(self), "max_retry_delay", max_retry_delay)
        self._multiplier = _positive(type(self), "multiplier", multiplier)

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Compute the delay from the number of calls only, because one strategy serves many elements at a time."""
        delay = float(self._initial_delay)
        for _ in range(current_attempts - 1):
            delay *= self._multiplier
            if delay >= self._max_retry_delay:
                break
        return int(min(delay, self._max_retry_delay))


class _Builder:
    def __init__(self) -> None:
        self._result_predicate: ResultPredicate | None = None
        self._exception_predicate: ExceptionPredicate | None = None

    def if_result(self, result_predicate: ResultPredicate) -> Self:
        """Retry results for which the predicate is true."""
        self._result_predicate = result_predicate
        return self

    def if_exception(self, exception_predicate: ExceptionPredicate) -> Self:
        """Retry errors for which the predicate is true."""
        self._exception_predicate = exception_predicate
        return self


class FixedDelayRetryStrategyBuilder(_Builder):
    """Builds a `FixedDelayRetryStrategy`.

    >>> from rekindle.datastream.async_retry_predicates import RetryPredicates
    >>> builder = FixedDelayRetryStrategyBuilder(3, 100).if_result(RetryPredicates.EMPTY_RESULT_PREDICATE)
    >>> builder.build().get_backoff_time_millis(2)
    100
    """

    def __init__(self, max_attempts: int, backoff_time_millis: int) -> None:
        super().__init__()
        self._arguments = max_attempts, backoff_time_millis

    def build(self) -> FixedDelayRetryStrategy[Any]:
        """Return the strategy."""
        return FixedDelayRetryStrategy(*self._arguments, self._result_predicate, self._exception_predicate)


class ExponentialBackoffDelayRetryStrategyBuilder(_Builder):
    """Builds an `ExponentialBackoffDelayRetryStrategy`.

    >>> ExponentialBackoffDelayRetryStrategyBuilder(3, 10, 1000, 3.0).build().get_backoff_time_millis(3)
    90
    """

    def __init__(self, max_attempts: int, initial_delay: int, max_retry_delay: int, multiplier: float) -> None:
        super().__init__()
        self._arguments = max_attempts, initial_delay, max_retry_delay, multiplier

    def build(self) -> ExponentialBackoffDelayRetryStrategy[Any]:
        """Return the strategy."""
        return ExponentialBackoffDelayRetryStrategy(*self._arguments, self._result_predicate, self._exception_predicate)


def _positive(cls: type, name: str, value: _Number) -> _Number:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise GraphError(f"{cls.__name__}: {name} must be greater than zero, not {value!r}.")
    return value


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


class AsyncRetryStrategies:
    """The strategies and builders, under the name of Flink's class.

    >>> AsyncRetryStrategies.NO_RETRY_STRATEGY.can_retry(1)
    False
    """

    NO_RETRY_STRATEGY = NO_RETRY_STRATEGY
    FixedDelayRetryStrategy = FixedDelayRetryStrategy
    FixedDelayRetryStrategyBuilder = FixedDelayRetryStrategyBuilder
    ExponentialBackoffDelayRetryStrategy = ExponentialBackoffDelayRetryStrategy
    ExponentialBackoffDelayRetryStrategyBuilder = ExponentialBackoffDelayRetryStrategyBuilder
