"""`ConnectedStreams`: two streams as the two inputs of one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.streams.keyed_stream import KeyedStream
from rekindle.datastream.transformations import Transformation, Upstream
from rekindle.datastream.validation import check_function, declared_type
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.errors import GraphError, TypeMismatchError


class ConnectedStreams:
    """Two streams, possibly of different types, for a function with one method per stream.

    >>> from rekindle.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
    >>> class Join(KeyedCoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield "left", value
    ...     def process_element2(self, value, ctx):
    ...         yield "right", value
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> users, orders = env.from_collection([("a", 1)]), env.from_collection([("a", 2)])
    >>> joined = users.connect(orders).key_by(lambda u: u[0], lambda o: o[0]).process(Join())
    >>> joined.get_name()
    'Keyed Co-Process'
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: Any = None,
    ) -> ConnectedStreams:
        """Partition both streams by key. Records with equal keys go to the same subtask and share state."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: Any = None) -> DataStream:
        """Emit one record for each record of either stream."""
        check_function(self._where("map()"), func, CoMapFunction, {"map1": 1, "map2": 1}, single_valued=True)
        return self._operate(OperatorKind.CO_MAP, "Co-Map", func, self._declared("map()", output_type))

    def flat_map(self, func: CoFlatMapFunction, output_type: Any = None) -> DataStream:
        """Emit any number of records for each record of either stream."""
        check_function(self._where("flat_map()"), func, CoFlatMapFunction, {"flat_map1": 1, "flat_map2": 1})
        return self._operate(OperatorKind.CO_FLAT_MAP, "Co-Flat Map", func, self._declared("flat_map()", output_type))

    def process(self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: Any = None) -> DataStream:
        """Call a process function for each record of either stream, with state and timers if both streams are keyed."""
        where = self._where("process()")
        declared = self._declared("process()", output_type)
        methods = {"process_element1": 2, "process_element2": 2}
        if self._keyed is None:
            if isinstance(func, KeyedCoProcessFunction):
                raise GraphError(
                    f"{where} got the KeyedCoProcessFunction '{type(func).__name__}', but the streams are not both "
                    "keyed: call key_by(selector1, selector2) first, or use a CoProcessFunction."
                )
            check_function(where, func, CoProcessFunction, methods)
            return self._operate(OperatorKind.CO_PROCESS, "Co-Process", func, declared)
        check_function(where, func, (KeyedCoProcessFunction, CoProcessFunction), methods)
        return self._operate(OperatorKind.KEYED_CO_PROCESS, "Keyed Co-Process", func, declared)

    @property
    def _keyed(self) -> tuple[KeyedStream, KeyedStream] | None:
        if isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream):
            return self.stream1, self.stream2
        return None

    def _operate(self, kind: OperatorKind, name: str, function: Any, output_type: TypeInformation | None) -> DataStream:
        operator = Transformation(
            kind,
            name,
            function,
            inputs=(self.stream1._upstreams, self.stream2._upstreams),
            output_type=output_type,
        )
        if self._keyed is not None:
            first, second = self._keyed
            operator.key_selectors = (first._key_selector, second._key_selector)
            operator.key_type = self._common_key_type(first, second)
        env = self.stream1._env
        env._add(operator)
        return DataStream(env, (Upstream(operator),), output_type, operator)

    def _common_key_type(self, first: KeyedStream, second: KeyedStream) -> TypeInformation | None:
        types = [stream._key_type for stream in (first, second) if stream._key_type is not None]
        if len(set(types)) > 1:
            raise TypeMismatchError(
                f"{self._where('connect()')}: both streams need one type of key, not {types[0]} and {types[1]}."
            )
        return types[0] if types else None

    def _declared(self, method: str, hint: Any) -> TypeInformation | None:
        return declared_type(self._where(method), hint)

    def _where(self, method: str) -> str:
        names = " and ".join(
            f"'{upstream.transformation.name}'" for upstream in (*self.stream1._upstreams, *self.stream2._upstreams)
        )
        return f"ConnectedStreams.{method} of {names}"
