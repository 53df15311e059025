"""Accumulators, under Flink's names: each subtask adds up its own, and the job's result has them merged.

A function makes one in `open` with `runtime_context.add_accumulator(name, IntCounter())` or
`runtime_context.get_int_counter(name)`; after the job `result.get_accumulator_result(name)` has the value.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Self, TypeVar

from rekindle.errors import RekindleError
from rekindle.serde import value_codec_for

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "SimpleAccumulator",
    "encode_accumulators",
    "merge_accumulators",
    "merge_encoded",
]

V = TypeVar("V")
R = TypeVar("R")


class Accumulator(ABC, Generic[V, R]):
    """Collects values into a result, and can be merged with the accumulators of other subtasks."""

    @abstractmethod
    def add(self, value: V) -> None:
        """Adds one value."""

    @abstractmethod
    def get_local_value(self) -> R:
        """The result of the values added here."""

    @abstractmethod
    def reset_local(self) -> None:
        """Forgets all values."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Adds the values of another accumulator."""

    def clone(self) -> Self:
        """A copy with the same content."""
        return copy.deepcopy(self)


class SimpleAccumulator(Accumulator[V, V], Generic[V]):
    """An accumulator whose result has the type of its values."""


class IntCounter(SimpleAccumulator[int]):
    """A sum of whole numbers.

    >>> counter = IntCounter()
    >>> counter.add(2)
    >>> counter.add(3)
    >>> counter.get_local_value()
    5
    """

    def __init__(self, value: int = 0) -> None:
        self._sum: int = value

    def add(self, value: int) -> None:
        self._sum += value

    def get_local_value(self) -> int:
        return self._sum

    def reset_local(self) -> None:
        self._sum = 0

    def merge(self, other: Self) -> None:
        self._sum += other._sum


class LongCounter(IntCounter):
    """The same as IntCounter: Python's whole numbers have no size."""


class DoubleCounter(SimpleAccumulator[float]):
    """A sum of numbers."""

    def __init__(self, value: float = 0.0) -> None:
        self._sum: float = float(value)

    def add(self, value: float) -> None:
        self._sum += value

    def get_local_value(self) -> float:
        return self._sum

    def reset_local(self) -> None:
        self._sum = 0.0

    def merge(self, other: Self) -> None:
        self._sum += other._sum


class _Extreme(SimpleAccumulator[Any]):
    _largest: bool

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def add(self, value: Any) -> None:
        if self._value is None or (value > self._value if self._largest else value < self._value):
            self._value = value

    def get_local_value(self) -> Any:
        return self._value

    def reset_local(self) -> None:
        self._value = None

    def merge(self, other: Self) -> None:
        if other._value is not None:
            self.add(other._value)


class IntMaximum(_Extreme):
    """The largest value; None before the first one."""

    _largest = True


class IntMinimum(_Extreme):
    """The smallest value; None before the first one."""

    _largest = False


class DoubleMaximum(_Extreme):
    """The largest value; None before the first one."""

    _largest = True


class DoubleMinimum(_Extreme):
    """The smallest value; None before the first one."""

    _largest = False


class AverageAccumulator(SimpleAccumulator[float]):
    """The mean of the values; 0 before the first one.

    >>> average = AverageAccumulator()
    >>> average.add(1)
    >>> average.add(2)
    >>> average.get_local_value()
    1.5
    """

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, value: float) -> None:
        self._sum += value
        self._count += 1

    def get_local_value(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        self._sum, self._count = 0.0, 0

    def merge(self, other: Self) -> None:
        self._sum += other._sum
        self._count += other._count


class ListAccumulator(Accumulator[Any, list[Any]]):
    """A list of all values. Keep it small: all of it travels to the driver."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any) -> None:
        self._values.append(value)

    def get_local_value(self) -> list[Any]:
        return self._values

    def reset_local(self) -> None:
        self._values = []

    def merge(self, other: Self) -> None:
        self._values.extend(other._values)


class Histogram(Accumulator[int, dict[int, int]]):
    """The number of times that each value was added, by value.

    >>> histogram = Histogram()
    >>> for length in (3, 1, 3):
    ...     histogram.add(length)
    >>> histogram.get_local_value()
    {1: 1, 3: 2}
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        self._counts = {}

    def merge(self, other: Self) -> None:
        for value, count in other._counts.items():
            self._counts[value] = self._counts.get(value, 0) + count


# -- from the slots to the driver -------------------------------------------------------------------------------------

_BUILT_IN: dict[str, type[Accumulator[Any, Any]]] = {
    cls.__name__: cls
    for cls in (
        AverageAccumulator,
        DoubleCounter,
        DoubleMaximum,
        DoubleMinimum,
        Histogram,
        IntCounter,
        IntMaximum,
        IntMinimum,
        ListAccumulator,
        LongCounter,
    )
}
_OWN = ""
# Values that are not plain, and accumulators of users' own classes, are pickled, as elements of such types are.
_codec = value_codec_for(None, allow_pickle=True)


def encode_accumulators(accumulators: Iterable[tuple[str, Accumulator[Any, Any]]]) -> bytes:
    """Encode accumulators with their names; a name may occur more than once."""
    return _codec.encode([(name, *_encoded(accumulator)) for name, accumulator in accumulators])


def _encoded(accumulator: Accumulator[Any, Any]) -> tuple[str, Any]:
    kind = type(accumulator)
    return (kind.__name__, vars(accumulator)) if _BUILT_IN.get(kind.__name__) is kind else (_OWN, accumulator)


def _decoded(kind: str, content: Any) -> Accumulator[Any, Any]:
    if kind == _OWN:
        return content  # type: ignore[no-any-return]
    cls = _BUILT_IN[kind]
    accumulator = cls.__new__(cls)
    vars(accumulator).update(content)
    return accumulator


def merge_accumulators(accumulators: Iterable[tuple[str, Accumulator[Any, Any]]]) -> Mapping[str, Any]:
    """The results by name; accumulators of one name are merged.

    >>> merge_accumulators([("seen", IntCounter(1)), ("seen", IntCounter(2))])
    {'seen': 3}
    """
    merged: dict[str, Accumulator[Any, Any]] = {}
    for name, accumulator in accumulators:
        if name not in merged:
            merged[name] = accumulator.clone()
            continue
        if type(merged[name]) is not type(accumulator):
            kinds = sorted((type(merged[name]).__name__, type(accumulator).__name__))
            raise RekindleError(
                f"Accumulator '{name}' is a {kinds[0]} in one function and a {kinds[1]} in another: give one of them "
                "another name."
            )
        merged[name].merge(accumulator)
    return {name: accumulator.get_local_value() for name, accumulator in merged.items()}


def merge_encoded(parts: Iterable[bytes]) -> Mapping[str, Any]:
    """The merged results of the `encode_accumulators` bytes of several slots."""
    return merge_accumulators(
        (name, _decoded(kind, content)) for part in parts for name, kind, content in _codec.decode(part)
    )
