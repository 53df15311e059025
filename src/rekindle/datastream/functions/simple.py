"""Functions that see one value at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from rekindle.datastream.functions.function import Function


class MapFunction(Function):
    """One value in, one value out.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    >>> Double().map(4)
    8
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The value that replaces `value`."""


class CoMapFunction(Function):
    """One value out for each value of either input.

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
        """For a value of the first input."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """For a value of the second input."""


class FlatMapFunction(Function):
    """One value in, any number out: `yield` them, or return an iterable or None.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(Words().flat_map("to be"))
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Any:
        """The values that replace `value`."""


class CoFlatMapFunction(Function):
    """Any number of values out for each value of either input.

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
        """For a value of the first input."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Any:
        """For a value of the second input."""


class FilterFunction(Function):
    """Decides which values stay.

    >>> class Positive(FilterFunction):
    ...     def filter(self, value):
    ...         return value > 0
    >>> Positive().filter(-1)
    False
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """True if the value stays."""


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
        """The combination; `value1` is what came so far."""


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
        """The accumulator before the first value."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with one more value."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """What the accumulator stands for."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Two accumulators as one."""


class KeySelector(Function):
    """Finds a value's key. It must give the same key for the same value, in every process.

    >>> class ByUser(KeySelector):
    ...     def get_key(self, value):
    ...         return value["user"]
    >>> ByUser().get_key({"user": "ann"})
    'ann'
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key."""


class Partitioner(Function):
    """Chooses the channel of a key for `partition_custom`.

    >>> class ByLength(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return len(key) % num_partitions
    >>> ByLength().partition("abc", 2)
    1
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """The channel, from 0 to `num_partitions` - 1."""
