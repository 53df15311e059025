"""Flink's `Rich...` names for functions with `open`, `close` and `get_runtime_context`. Here all have them."""

from __future__ import annotations

from typing import TypeVar

from rekindle.datastream.functions.async_function import AsyncFunction
from rekindle.datastream.functions.function import RichFunction
from rekindle.datastream.functions.join import CoGroupFunction, FlatJoinFunction, JoinFunction
from rekindle.datastream.functions.simple import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ReduceFunction,
)
from rekindle.datastream.functions.window_function import AllWindowFunction, WindowFunction

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")


class RichMapFunction(MapFunction, RichFunction):
    """A `MapFunction` under Flink's name for functions with `open` and `close`.

    >>> from rekindle.common import Types
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> from rekindle.datastream.state import ValueStateDescriptor
    >>> class CountPerKey(RichMapFunction):
    ...     def open(self, runtime_context):
    ...         self.count = self.get_runtime_context().get_state(ValueStateDescriptor("myCount", Types.LONG()))
    ...     def map(self, value):
    ...         current = self.count.value()
    ...         self.count.update(1 if current is None else current + 1)
    ...         return value
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> same = env.from_collection(["a", "b", "a"]).key_by(lambda word: word).map(CountPerKey())
    """


class RichFlatMapFunction(FlatMapFunction, RichFunction):
    """A `FlatMapFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichFlatMapFunction, FlatMapFunction)
    True
    """


class RichFilterFunction(FilterFunction, RichFunction):
    """A `FilterFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichFilterFunction, FilterFunction)
    True
    """


class RichReduceFunction(ReduceFunction, RichFunction):
    """A `ReduceFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichReduceFunction, ReduceFunction)
    True
    """


class RichAggregateFunction(AggregateFunction, RichFunction):
    """An `AggregateFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichAggregateFunction, AggregateFunction)
    True
    """


class RichCoMapFunction(CoMapFunction, RichFunction):
    """A `CoMapFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichCoMapFunction, CoMapFunction)
    True
    """


class RichCoFlatMapFunction(CoFlatMapFunction, RichFunction):
    """A `CoFlatMapFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichCoFlatMapFunction, CoFlatMapFunction)
    True
    """


class RichJoinFunction(JoinFunction, RichFunction):
    """A `JoinFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichJoinFunction, JoinFunction)
    True
    """


class RichFlatJoinFunction(FlatJoinFunction, RichFunction):
    """A `FlatJoinFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichFlatJoinFunction, FlatJoinFunction)
    True
    """


class RichCoGroupFunction(CoGroupFunction, RichFunction):
    """A `CoGroupFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichCoGroupFunction, CoGroupFunction)
    True
    """


class RichWindowFunction(WindowFunction[IN, OUT, KEY, W], RichFunction):
    """A `WindowFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichWindowFunction, WindowFunction)
    True
    """


class RichAllWindowFunction(AllWindowFunction[IN, OUT, W], RichFunction):
    """An `AllWindowFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichAllWindowFunction, AllWindowFunction)
    True
    """


class RichAsyncFunction(AsyncFunction[IN, OUT], RichFunction):
    """An `AsyncFunction` under Flink's name for functions with `open` and `close`.

    >>> issubclass(RichAsyncFunction, AsyncFunction)
    True
    """
