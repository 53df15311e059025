"""Interval joins: pairs of elements of two keyed streams whose event times are within an interval."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from rekindle.common.time import Duration, Time, as_millis
from rekindle.datastream.functions import ProcessJoinFunction
from rekindle.datastream.operator_details import IntervalJoinDetails
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.transformations import Transformation, Upstream
from rekindle.datastream.validation import check_function, declared_type
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.errors import GraphError, TypeMismatchError

if TYPE_CHECKING:
    from rekindle.datastream.streams.data_stream import DataStream
    from rekindle.datastream.streams.keyed_stream import KeyedStream

_Amount = Time | Duration | timedelta | int


class IntervalJoin:
    """Two keyed streams to be joined. `between` sets the interval."""

    def __init__(self, stream_one: KeyedStream, stream_two: KeyedStream) -> None:
        self._left = stream_one
        self._right = stream_two

    def in_event_time(self) -> IntervalJoin:
        """Join by event time, which is the default and the only choice."""
        return self

    def in_processing_time(self) -> NoReturn:
        """Refused: interval joins are in event time only."""
        raise GraphError(
            f"{_where(self._left, self._right)}: interval joins are in event time only; give the streams timestamps "
            "with assign_timestamps_and_watermarks()."
        )

    def between(self, lower_bound: _Amount, upper_bound: _Amount) -> IntervalJoined:
        """Join a left element with the right elements from `lower_bound` to `upper_bound` after it.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> class Pair(ProcessJoinFunction):
        ...     def process_element(self, left, right, ctx):
        ...         yield left, right
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> orders = env.from_collection([("ann", 1)]).key_by(lambda order: order[0])
        >>> payments = env.from_collection([("ann", 2)]).key_by(lambda payment: payment[0])
        >>> joined = orders.interval_join(payments).between(Time.milliseconds(-5), Time.minutes(10))
        >>> joined.upper_bound_exclusive().process(Pair()).get_name()
        'Interval Join'
        """
        where = _where(self._left, self._right)
        try:
            lower_ms, upper_ms = as_millis(lower_bound), as_millis(upper_bound)
        except TypeError as error:
            raise GraphError(f"{where}, between(): {error}") from error
        return IntervalJoined(self._left, self._right, lower_ms, upper_ms)


class IntervalJoined:
    """An interval join with its bounds. Both bounds are inclusive by default."""

    def __init__(self, left: KeyedStream, right: KeyedStream, lower_bound_ms: int, upper_bound_ms: int) -> None:
        self._left = left
        self._right = right
        self._lower_ms = lower_bound_ms
        self._upper_ms = upper_bound_ms
        self._lower_exclusive = False
        self._upper_exclusive = False
        self._late: dict[str, OutputTag] = {}

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Exclude the lower bound from the interval."""
        self._lower_exclusive = True
        return self

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Exclude the upper bound from the interval."""
        self._upper_exclusive = True
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send late elements of the left stream to a side output. Without it they are dropped."""
        return self._send_late_to("left", output_tag)

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send late elements of the right stream to a side output. Without it they are dropped."""
        return self._send_late_to("right", output_tag)

    def _send_late_to(self, side: str, output_tag: OutputTag) -> IntervalJoined:
        if not isinstance(output_tag, OutputTag):
            raise GraphError(f"side_output_{side}_late_data() takes an OutputTag, not {output_tag!r}.")
        self._late[side] = output_tag
        return self

    def process(self, process_join_function: ProcessJoinFunction, output_type: Any = None) -> DataStream:
        """Call the function once for each pair. Its results get the later timestamp of the two elements."""
        from rekindle.datastream.streams.data_stream import DataStream

        where = _where(self._left, self._right)
        check_function(f"{where}, process()", process_join_function, ProcessJoinFunction, {"process_element": 3})
        lower, upper = self._lower_ms + self._lower_exclusive, self._upper_ms - self._upper_exclusive
        if lower > upper:
            raise GraphError(
                f"{where}: the interval from {self._lower_ms} to {self._upper_ms} ms is empty; the lower bound must "
                "not be above the upper one."
            )
        declared = declared_type(f"{where}, process()", output_type)
        operator = Transformation(
            OperatorKind.INTERVAL_JOIN_PROCESS,
            "Interval Join",
            process_join_function,
            inputs=(self._left._upstreams, self._right._upstreams),
            output_type=declared,
            key_selectors=(self._left._key_selector, self._right._key_selector),
            key_type=self._key_type(where),
            details=IntervalJoinDetails(
                bounds_ms=(lower, upper),
                late_tags=(self._late.get("left"), self._late.get("right")),
                types=(self._left._type_info, self._right._type_info),
            ),
        )
        env = self._left._env
        env._add(operator)
        return DataStream(env, (Upstream(operator),), declared, operator)

    def _key_type(self, where: str) -> Any:
        types = {stream._key_type for stream in (self._left, self._right) if stream._key_type is not None}
        if len(types) > 1:
            raise TypeMismatchError(f"{where}: both streams need one type of key, not {' and '.join(map(str, types))}.")
        return types.pop() if types else None


def _where(left: KeyedStream, right: KeyedStream) -> str:
    names = [upstream.transformation.name for stream in (left, right) for upstream in stream._upstreams]
    return f"interval_join() of {' and '.join(repr(name) for name in names)}"
