"""`KeyedStream`: a stream that is partitioned by key, with rolling aggregations, windows and interval joins."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, overload

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.common.types import Row
from rekindle.datastream.aggregations import ExtremeBy, FieldExtreme, FieldSum, check_field
from rekindle.datastream.functions import (
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
    SinkFunction,
)
from rekindle.datastream.operator_details import PLAIN, OperatorDetails, ReduceDetails
from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.datastream.state import MapStateDescriptor
from rekindle.datastream.streams.collect import CloseableIterator
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.streams.sinks import DataStreamSink
from rekindle.datastream.transformations import Transformation
from rekindle.datastream.validation import check_function
from rekindle.datastream.vocabulary import OperatorKind, Partitioning
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.streams.interval_join import IntervalJoin
    from rekindle.datastream.streams.windowed_stream import WindowedStream
    from rekindle.datastream.windowing.assigners import WindowAssigner


class KeyedStream(DataStream):
    """A stream partitioned by key. Operators on it may keep state and timers per key.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> keyed = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0], key_type=str)
    >>> keyed.sum(1).get_name()
    'Sum'
    """

    class AccumulateType(Enum):
        """The built-in rolling aggregations."""

        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def __init__(
        self,
        origin_stream: DataStream,
        key_selector: Any,
        key_type: TypeInformation | None,
        partitioning: Partitioning = Partitioning.KEY,
    ) -> None:
        key_selector = typed_selector(key_selector, key_type)
        upstreams = tuple(upstream.by(partitioning, key_selector) for upstream in origin_stream._upstreams)
        super().__init__(origin_stream._env, upstreams, origin_stream._type_info)
        self._origin = origin_stream
        self._key_selector = key_selector
        self._key_type = key_type

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Emit, for each record, the combination of all records of its key so far.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> longest = env.from_collection(["a", "bb"]).key_by(len).reduce(lambda x, y: max(x, y))
        """
        where = self._where("reduce()")
        check_function(where, func, ReduceFunction, {"reduce": 2}, callable_arity=2, single_valued=True)
        return self._operate(OperatorKind.REDUCE, "Reduce", func, self._type_info, ReduceDetails())

    def process(  # type: ignore[override]  # as in PyFlink: takes a KeyedProcessFunction
        self, func: KeyedProcessFunction, output_type: Any = None
    ) -> DataStream:
        """Call a process function for each record, with the state and timers of the record's key.

        >>> from rekindle.datastream import KeyedProcessFunction, StreamExecutionEnvironment
        >>> class Pass(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield ctx.get_current_key(), value
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1]).key_by(lambda n: n % 2).process(Pass()).get_name()
        'KEYED PROCESS'
        """
        check_function(self._where("process()"), func, KeyedProcessFunction, {"process_element": 2, "on_timer": 2})
        declared = self._declared("process()", output_type)
        return self._operate(OperatorKind.KEYED_PROCESS, "KEYED PROCESS", func, declared)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Emit the rolling sum of one field per key. The other fields are those of the key's first record.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> totals = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda pair: pair[0]).sum(1)
        """
        return self._accumulate(position_to_sum, KeyedStream.AccumulateType.SUM)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Emit the rolling minimum of one field per key. The other fields are those of the key's first record."""
        return self._accumulate(position_to_min, KeyedStream.AccumulateType.MIN)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Emit the rolling maximum of one field per key. The other fields are those of the key's first record."""
        return self._accumulate(position_to_max, KeyedStream.AccumulateType.MAX)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Emit, per key, the record with the smallest value of one field so far. Of equal ones the first is kept."""
        return self._accumulate(position_to_min_by, KeyedStream.AccumulateType.MIN_BY)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Emit, per key, the record with the largest value of one field so far. Of equal ones the first is kept."""
        return self._accumulate(position_to_max_by, KeyedStream.AccumulateType.MAX_BY)

    def _accumulate(self, field: int | str, accumulate: KeyedStream.AccumulateType) -> DataStream:
        kinds = KeyedStream.AccumulateType
        where = self._where(f"{accumulate.name.lower()}()")
        check_field(where, self._type_info, field, numeric=accumulate is kinds.SUM)
        functions: dict[KeyedStream.AccumulateType, ReduceFunction] = {
            kinds.SUM: FieldSum(field),
            kinds.MIN: FieldExtreme(field, largest=False),
            kinds.MAX: FieldExtreme(field, largest=True),
            kinds.MIN_BY: ExtremeBy(field, largest=False),
            kinds.MAX_BY: ExtremeBy(field, largest=True),
        }
        name = accumulate.name.title().replace("_", " ")
        return self.reduce(functions[accumulate]).name(name)

    # -- windows ------------------------------------------------------------------------------------------------------

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Divide each key's records into windows.

        >>> from rekindle.common import Time
        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> from rekindle.datastream.window import EventTimeSessionWindows
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> clicks = env.from_collection([("ann", 1), ("bob", 1)]).key_by(lambda click: click[0])
        >>> clicks.window(EventTimeSessionWindows.with_gap(Time.minutes(10))).sum(1).get_name()
        'EventTimeSessionWindows'
        """
        from rekindle.datastream.streams.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Divide each key's records into windows of `size`. With a slide, a window begins every `slide` records.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> pairs = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda pair: pair[0])
        >>> pairs.count_window(2).sum(1).get_name()
        'CountTumblingWindowAssigner'
        """
        from rekindle.datastream.streams.windowed_stream import WindowedStream
        from rekindle.datastream.windowing.assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner

        assigner = CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)
        return WindowedStream(self, assigner)

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with another keyed stream: pairs of elements with equal keys and event times within an interval.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> orders = env.from_collection([("ann", 1)]).key_by(lambda order: order[0])
        >>> payments = env.from_collection([("ann", 2)]).key_by(lambda payment: payment[0])
        >>> within_a_second = orders.interval_join(payments).between(0, 1000)
        """
        from rekindle.datastream.streams.interval_join import IntervalJoin

        if not isinstance(other_stream, KeyedStream):
            raise GraphError(f"{self._where('interval_join()')} takes a KeyedStream, not {other_stream!r}.")
        self._check_environment("interval_join()", other_stream)
        return IntervalJoin(self, other_stream)

    # -- refused: partitionings ---------------------------------------------------------------------------------------

    def key_by(self, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None) -> KeyedStream:
        """Partition the same records by another key."""
        return self._origin.key_by(key_selector, key_type)

    def shuffle(self) -> NoReturn:
        """Refused: a keyed stream is already partitioned."""
        raise self._partitioned_by_key("shuffle()")

    def rebalance(self) -> NoReturn:
        """Refused: a keyed stream is already partitioned."""
        raise self._partitioned_by_key("rebalance()")

    def rescale(self) -> NoReturn:
        """Refused: a keyed stream is already partitioned."""
        raise self._partitioned_by_key("rescale()")

    def forward(self) -> NoReturn:
        """Refused: a keyed stream is already partitioned."""
        raise self._partitioned_by_key("forward()")

    def global_(self) -> NoReturn:
        """Refused: a keyed stream is already partitioned."""
        raise self._partitioned_by_key("global_()")

    def broadcast(self, *broadcast_state_descriptors: MapStateDescriptor) -> NoReturn:
        """Refused: a keyed stream is already partitioned."""
        raise self._partitioned_by_key("broadcast()")

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> NoReturn:
        """Refused: a keyed stream is already partitioned."""
        raise self._partitioned_by_key("partition_custom()")

    def _partitioned_by_key(self, method: str) -> GraphError:
        # The first sentence is PyFlink's, to the letter.
        return GraphError(
            f"Cannot override partitioning for KeyedStream. {self._where(method)} would undo the partitioning by key: "
            f"call {method} before key_by(), or on the output of the next operator."
        )

    # -- refused: settings of operators -------------------------------------------------------------------------------

    def name(self, name: str) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("name()", "Set name for")

    def get_name(self) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("get_name()", "Get name of")

    def uid(self, uid: str) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("uid()", "Set uid for")

    def set_uid_hash(self, uid_hash: str) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("set_uid_hash()", "Set uid hash for")

    def set_parallelism(self, parallelism: int) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("set_parallelism()", "Set parallelism for")

    def set_max_parallelism(self, max_parallelism: int) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("set_max_parallelism()", "Set max parallelism for")

    def force_non_parallel(self) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("force_non_parallel()", "Set force non-parallel for")

    def set_buffer_timeout(self, timeout_millis: int) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("set_buffer_timeout()", "Set buffer timeout for")

    def start_new_chain(self) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("start_new_chain()", "Start new chain for")

    def disable_chaining(self) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("disable_chaining()", "Disable chaining for")

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> NoReturn:
        """Refused: a keyed stream is not an operator."""
        raise self._no_operator("slot_sharing_group()", "Setting slot sharing group for")

    def cache(self) -> NoReturn:
        """Refused: a keyed stream is a partitioning."""
        raise GraphError(
            "Cache for KeyedStream is not supported. "
            f"{self._where('cache()')}: a KeyedStream is a partitioning, which is not kept; call cache() before "
            "key_by(), or on the output of the next operator."
        )

    def _no_operator(self, method: str, refused: str) -> GraphError:
        # The first sentence is PyFlink's, to the letter.
        return GraphError(
            f"{refused} KeyedStream is not supported. "
            f"{self._where(method)}: a KeyedStream is a partitioning, not an operator; call it on the next operator."
        )

    # -- collecting ---------------------------------------------------------------------------------------------------

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, limit: None = None) -> CloseableIterator: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and iterate over rows of a key and its record, as PyFlink does for a keyed stream."""
        if limit is None:
            return self._with_keys().execute_and_collect(job_execution_name)
        return self._with_keys().execute_and_collect(job_execution_name, limit=limit)

    def _with_keys(self) -> DataStream:
        """The records as rows (key, record), where they are: no record changes its subtask."""
        pickled = Types.PICKLED_BYTE_ARRAY()
        row_type = Types.ROW([self._key_type or pickled, self._type_info or pickled])
        rows = self._origin._operate(OperatorKind.MAP, "Key and record", KeyAndRecord(self._key_selector), row_type)
        parallelisms = {upstream.transformation.parallelism for upstream in self._origin._upstreams}
        if len(parallelisms) == 1:
            rows._upstreams[0].transformation.parallelism = parallelisms.pop()
        return rows

    # -- building -----------------------------------------------------------------------------------------------------

    def _operate(
        self,
        kind: OperatorKind,
        name: str,
        function: Any,
        output_type: TypeInformation | None,
        details: OperatorDetails = PLAIN,
    ) -> DataStream:
        stream = super()._operate(kind, name, function, output_type, details)
        if kind is not OperatorKind.TIMESTAMPS:
            self._key(stream._upstreams[0].transformation)
        return stream

    def _sink(self, name: str, function: SinkFunction | Callable[[Any], Any]) -> DataStreamSink:
        sink = super()._sink(name, function)
        assert sink._operator is not None, "a sink is an operator"
        self._key(sink._operator)
        return sink

    def _key(self, operator: Transformation) -> None:
        operator.key_selectors = (self._key_selector,)
        operator.key_type = self._key_type


class KeyAndRecord(MapFunction):
    """Puts the key in front of each record.

    >>> KeyAndRecord(len).map("abc")
    <Row(3, 'abc')>
    """

    def __init__(self, selector: Any) -> None:
        self._select = selector.get_key if isinstance(selector, KeySelector) else selector

    def map(self, value: Any) -> Row:
        """The row (key, record)."""
        return Row(self._select(value), value)


class RowKeySelector(KeySelector):
    """A key selector that gives rows in keys the field names of the declared type.

    Keys from a checkpoint have these names, so a key is the same before and after a restore (I11).

    >>> from rekindle.common import Row, Types
    >>> RowKeySelector(lambda value: Row(*value), Types.ROW_NAMED(["city", "year"], [str, int])).get_key(("Ulm", 3))
    Row(city='Ulm', year=3)
    """

    def __init__(self, selector: Any, key_type: TypeInformation) -> None:
        self._selector = selector
        self._key_type = key_type
        self._select = selector.get_key if isinstance(selector, KeySelector) else selector
        self._shape = key_type.shaper()

    def __reduce__(self) -> tuple[Any, ...]:
        return RowKeySelector, (self._selector, self._key_type)

    def get_key(self, value: Any) -> Any:
        """Return the user's key, with the field names of its declared type."""
        key = self._select(value)
        return key if self._shape is None else self._shape(key)


def typed_selector(selector: Any, key_type: TypeInformation | None) -> Any:
    """Return the selector itself, or one around it if its keys contain rows."""
    return selector if key_type is None or key_type.shaper() is None else RowKeySelector(selector, key_type)


def user_selector(function: Any) -> Any:
    """Return the user's own selector if this is one around it, anything else as it is: errors speak of the user's."""
    return function._selector if isinstance(function, RowKeySelector) else function
