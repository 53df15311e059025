"""`DataStream`: operators, windows, joins and partitionings of a stream that is not keyed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, overload

from rekindle.common.execution_config import ExecutionConfig
from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
)
from rekindle.datastream.operator_details import PLAIN, OperatorDetails
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.state import MapStateDescriptor
from rekindle.datastream.streams.projection import projection
from rekindle.datastream.streams.sinks import SinkableStream
from rekindle.datastream.transformations import Transformation, Upstream
from rekindle.datastream.validation import check_function, check_max_parallelism, declared_type, warn_no_effect
from rekindle.datastream.vocabulary import ChainingStrategy, OperatorKind, Partitioning
from rekindle.errors import GraphError, TypeMismatchError

if TYPE_CHECKING:
    from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment
    from rekindle.datastream.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from rekindle.datastream.streams.cached_stream import CachedDataStream
    from rekindle.datastream.streams.connected_streams import ConnectedStreams
    from rekindle.datastream.streams.joined_streams import CoGroupedStreams, JoinedStreams
    from rekindle.datastream.streams.keyed_stream import KeyedStream
    from rekindle.datastream.streams.windowed_stream import AllWindowedStream
    from rekindle.datastream.windowing.assigners import WindowAssigner


class DataStream(SinkableStream):
    """A stream of records of one type. Its methods add operators or partitionings and return new streams.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> words = env.from_collection(["to be", "or not"]).flat_map(str.split, output_type=str)
    >>> words.get_type()
    String
    """

    # -- properties ---------------------------------------------------------------------------------------------------

    def get_name(self) -> str:
        """Return the operator's name."""
        return self._settable("get_name()").name

    def get_type(self) -> TypeInformation:
        """Return the declared type of the records, or the pickled type if none was declared."""
        return Types.PICKLED_BYTE_ARRAY() if self._type_info is None else self._type_info

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """Return the environment's execution configuration."""
        return self._env.get_config()

    # -- settings of the operator -------------------------------------------------------------------------------------

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the largest parallelism that the operator may ever have. It is the operator's number of key groups."""
        operator = self._settable("set_max_parallelism()")
        check_max_parallelism(f"'{operator.name}'", max_parallelism)
        if operator.parallelism is not None and operator.parallelism > max_parallelism:
            raise GraphError(
                f"'{operator.name}': the parallelism {operator.parallelism} is above the maximum of {max_parallelism}."
            )
        operator.max_parallelism = max_parallelism
        return self

    def force_non_parallel(self) -> Self:
        """Fix the operator's parallelism and maximum parallelism at 1."""
        operator = self._settable("force_non_parallel()")
        operator.parallelism, operator.max_parallelism, operator.non_parallel = 1, 1, True
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Warn that the buffer timeout of one operator has no effect: the environment's applies to all operators."""
        operator = self._settable("set_buffer_timeout()")
        if not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise GraphError(f"'{operator.name}': a buffer timeout is -1, 0 or more ms, not {timeout_millis!r}.")
        warn_no_effect("DataStream.set_buffer_timeout()", "the environment's buffer timeout applies to all operators")
        return self

    def start_new_chain(self) -> Self:
        """Make the operator the first one of its task: it does not chain to the operator before it."""
        self._settable("start_new_chain()").chaining = ChainingStrategy.HEAD
        return self

    # -- operators ----------------------------------------------------------------------------------------------------

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: Any = None) -> DataStream:
        """Emit one record for each input record: the result of `func`.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1, 2]).map(lambda n: n * 2, output_type=int).get_type()
        Long
        """
        check_function(self._where("map()"), func, MapFunction, {"map": 1}, callable_arity=1, single_valued=True)
        return self._operate(OperatorKind.MAP, "Map", func, self._declared("map()", output_type))

    def flat_map(self, func: Callable[[Any], Any] | FlatMapFunction, output_type: Any = None) -> DataStream:
        """Emit any number of records for each input record: `func` yields them, or returns an iterable or None.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection(["to be"]).flat_map(str.split).get_name()
        'FlatMap'
        """
        check_function(self._where("flat_map()"), func, FlatMapFunction, {"flat_map": 1}, callable_arity=1)
        return self._operate(OperatorKind.FLAT_MAP, "FlatMap", func, self._declared("flat_map()", output_type))

    def filter(self, func: Callable[[Any], Any] | FilterFunction) -> DataStream:
        """Keep the records for which `func` returns true.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1, 2], type_info=int).filter(lambda n: n > 1).get_type()
        Long
        """
        check_function(
            self._where("filter()"), func, FilterFunction, {"filter": 1}, callable_arity=1, single_valued=True
        )
        return self._operate(OperatorKind.FILTER, "Filter", func, self._type_info)

    def process(self, func: ProcessFunction, output_type: Any = None) -> DataStream:
        """Call a process function for each record. It sees the timestamp and may emit to side outputs.

        >>> from rekindle.datastream import ProcessFunction, StreamExecutionEnvironment
        >>> class Twice(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value
        ...         yield value
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1]).process(Twice(), output_type=int).get_type()
        Long
        """
        check_function(self._where("process()"), func, ProcessFunction, {"process_element": 2})
        return self._operate(OperatorKind.PROCESS, "PROCESS", func, self._declared("process()", output_type))

    def project(self, *field_indexes: int) -> DataStream:
        """Keep only these fields of each tuple or row, in this order.

        >>> from rekindle.common import Types
        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> pairs = env.from_collection([(1, "a")], Types.TUPLE([Types.LONG(), Types.STRING()]))
        >>> pairs.project(1).get_type()
        Tuple<String>
        """
        function, output_type = projection(self._where("project()"), self._type_info, field_indexes)
        return self._operate(OperatorKind.MAP, "Projection", function, output_type)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Assign event times to the records and derive watermarks from them.

        >>> from rekindle.common import WatermarkStrategy
        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> strategy = WatermarkStrategy.for_monotonous_timestamps()
        >>> env.from_collection([1]).assign_timestamps_and_watermarks(strategy).get_name()
        'Timestamps/Watermarks'
        """
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise GraphError(
                f"{self._where('assign_timestamps_and_watermarks()')} takes a WatermarkStrategy, "
                f"not {watermark_strategy!r}."
            )
        return self._operate(OperatorKind.TIMESTAMPS, "Timestamps/Watermarks", watermark_strategy, self._type_info)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """Return the side output that a process function fills with `yield output_tag, value`.

        >>> from rekindle.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
        >>> odd = OutputTag("odd", int)
        >>> class Split(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield (odd, value) if value % 2 else value
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1, 2]).process(Split()).get_side_output(odd).get_type()
        Long
        """
        operator = self._settable("get_side_output()")
        if not isinstance(output_tag, OutputTag):
            raise GraphError(f"get_side_output() of '{operator.name}' takes an OutputTag, not {output_tag!r}.")
        if not operator.kind.has_side_outputs:
            raise GraphError(f"'{operator.name}' is no process function, so it cannot emit to {output_tag!r}.")
        tag, declared = output_tag.tag_id, output_tag.type_info
        if tag in operator.side_outputs and operator.side_outputs[tag] != declared:
            raise TypeMismatchError(
                f"Side output '{tag}' of '{operator.name}' was read with the type {operator.side_outputs[tag]} before, "
                f"now with {declared}: use the same OutputTag."
            )
        operator.side_outputs[tag] = declared
        return DataStream(self._env, (Upstream(operator, tag=tag),), declared)

    # -- windows ------------------------------------------------------------------------------------------------------

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Divide the whole stream into windows. One subtask does all the work.

        >>> from rekindle.common import Time
        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> from rekindle.datastream.window import TumblingEventTimeWindows
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> hourly = env.from_collection([1, 2]).window_all(TumblingEventTimeWindows.of(Time.hours(1))).sum()
        """
        from rekindle.datastream.streams.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Divide the whole stream into windows of `size` records. With a slide, a window begins every `slide` records.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> pairs = env.from_collection([1, 2, 3, 4]).count_window_all(2).sum()
        """
        from rekindle.datastream.streams.windowed_stream import AllWindowedStream
        from rekindle.datastream.windowing.assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner

        assigner = CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)
        return AllWindowedStream(self, assigner)

    # -- several streams ----------------------------------------------------------------------------------------------

    def union(self, *streams: DataStream) -> DataStream:
        """Merge this stream with others of the same type into one stream.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> both = env.from_collection([1]).union(env.from_collection([2])).map(str)
        """
        upstreams = self._upstreams
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise GraphError(f"{self._where('union()')} takes streams, not {stream!r}.")
            self._check_environment("union()", stream)
            if stream._type_info != self._type_info and None not in (stream._type_info, self._type_info):
                raise TypeMismatchError(
                    f"{self._where('union()')} needs streams of one type, "
                    f"not {self._type_info} and {stream._type_info}."
                )
            upstreams += stream._upstreams
        types = {stream._type_info for stream in (self, *streams)}
        # One stream without a declared type may hold anything, so the union may, too.
        return DataStream(self._env, upstreams, self._type_info if len(types) == 1 else None)

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Connect this stream with another stream or a broadcast stream, for a function with two inputs.

        >>> from rekindle.datastream import CoMapFunction, StreamExecutionEnvironment
        >>> class Both(CoMapFunction):
        ...     def map1(self, value): return value
        ...     def map2(self, value): return str(value)
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection(["a"]).connect(env.from_collection([1])).map(Both()).get_name()
        'Co-Map'
        """
        from rekindle.datastream.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
        from rekindle.datastream.streams.connected_streams import ConnectedStreams

        if isinstance(ds, BroadcastStream):
            self._check_environment("connect()", ds.input_stream)
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        if not isinstance(ds, DataStream):
            raise GraphError(f"{self._where('connect()')} takes a DataStream or a BroadcastStream, not {ds!r}.")
        self._check_environment("connect()", ds)
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Join this stream with another: all pairs of elements with the same key in the same window.

        >>> from rekindle.common import Time
        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> from rekindle.datastream.window import TumblingEventTimeWindows
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> one, other = env.from_collection([("a", 1)]), env.from_collection([("a", 2)])
        >>> keyed = one.join(other).where(lambda pair: pair[0]).equal_to(lambda pair: pair[0])
        >>> sums = keyed.window(TumblingEventTimeWindows.of(Time.minutes(1))).apply(lambda a, b: a[1] + b[1])
        """
        from rekindle.datastream.streams.joined_streams import JoinedStreams

        return JoinedStreams(self, self._joinable("join()", other_stream))

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """Group the elements of two streams by key and window. One of the two groups may be empty.

        >>> from rekindle.common import Time
        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> from rekindle.datastream.window import TumblingEventTimeWindows
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> one, other = env.from_collection(["a"]), env.from_collection(["b"])
        >>> keyed = one.co_group(other).where(len).equal_to(len)
        >>> both = keyed.window(TumblingEventTimeWindows.of(Time.minutes(1))).apply(lambda a, b: [*a, *b])
        """
        from rekindle.datastream.streams.joined_streams import CoGroupedStreams

        return CoGroupedStreams(self, self._joinable("co_group()", other_stream))

    def _joinable(self, method: str, other_stream: DataStream) -> DataStream:
        if not isinstance(other_stream, DataStream):
            raise GraphError(f"{self._where(method)} takes a DataStream, not {other_stream!r}.")
        self._check_environment(method, other_stream)
        return other_stream

    # -- partitioning -------------------------------------------------------------------------------------------------

    def key_by(self, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None) -> KeyedStream:
        """Partition the stream by key: one subtask gets all records of a key, in order, and may keep state per key.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> pairs = env.from_collection([("a", 1), ("a", 2)])
        >>> total = pairs.key_by(lambda pair: pair[0]).reduce(lambda x, y: (x[0], x[1] + y[1]))
        """
        return self._keyed("key_by()", Partitioning.KEY, key_selector, key_type)

    def _keyed(self, method: str, partitioning: Partitioning, key_selector: Any, key_type: Any) -> KeyedStream:
        from rekindle.datastream.streams.keyed_stream import KeyedStream

        where = self._where(method)
        check_function(where, key_selector, KeySelector, {"get_key": 1}, callable_arity=1, single_valued=True)
        return KeyedStream(self, key_selector, self._declared(method, key_type), partitioning)

    def shuffle(self) -> DataStream:
        """Send each record to a random subtask."""
        return self._partitioned(Partitioning.SHUFFLE)

    def rebalance(self) -> DataStream:
        """Send the records to all subtasks in turn.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> spread = env.from_collection([1, 2, 3]).rebalance().map(lambda n: n + 1)
        """
        return self._partitioned(Partitioning.REBALANCE)

    def rescale(self) -> DataStream:
        """Send the records in turn to the sending subtask's share of the next operator's subtasks."""
        return self._partitioned(Partitioning.RESCALE)

    def forward(self) -> DataStream:
        """Send each record to the subtask with the same index. Both operators need the same parallelism."""
        return self._partitioned(Partitioning.FORWARD)

    def global_(self) -> DataStream:
        """Send all records to the first subtask (Flink's `global()`, a keyword in Python)."""
        return self._partitioned(Partitioning.GLOBAL)

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self, broadcast_state_descriptor: MapStateDescriptor, *other_broadcast_state_descriptors: MapStateDescriptor
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Send every record to every subtask. With descriptors, return a `BroadcastStream` to `connect` with.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> from rekindle.datastream.state import MapStateDescriptor
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> rules = env.from_collection([("a", 1)]).broadcast(MapStateDescriptor("rules", str, int))
        """
        from rekindle.datastream.streams.broadcast_stream import BroadcastStream

        stream = self._partitioned(Partitioning.BROADCAST)
        if broadcast_state_descriptor is None:
            return stream
        return BroadcastStream(stream, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> DataStream:
        """Send each record to the subtask whose index `partitioner(key, number of subtasks)` returns.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> numbers = env.from_collection([1, 2, 3])
        >>> by_parity = numbers.partition_custom(lambda key, n: key % n, lambda number: number).map(str)
        """
        where = self._where("partition_custom()")
        check_function(where, partitioner, Partitioner, {"partition": 2}, callable_arity=2, single_valued=True)
        check_function(where, key_selector, KeySelector, {"get_key": 1}, callable_arity=1, single_valued=True)
        return self._partitioned(Partitioning.CUSTOM, key_selector, partitioner)

    # -- caching ------------------------------------------------------------------------------------------------------

    def cache(self) -> CachedDataStream:
        """Return a stream with the same records, which the first job that reads it computes and the driver keeps.

        Later jobs read the kept records. The stream must be bounded and fit into the driver's memory.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> words = env.from_collection(["to be"]).flat_map(str.split).cache()
        >>> words.invalidate()
        """
        from rekindle.datastream.streams.cached_stream import CachedDataStream

        return CachedDataStream(self)

    # -- building -----------------------------------------------------------------------------------------------------

    def _operate(
        self,
        kind: OperatorKind,
        name: str,
        function: Any,
        output_type: TypeInformation | None,
        details: OperatorDetails = PLAIN,
    ) -> DataStream:
        operator = self._env._add(
            Transformation(kind, name, function, inputs=(self._upstreams,), output_type=output_type, details=details)
        )
        return DataStream(self._env, (Upstream(operator),), output_type, operator)

    def _partitioned(self, partitioning: Partitioning, key_selector: Any = None, partitioner: Any = None) -> DataStream:
        upstreams = tuple(upstream.by(partitioning, key_selector, partitioner) for upstream in self._upstreams)
        return DataStream(self._env, upstreams, self._type_info)

    def _declared(self, method: str, hint: Any) -> TypeInformation | None:
        return declared_type(self._where(method), hint)

    def _check_environment(self, method: str, other: DataStream) -> None:
        if other._env is not self._env:
            raise GraphError(f"{self._where(method)} takes streams of the same environment only.")
