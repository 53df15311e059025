"""Functions without a context: map, filter, reduce, aggregate, key selectors and partitioners."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from rekindle.datastream.functions.function import Function


class MapFunction(Function):
    """Turns each value into one result.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    >>> Double().map(4)
    8
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return the result for a value."""


class CoMapFunction(Function):
    """Turns each value of two inputs into one result.

    >>> class Label(CoMapFunction):
    ...     def map1(self, value):
    ...         return "left", value
    ...     def map2(self, value):
    ...         return "right", value
    >>> Label().map2(1)
    ('right', 1)
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return the result for a value of the first input."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return the result for a value of the second input."""


class FlatMapFunction(Function):
    """Turns each value into any number of results: yields them, or returns an iterable or None.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(Words().flat_map("to be"))
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Any:
        """Yield the results for a value, or return an iterable or None."""


class CoFlatMapFunction(Function):
    """Turns each value of two inputs into any number of results.

    >>> class Both(CoFlatMapFunction):
    ...     def flat_map1(self, value):
    ...         yield value
    ...     def flat_map2(self, value):
    ...         return None
    >>> list(Both().flat_map1(1))
    [1]
    """

    @abstractmethod
    def flat_map1(self, value: Any) -> Any:
        """Yield the results for a value of the first input, or return an iterable or None."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Any:
        """Yield the results for a value of the second input, or return an iterable or None."""


class FilterFunction(Function):
    """Decides which values to keep.

    >>> class Positive(FilterFunction):
    ...     def filter(self, value):
    ...         return value > 0
    >>> Positive().filter(-1)
    False
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return True to keep the value."""


class ReduceFunction(Function):
    """Combines two values into one of the same type.

    >>> class Sum(ReduceFunction):
    ...     def reduce(self, value1, value2):
    ...         return value1 + value2
    >>> Sum().reduce(1, 2)
    3
    """

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the combination. `value1` is the combination of all values so far."""


class AggregateFunction(Function):
    """Folds values into an accumulator of another type.

    >>> class Average(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0, 0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
    >>> Average().get_result(Average().add(4, (2, 1)))
    3.0
    """

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return the accumulator before the first value."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Return the accumulator with one more value."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """Return the result of an accumulator."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return the combination of two accumulators."""


class KeySelector(Function):
    """Returns the key of a value. The same value must have the same key in every process.

    >>> class ByUser(KeySelector):
    ...     def get_key(self, value):
    ...         return value["user"]
    >>> ByUser().get_key({"user": "ann"})
    'ann'
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key of a value."""


class Partitioner(Function):
    """Chooses the subtask of a key for `partition_custom`.

    >>> class ByLength(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return len(key) % num_partitions
    >>> ByLength().partition("abc", 2)
    1
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return the index of the subtask, from 0 to `num_partitions` - 1."""
