"""`DataGeneratorSource`: a source that computes each record from its number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rekindle.clock import Clock, SystemClock
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.connectors.ranges import RangeReader, strided_splits
from rekindle.datastream.validation import check_callable, check_single_valued
from rekindle.errors import GraphError

T = TypeVar("T")

#: The count of an unbounded generator, as in Flink: the largest 64-bit number.
UNLIMITED = 2**63 - 1


class RateLimiter:
    """Limits records to `records_per_second`. Unused permits accumulate for at most a second."""

    def __init__(self, records_per_second: float, clock: Clock) -> None:
        self._rate = records_per_second
        self._clock = clock
        self._burst = max(1.0, records_per_second)
        self._permits = 0.0
        self._counted_at = clock.monotonic()

    def available(self) -> int:
        """Return how many records may be emitted now."""
        now = self._clock.monotonic()
        self._permits = min(self._burst, self._permits + (now - self._counted_at) * self._rate)
        self._counted_at = now
        return int(self._permits)

    def take(self, records: int) -> None:
        """Use up the permits of emitted records."""
        self._permits -= records


class RateLimiterStrategy:
    """The rate limit of a generator, over all its subtasks.

    >>> RateLimiterStrategy.per_second(100).records_per_second
    100
    """

    def __init__(self, records_per_second: float | None) -> None:
        if records_per_second is not None and records_per_second <= 0:
            raise GraphError(f"A rate limit must be above 0 records per second, not {records_per_second}.")
        self.records_per_second = records_per_second

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """Return a strategy without a limit."""
        return RateLimiterStrategy(None)

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """Return a strategy with this many records per second, over all subtasks."""
        return RateLimiterStrategy(records_per_second)

    def create_rate_limiter(self, parallelism: int, clock: Clock | None = None) -> RateLimiter | None:
        """Return a limiter with one subtask's share of the limit, or None without a limit."""
        if self.records_per_second is None:
            return None
        return RateLimiter(self.records_per_second / parallelism, clock or SystemClock())


class DataGeneratorSource(Source[T], Generic[T]):
    """Emits `count` records: the results of `generator_function` for the numbers from 0 on. It can replay any of them.

    >>> source = DataGeneratorSource(lambda n: f"order-{n}", 3)
    >>> source.create_reader(SourceReaderContext(0, 1), source.create_splits(1)).poll(10)
    ['order-0', 'order-1', 'order-2']
    """

    def __init__(
        self,
        generator_function: Callable[[int], T],
        count: int = UNLIMITED,
        rate_limiter: RateLimiterStrategy | None = None,
    ) -> None:
        check_callable("DataGeneratorSource", generator_function, 1, "a function of the record's number")
        check_single_valued("DataGeneratorSource: the generator function", generator_function)
        if not isinstance(count, int) or count < 0:
            raise GraphError(f"DataGeneratorSource takes a count of records of 0 or more, not {count!r}.")
        self._generator_function = generator_function
        self._count = count
        self._rate_limiter = rate_limiter or RateLimiterStrategy.no_op()

    def boundedness(self) -> Boundedness:
        """Return BOUNDED if a count was given, else CONTINUOUS_UNBOUNDED."""
        return Boundedness.BOUNDED if self._count < UNLIMITED else Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Deal out the numbers in turn, so that subtasks of equal speed are at about the same number."""
        return strided_splits(self._count, parallelism)

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader that computes the records of these ranges."""
        limiter = self._rate_limiter.create_rate_limiter(context.parallelism)
        return GeneratorReader(self._generator_function, splits, limiter)


class GeneratorReader(RangeReader[T], Generic[T]):
    """Computes one subtask's records, within its rate limit."""

    def __init__(
        self, generator_function: Callable[[int], T], splits: list[SourceSplit], limiter: RateLimiter | None
    ) -> None:
        super().__init__(splits)
        self._function: Callable[[int], Any] = generator_function
        self._limiter = limiter

    def read(self, numbers: range) -> list[T]:
        """Call the generator function for each number."""
        return list(map(self._function, numbers))

    def is_available(self) -> bool:
        """Return whether the rate limit allows a record. At the end of the records, always True."""
        return self._limiter is None or not self._splits or self._limiter.available() > 0

    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Return up to `max_records` records, within the rate limit."""
        if self._limiter is None:
            return super().poll(max_records)
        allowed = min(max_records, self._limiter.available())
        if allowed <= 0 and any(begin < end for begin, end, _ in (split.position for split in self._splits)):
            return []
        records = super().poll(max(1, allowed))
        if records is not None:
            self._limiter.take(len(records))
        return records
