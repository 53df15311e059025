"""Window functions that call the user's join or co-group function with the elements of both streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from rekindle.datastream.functions import Function, RuntimeContext, WindowFunction


class _PairEvaluation(WindowFunction[Any, Any, Any, Any]):
    """Wraps the user's function and forwards its other methods, such as those that take part in checkpoints."""

    _method: ClassVar[str]

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Pass the runtime context on to the user's function."""
        if isinstance(self._function, Function):
            self._function.set_runtime_context(runtime_context)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the user's function, unless it is a plain callable."""
        function = self._function
        self._call: Callable[[Any, Any], Any] = function
        if isinstance(function, Function):
            function.open(runtime_context)
            self._call = getattr(function, self._method)

    def close(self) -> None:
        """Close the user's function, unless it is a plain callable."""
        if isinstance(self._function, Function):
            self._function.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not the user's; and `_function` is missing while this is unpickled
            raise AttributeError(name)
        return getattr(self._function, name)


def _split_by_stream(elements: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    one: list[Any] = []
    two: list[Any] = []
    for of_one, first, second in elements:
        if of_one:
            one.append(first)
        else:
            two.append(second)
    return one, two


class JoinEvaluation(_PairEvaluation):
    """Calls a `JoinFunction` or a callable: one result for each pair."""

    _method = "join"

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        """Return an iterator over the results. It is lazy because there may be many pairs."""
        one, two = _split_by_stream(inputs)
        join = self._call
        return (join(first, second) for first in one for second in two)


class FlatJoinEvaluation(_PairEvaluation):
    """Calls a `FlatJoinFunction`: any number of results for each pair."""

    _method = "join"

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        """Return an iterator over the results. It is lazy because there may be many pairs."""
        one, two = _split_by_stream(inputs)
        join = self._call
        return (result for first in one for second in two for result in join(first, second) or ())


class CoGroupEvaluation(_PairEvaluation):
    """Calls a `CoGroupFunction` or a callable: any number of results for both groups."""

    _method = "co_group"

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        """Return the result of the user's function."""
        return self._call(*_split_by_stream(inputs))
