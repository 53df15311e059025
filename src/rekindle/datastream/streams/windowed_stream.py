"""`WindowedStream` and `AllWindowedStream`: streams divided into windows, per key or as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rekindle.common.time import Duration, Time, as_millis
from rekindle.common.typeinfo import TypeInformation, Types, infer_type_info
from rekindle.datastream.aggregations import ExtremeBy, FieldExtreme, FieldSum, check_field
from rekindle.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    KeySelector,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from rekindle.datastream.operator_details import WindowDetails
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.streams.keyed_stream import KeyedStream
from rekindle.datastream.validation import check_function, declared_type
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.datastream.windowing.assigners import WindowAssigner
from rekindle.datastream.windowing.evictors import Evictor
from rekindle.datastream.windowing.operation import (
    ContentsKind,
    WindowContents,
    WindowOperation,
)
from rekindle.datastream.windowing.triggers import Trigger
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment


class _Windowed:
    """The methods that `WindowedStream` and `AllWindowedStream` share."""

    #: The classes of the functions that evaluate a window, and their number of arguments.
    _apply_function: ClassVar[type[Function]]
    _process_function: ClassVar[type[Function]]
    _arity: ClassVar[int]

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise GraphError(f"Windows need a WindowAssigner, not {window_assigner!r}.")
        self._keyed_stream = keyed_stream
        self._window_assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any, Any] | None = None
        self._allowed_lateness_ms = 0
        self._late_data_output_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to."""
        return self._keyed_stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """Return the type of the elements in the windows."""
        return self._keyed_stream.get_type()

    # -- settings -----------------------------------------------------------------------------------------------------

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Replace the assigner's default trigger, which decides when windows are evaluated."""
        if not isinstance(trigger, Trigger):
            raise GraphError(f"{self._where('trigger()')} takes a Trigger, not {trigger!r}.")
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Remove elements before or after a window is evaluated. With an evictor, windows store all their elements."""
        if not isinstance(evictor, Evictor):
            raise GraphError(f"{self._where('evictor()')} takes an Evictor, not {evictor!r}.")
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """Keep event-time windows for this long after their end. A late element makes its window fire again."""
        lateness_ms = as_millis(time_ms)
        if lateness_ms < 0:
            raise GraphError(f"{self._where('allowed_lateness()')} takes 0 or more ms, not {lateness_ms}.")
        self._allowed_lateness_ms = lateness_ms
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send elements that come too late to a side output of the result. Without it they are dropped."""
        if not isinstance(output_tag, OutputTag):
            raise GraphError(f"{self._where('side_output_late_data()')} takes an OutputTag, not {output_tag!r}.")
        self._late_data_output_tag = output_tag
        return self

    # -- evaluation ---------------------------------------------------------------------------------------------------

    def _reduce(self, function: Any, window_function: Function | None, output_type: Any) -> DataStream:
        where = self._where("reduce()")
        check_function(where, function, ReduceFunction, {"reduce": 2}, callable_arity=2, single_valued=True)
        self._check_window_function(where, window_function)
        declared = declared_type(where, output_type)
        if window_function is None and declared is None:
            declared = self._keyed_stream._type_info
        contents = WindowContents(ContentsKind.REDUCED, function, self._keyed_stream._type_info)
        return self._result(contents, window_function, declared)

    def _aggregate(
        self, function: Any, window_function: Function | None, accumulator_type: Any, output_type: Any
    ) -> DataStream:
        where = self._where("aggregate()")
        methods = {"create_accumulator": 0, "add": 2, "get_result": 1, "merge": 2}
        check_function(where, function, AggregateFunction, methods, single_valued=True)
        self._check_window_function(where, window_function)
        if isinstance(accumulator_type, list):
            accumulator_type = Types.ROW([infer_type_info(each) for each in accumulator_type])
        contents = WindowContents(ContentsKind.AGGREGATED, function, declared_type(where, accumulator_type))
        return self._result(contents, window_function, declared_type(where, output_type))

    def _evaluate(
        self, method: str, kind: type[Function], methods: dict[str, int], function: Any, output_type: Any
    ) -> DataStream:
        where = self._where(method)
        check_function(where, function, kind, methods)
        contents = WindowContents(ContentsKind.ELEMENTS, None, self._keyed_stream._type_info)
        return self._result(contents, function, declared_type(where, output_type))

    def _check_window_function(self, where: str, function: Function | None) -> None:
        if function is None:
            return
        kinds = (self._apply_function, self._process_function)
        applies = isinstance(function, self._apply_function)
        methods = {"apply": self._arity} if applies else {"process": self._arity, "clear": 1}
        check_function(where, function, kinds, methods)

    def _result(self, contents: WindowContents, function: Any, output_type: TypeInformation | None) -> DataStream:
        assigner = self._window_assigner
        trigger = self._trigger or assigner.get_default_trigger(self.get_execution_environment())
        operation = WindowOperation(
            assigner=assigner,
            trigger=trigger,
            contents=contents,
            function=function,
            evictor=self._evictor,
            allowed_lateness_ms=self._allowed_lateness_ms,
            late_tag=self._late_data_output_tag,
            input_type=self._keyed_stream._type_info,
        )
        if operation.merging and not trigger.can_merge():
            raise GraphError(
                f"{type(self).__name__}: {assigner} merges windows, but {trigger} cannot follow: use a trigger whose "
                "can_merge() is True."
            )
        name, details = type(assigner).__name__, WindowDetails.of(operation)
        stream = self._keyed_stream._operate(OperatorKind.WINDOW, name, operation, output_type, details)
        return stream.set_description(operation.describe(self._described))

    # -- short forms --------------------------------------------------------------------------------------------------

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Sum one field over a window's elements. The other fields are those of the first element."""
        return self._accumulate("sum()", position_to_sum, FieldSum(position_to_sum), numeric=True)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Return the smallest value of one field in a window. The other fields are those of the first element."""
        return self._accumulate("min()", position_to_min, FieldExtreme(position_to_min, largest=False))

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Return the largest value of one field in a window. The other fields are those of the first element."""
        return self._accumulate("max()", position_to_max, FieldExtreme(position_to_max, largest=True))

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Return the element of a window with the smallest value of one field. Of equal ones the first is kept."""
        return self._accumulate("min_by()", position_to_min_by, ExtremeBy(position_to_min_by, largest=False))

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Return the element of a window with the largest value of one field. Of equal ones the first is kept."""
        return self._accumulate("max_by()", position_to_max_by, ExtremeBy(position_to_max_by, largest=True))

    def _accumulate(self, method: str, field: int | str, function: ReduceFunction, numeric: bool = False) -> DataStream:
        check_field(self._where(method), self._keyed_stream._type_info, field, numeric=numeric)
        return self._reduce(function, None, None)

    _described: ClassVar[str]

    def _where(self, method: str) -> str:
        return f"{type(self).__name__}.{method} of {self._window_assigner}"


class WindowedStream(_Windowed):
    """A keyed stream divided into windows. Each key has its own windows.

    >>> from rekindle.common import Time
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> from rekindle.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> pairs = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda pair: pair[0])
    >>> pairs.window(TumblingEventTimeWindows.of(Time.seconds(5))).sum(1).get_name()
    'TumblingEventTimeWindows'
    """

    _apply_function = WindowFunction
    _process_function = ProcessWindowFunction
    _arity = 3
    _described = "Window"

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any] | None = None,
        output_type: Any = None,
    ) -> DataStream:
        """Combine a window's elements as they arrive. A window function, if given, gets the combined value."""
        return self._reduce(reduce_function, window_function, output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any] | None = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream:
        """Fold elements into an accumulator as they arrive. A window function, if given, gets its result."""
        return self._aggregate(aggregate_function, window_function, accumulator_type, output_type)

    def apply(self, window_function: WindowFunction[Any, Any, Any, Any], output_type: Any = None) -> DataStream:
        """Evaluate all elements of a window at once. State holds the elements until then."""
        return self._evaluate("apply()", WindowFunction, {"apply": 3}, window_function, output_type)

    def process(
        self, process_window_function: ProcessWindowFunction[Any, Any, Any, Any], output_type: Any = None
    ) -> DataStream:
        """Evaluate all elements of a window at once, with access to clocks and state. State holds them until then."""
        methods = {"process": 3, "clear": 1}
        return self._evaluate("process()", ProcessWindowFunction, methods, process_window_function, output_type)


class NullByteKeySelector(KeySelector):
    """Gives all records the same key, as Flink's class of this name does."""

    def get_key(self, value: Any) -> int:
        """Return 0."""
        return 0


class AllWindowedStream(_Windowed):
    """A whole stream divided into windows. One subtask does all the work.

    >>> from rekindle.common import Time
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> from rekindle.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> numbers = env.from_collection([1, 2, 3])
    >>> numbers.window_all(TumblingEventTimeWindows.of(Time.seconds(5))).sum().get_name()
    'TumblingEventTimeWindows'
    """

    _apply_function = AllWindowFunction
    _process_function = ProcessAllWindowFunction
    _arity = 2
    _described = "AllWindow"

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(NullByteKeySelector(), Types.INT()), window_assigner)

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: AllWindowFunction[Any, Any, Any] | ProcessAllWindowFunction[Any, Any, Any] | None = None,
        output_type: Any = None,
    ) -> DataStream:
        """Combine a window's elements as they arrive. A window function, if given, gets the combined value."""
        return self._reduce(reduce_function, window_function, output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: AllWindowFunction[Any, Any, Any] | ProcessAllWindowFunction[Any, Any, Any] | None = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream:
        """Fold elements into an accumulator as they arrive. A window function, if given, gets its result."""
        return self._aggregate(aggregate_function, window_function, accumulator_type, output_type)

    def apply(self, window_function: AllWindowFunction[Any, Any, Any], output_type: Any = None) -> DataStream:
        """Evaluate all elements of a window at once. State holds the elements until then."""
        return self._evaluate("apply()", AllWindowFunction, {"apply": 2}, window_function, output_type)

    def process(
        self, process_window_function: ProcessAllWindowFunction[Any, Any, Any], output_type: Any = None
    ) -> DataStream:
        """Evaluate all elements of a window at once, with access to clocks and state. State holds them until then."""
        methods = {"process": 2, "clear": 1}
        return self._evaluate("process()", ProcessAllWindowFunction, methods, process_window_function, output_type)

    def _result(self, contents: WindowContents, function: Any, output_type: TypeInformation | None) -> DataStream:
        return super()._result(contents, function, output_type).force_non_parallel()
