"""Functions that wait for answers from elsewhere: many at a time, on an asyncio loop of their own."""

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
    """Which results and which errors ask for another try."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """True for results that are to be asked for again; None: none are."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """True for errors after which it is tried again; None: after none."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Whether, how often and when `async_invoke` is called again for an element.

    >>> strategy = AsyncRetryStrategy.fixed_delay(3, 100, None, lambda error: isinstance(error, OSError))
    >>> strategy.can_retry(3), strategy.can_retry(4), strategy.get_backoff_time_millis(1)
    (True, False, 100)
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether there may be another call after so many."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait before the call that follows so many."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which results and errors ask for another try."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """One call, and no other."""
        from rekindle.datastream.async_retry_strategies import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[Any]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[Any]:
        """So many more calls at most, always after the same time."""
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
        """So many more calls at most, after times that grow."""
        from rekindle.datastream.async_retry_strategies import ExponentialBackoffDelayRetryStrategy

        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class AsyncFunction(Function, Generic[IN, OUT]):
    """One element in, any number out, after an answer from elsewhere: a database, a service.

    Calls for many elements are in flight at a time, on one asyncio loop per subtask. `open` and `close` run on that
    loop too and may be `async def`: a client session made in `open` belongs to the loop that uses it.

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
        """The results for one element: a list, empty if there are none."""

    def timeout(self, value: IN) -> Any:
        """The results for an element whose time is over; without this method the job fails."""
        raise TimeoutError(f"Async function call has timed out for input: {value!r}")


@dataclass(frozen=True)
class AsyncFunctionDescriptor:
    """An async function and how it is called: what an async operator is built from."""

    class OutputMode(Enum):
        """Whether results come in the order of the elements."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout_ms: int  # 0: none
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode
