"""Window functions that let a join or co-group function at the elements of both streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from rekindle.datastream.functions import Function, RuntimeContext, WindowFunction


class _PairEvaluation(WindowFunction[Any, Any, Any, Any]):
    """Stands for the user's function: what else that one can do, such as take part in checkpoints, it still does."""

    _method: ClassVar[str]

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """The user's function is the one that asks for it."""
        if isinstance(self._function, Function):
            self._function.set_runtime_context(runtime_context)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the user's function, if it is one that can be opened."""
        function = self._function
        self._call: Callable[[Any, Any], Any] = function
        if isinstance(function, Function):
            function.open(runtime_context)
            self._call = getattr(function, self._method)

    def close(self) -> None:
        """Close the user's function, if it is one that can be closed."""
        if isinstance(self._function, Function):
            self._function.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # never the user's; and while this is unpickled there is no function yet
            raise AttributeError(name)
        return getattr(self._function, name)


def _sides(elements: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    one: list[Any] = []
    two: list[Any] = []
    for of_one, first, second in elements:
        if of_one:
            one.append(first)
        else:
            two.append(second)
    return one, two


class JoinEvaluation(_PairEvaluation):
    """One result for each pair."""

    _method = "join"

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        """The results, made as they are asked for: there may be many pairs."""
        one, two = _sides(inputs)
        join = self._call
        return (join(first, second) for first in one for second in two)


class FlatJoinEvaluation(_PairEvaluation):
    """Any number of results for each pair."""

    _method = "join"

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        """The results, made as they are asked for: there may be many pairs."""
        one, two = _sides(inputs)
        join = self._call
        return (result for first in one for second in two for result in join(first, second) or ())


class CoGroupEvaluation(_PairEvaluation):
    """Any number of results for both groups."""

    _method = "co_group"

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        """What the function yields or returns."""
        return self._call(*_sides(inputs))
