"""Broadcast streams, whose records every subtask receives, and their connection with another stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rekindle.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from rekindle.datastream.operator_details import BroadcastDetails
from rekindle.datastream.state import MapStateDescriptor
from rekindle.datastream.transformations import Transformation, Upstream
from rekindle.datastream.validation import check_function, declared_type
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.streams.data_stream import DataStream


class BroadcastStream:
    """The result of `broadcast(descriptor, ...)`: a stream to `connect` with, and its broadcast state descriptors."""

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]) -> None:
        seen: set[str] = set()
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise GraphError(f"broadcast() takes MapStateDescriptors, not {descriptor!r}.")
            if descriptor.name in seen:
                raise GraphError(f"broadcast() got two state descriptors named '{descriptor.name}': names must differ.")
            seen.add(descriptor.name)
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream:
    """A stream, keyed or not, that is connected with a broadcast stream.

    >>> from rekindle.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
    >>> rules = MapStateDescriptor("rules", str, int)
    >>> class Enrich(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield value, ctx.get_broadcast_state(rules).get(value)
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put(*value)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> broadcast = env.from_collection([("a", 1)]).broadcast(rules)
    >>> env.from_collection(["a"]).connect(broadcast).process(Enrich()).get_name()
    'Co-Process-Broadcast'
    """

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: Any = None,
    ) -> DataStream:
        """Call a function for the elements of both streams. A keyed stream takes a `KeyedBroadcastProcessFunction`."""
        from rekindle.datastream.streams.data_stream import DataStream
        from rekindle.datastream.streams.keyed_stream import KeyedStream

        stream = self.non_broadcast_stream
        operator = Transformation(
            OperatorKind.BROADCAST_PROCESS,
            "Co-Process-Broadcast",
            func,
            inputs=(stream._upstreams, self.broadcast_stream.input_stream._upstreams),
            output_type=declared_type(self._where(), output_type),
            details=BroadcastDetails(tuple(self.broadcast_state_descriptors)),
        )
        methods = {"process_element": 2, "process_broadcast_element": 2}
        if isinstance(stream, KeyedStream):
            check_function(self._where(), func, KeyedBroadcastProcessFunction, methods | {"on_timer": 2})
            operator.kind = OperatorKind.KEYED_BROADCAST_PROCESS
            operator.name = "Co-Process-Broadcast-Keyed"
            operator.key_selectors = (stream._key_selector, None)
            operator.key_type = stream._key_type
        else:
            check_function(self._where(), func, BroadcastProcessFunction, methods)
        stream._env._add(operator)
        return DataStream(stream._env, (Upstream(operator),), operator.output_type, operator)

    def _where(self) -> str:
        stream = self.non_broadcast_stream
        names = ", ".join(f"'{upstream.transformation.name}'" for upstream in stream._upstreams)
        kind = "a keyed stream" if type(stream).__name__ == "KeyedStream" else "a stream that is not keyed"
        return f"BroadcastConnectedStream.process() after {names}, {kind},"
