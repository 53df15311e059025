"""Functions for pairs of elements that a join has found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rekindle.datastream.functions.base import Function


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
