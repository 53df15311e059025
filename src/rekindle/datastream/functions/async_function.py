"""Async functions, which wait for many external answers at a time on an asyncio loop of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from rekindle.datastream.functions.function import Function

IN = TypeVar("IN")
OUT = TypeVar("OUT")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Decides which results and which errors are retried."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Return a predicate that is true for results to be retried, or None to retry no result."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return a predicate that is true for errors to be retried, or None to retry no error."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Decides whether, how often and when `async_invoke` is called again for an element.

    >>> strategy = AsyncRetryStrategy.fixed_delay(3, 100, None, lambda error: isinstance(error, OSError))
    >>> strategy.can_retry(3), strategy.can_retry(4), strategy.get_backoff_time_millis(1)
    (True, False, 100)
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return whether another call may follow after `current_attempts` calls."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return how long to wait, in ms, before the next call after `current_attempts` calls."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicate that decides which results and errors are retried."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Return the strategy that never retries."""
        from rekindle.datastream.async_retry_strategies import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[Any]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[Any]:
        """Return a strategy with at most `max_attempts` retries, each after the same delay."""
        from rekindle.datastream.async_retry_strategies import FixedDelayRetryStrategy

        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[Any]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[Any]:
        """Return a strategy with at most `max_attempts` retries, after growing delays."""
        from rekindle.datastream.async_retry_strategies import ExponentialBackoffDelayRetryStrategy

        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class AsyncFunction(Function, Generic[IN, OUT]):
    """Turns an element into any number of results after asking an external system, such as a database.

    Calls for many elements are in flight at a time, on one asyncio loop per subtask. `open` and `close` run on the
    same loop and may be `async def`, so a client session made in `open` belongs to the loop that uses it.

    >>> import asyncio
    >>> class Lookup(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(0)
    ...         return [(value, len(value))]
    ...     def timeout(self, value):
    ...         return [(value, None)]
    >>> asyncio.run(Lookup().async_invoke("ann"))
    [('ann', 3)]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> Iterable[OUT]:
        """Return the results for one element: a list, which may be empty."""

    def timeout(self, value: IN) -> Any:
        """Return the results for an element that timed out. Unless overridden, the job fails."""
        raise TimeoutError(f"Async function call has timed out for input: {value!r}")


@dataclass(frozen=True)
class AsyncFunctionDescriptor:
    """An async function with its settings, from which the engine builds an async operator."""

    class OutputMode(Enum):
        """Whether results keep the order of the elements."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout_ms: int  # 0: no timeout
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode
