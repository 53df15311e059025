"""Functions that evaluate the contents of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from rekindle.datastream.functions.function import Function, KeyedStateStore
from rekindle.datastream.output_tag import OutputTag

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream.

    >>> class Total(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         yield key, window.end, sum(inputs)
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results, or return an iterable of results."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that is not keyed.

    >>> class Total(AllWindowFunction):
    ...     def apply(self, window, inputs):
    ...         yield window.end, sum(inputs)
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results, or return an iterable of results."""


class _WindowContext(ABC, Generic[W2]):
    """The context of a window evaluation: window, clocks, state and side outputs."""

    @abstractmethod
    def window(self) -> W2:
        """Return the window that is evaluated."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the wall clock, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the watermark, in milliseconds."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the state of this key and window. Clear it in `clear()`. Merging windows have no such state."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the state of this key that all its windows share."""

    @abstractmethod
    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Emit to a side output, as `yield output_tag, value` does (in Flink: Java only)."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream, with access to clocks and state.

    `yield value` emits to the main output, `yield tag, value` to a side output.

    >>> class Count(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         yield key, context.window().start, len(list(elements))
    """

    class Context(_WindowContext[W2]):
        """The context of a window evaluation."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results, or return an iterable of results."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the window's state when the window is removed."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that is not keyed, with access to clocks and state.

    >>> class Count(ProcessAllWindowFunction):
    ...     def process(self, context, elements):
    ...         yield context.window().start, len(list(elements))
    """

    class Context(_WindowContext[W2]):
        """The context of a window evaluation."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results, or return an iterable of results."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the window's state when the window is removed."""
