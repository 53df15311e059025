"""Functions over the contents of a window."""

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
        """Yield the results, or return an iterable of them."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that is not keyed.

    >>> class Total(AllWindowFunction):
    ...     def apply(self, window, inputs):
    ...         yield window.end, sum(inputs)
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results, or return an iterable of them."""


class _WindowContext(ABC, Generic[W2]):
    """What a process window function may ask."""

    @abstractmethod
    def window(self) -> W2:
        """The window that is evaluated."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The clock, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Event time, in milliseconds."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and window: clear it in `clear()`. Windows that merge have none."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key that all its windows share."""

    @abstractmethod
    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Emit to a side output, as `yield output_tag, value` does (Flink's, in Java only)."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream, with clocks and state at hand.

    `yield value` emits to the main output, `yield tag, value` to a side output.

    >>> class Count(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         yield key, context.window().start, len(list(elements))
    """

    class Context(_WindowContext[W2]):
        """What the function may ask."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results, or return an iterable of them."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """The window goes: clear its state."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream that is not keyed, with clocks and state at hand.

    >>> class Count(ProcessAllWindowFunction):
    ...     def process(self, context, elements):
    ...         yield context.window().start, len(list(elements))
    """

    class Context(_WindowContext[W2]):
        """What the function may ask."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results, or return an iterable of them."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """The window goes: clear its state."""
