"""Functions of joins and co-groups, called with elements of two streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from rekindle.datastream.functions.function import Function


class ProcessJoinFunction(Function):
    """Processes each pair of an interval join. `yield tag, value` emits to a side output.

    >>> class Pair(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left, right, ctx.get_timestamp()
    """

    class Context(ABC):
        """The timestamps of the pair being processed."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the left element."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the right element."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the timestamp of the results: the later one of the two."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        """Process one pair: yield results, or return an iterable of results or None."""


class JoinFunction(Function):
    """Turns each pair of a window join into one result.

    >>> class Pair(JoinFunction):
    ...     def join(self, first, second):
    ...         return first, second
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Return the result for an element of the first stream and one of the second."""


class FlatJoinFunction(Function):
    """Turns each pair of a window join into any number of results.

    >>> class Growing(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if first < second:
    ...             yield first, second
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Yield the results for a pair, or return an iterable of results or None."""


class CoGroupFunction(Function):
    """Evaluates all elements of two streams for a key and window. One of the two groups may be empty.

    >>> class WithoutPartner(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not list(second):
    ...             yield from first
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Any:
        """Yield the results for the elements of both streams, or return an iterable of results or None."""
