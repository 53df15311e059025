"""Evaluation of a window: from its contents to results, with any kind of window function, with or without evictor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from rekindle.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from rekindle.datastream.windowing.evictors import Evictor, TimestampedValue
from rekindle.datastream.windowing.operation import ContentsKind, WindowContents
from rekindle.runtime.operators.stateless import method_or_callable
from rekindle.runtime.operators.windows.contents import TimestampedContents
from rekindle.runtime.operators.windows.contexts import WindowContext
from rekindle.runtime.state.change_tracking import Row

#: (key, window, elements) -> results.
Evaluate = Callable[[Any, Any, list[Any]], Iterable[Any] | None]


def evaluation_of(function: Any, context: WindowContext) -> Evaluate:
    """Return how to call a window function; without one the elements are the results."""
    if function is None:
        return lambda key, window, elements: elements
    if isinstance(function, WindowFunction):
        return function.apply
    if isinstance(function, AllWindowFunction):
        apply = function.apply
        return lambda key, window, elements: apply(window, elements)
    if isinstance(function, ProcessWindowFunction):
        process = function.process
        return lambda key, window, elements: process(key, context, elements)
    assert isinstance(function, ProcessAllWindowFunction), f"{function!r} evaluates no window"
    process_all = function.process
    return lambda key, window, elements: process_all(context, elements)


def clearing_of(function: Any) -> Callable[[WindowContext], None] | None:
    """Return the function's own `clear`, which clears a window's state; None if it does not override it."""
    if not isinstance(function, ProcessWindowFunction | ProcessAllWindowFunction):
        return None
    inherited = type(function).clear in (ProcessWindowFunction.clear, ProcessAllWindowFunction.clear)
    return None if inherited else function.clear


def combination_of(contents: WindowContents) -> Callable[[list[Any]], list[Any]]:
    """Return how to combine the elements that an evictor left into the input of the window function."""
    function = contents.function
    if contents.kind is ContentsKind.ELEMENTS:
        return list
    if contents.kind is ContentsKind.REDUCED:
        combine = method_or_callable(function, "reduce")
        return lambda elements: [reduce(combine, elements)] if elements else []
    assert isinstance(function, AggregateFunction)
    aggregate = function

    def aggregated(elements: list[Any]) -> list[Any]:
        accumulator = aggregate.create_accumulator()
        for element in elements:
            accumulator = aggregate.add(element, accumulator)
        return [aggregate.get_result(accumulator)]

    return aggregated


class Eviction:
    """Calls an evictor before and after the evaluation of a window."""

    def __init__(
        self,
        evictor: Evictor[Any, Any],
        contents: TimestampedContents,
        combine: Callable[[list[Any]], list[Any]],
        context: Evictor.EvictorContext,
    ) -> None:
        self._evictor = evictor
        self._contents = contents
        self._combine = combine
        self._context = context

    def evaluate(self, row: Row, window: Any, evaluate: Callable[[list[Any]], None]) -> None:
        """Evict, evaluate, evict again; remove the evicted elements for good."""
        held: list[tuple[int, Any]] = self._contents.raw(row)
        elements = [TimestampedValue(value, timestamp) for timestamp, value in held]
        self._evictor.evict_before(elements, len(elements), window, self._context)
        combined = self._combine([each.value for each in elements])
        if combined or self._combine is list:
            evaluate(combined)
        self._evictor.evict_after(elements, len(elements), window, self._context)
        if not elements:
            self._contents.clear(row)
        elif len(elements) != len(held):
            self._contents.put(row, [(each.timestamp, each.value) for each in elements])
