"""Functions for elements of two streams that a join or a co-group has brought together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from rekindle.datastream.functions.function import Function


class ProcessJoinFunction(Function):
    """Handles each pair that an interval join finds; `yield tag, value` emits to a side output.

    >>> class Pair(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left, right, ctx.get_timestamp()
    """

    class Context(ABC):
        """What a function may ask about a pair."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The timestamp of the left element."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The timestamp of the right element."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The timestamp of what is emitted: the later one of both."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        """Handle one pair: yield results, return an iterable of them, or None."""


class JoinFunction(Function):
    """Makes one result of each pair that a window join finds.

    >>> class Pair(JoinFunction):
    ...     def join(self, first, second):
    ...         return first, second
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The result for an element of the first stream and one of the second."""


class FlatJoinFunction(Function):
    """Makes any number of results of each pair that a window join finds.

    >>> class Growing(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if first < second:
    ...             yield first, second
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Yield the results for a pair, return an iterable of them, or None."""


class CoGroupFunction(Function):
    """Evaluates all elements that two streams have for a key in a window; one of the two may have none.

    >>> class WithoutPartner(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not list(second):
    ...             yield from first
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Any:
        """Yield the results for the elements of both streams, return an iterable of them, or None."""
