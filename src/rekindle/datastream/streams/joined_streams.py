"""Window joins and co-groups: elements of two streams with the same key in the same window.

The two streams become one stream of tagged elements, which an ordinary window operator processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar

from rekindle.common.time import Duration, Time
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, KeySelector
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.streams.data_stream import DataStream
from rekindle.datastream.streams.keyed_stream import KeyedStream
from rekindle.datastream.streams.pair_evaluation import CoGroupEvaluation, FlatJoinEvaluation, JoinEvaluation
from rekindle.datastream.streams.tagged_union import TaggedUnion, UnionKeySelector, union_type
from rekindle.datastream.streams.windowed_stream import WindowedStream
from rekindle.datastream.transformations import Transformation, Upstream
from rekindle.datastream.validation import check_function, check_single_valued, declared_type
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.datastream.windowing.assigners import WindowAssigner
from rekindle.datastream.windowing.evictors import Evictor
from rekindle.datastream.windowing.triggers import Trigger
from rekindle.errors import GraphError, TypeMismatchError

_Selector = Callable[[Any], Any] | KeySelector


class _Windows(WindowedStream):
    """The windows over the tagged elements. Error messages name the join."""

    def __init__(self, pair: _PairOfStreams[Any], keyed: KeyedStream, assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(assigner, WindowAssigner):
            raise GraphError(f"{pair._where('window()')} takes a WindowAssigner, not {assigner!r}.")
        super().__init__(keyed, assigner)
        self._pair = pair

    def _where(self, method: str) -> str:
        return self._pair._where(method)


class _JoinWindows(_Windows):
    _described = "Window Join"


class _CoGroupWindows(_Windows):
    _described = "Window CoGroup"


class _WithWindow:
    """Two streams with their keys and windows. Triggers, evictors and assigners see `TaggedUnion` elements."""

    def __init__(self, windows: _Windows) -> None:
        self._windows = windows

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Replace the assigner's default trigger, which decides when windows are evaluated."""
        self._windows.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Remove elements before or after a window is evaluated."""
        self._windows.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """Keep event-time windows for this long after their end. A late element makes its window fire again."""
        self._windows.allowed_lateness(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send elements that come too late to a side output, as `TaggedUnion`. Without it they are dropped.

        Their type is `TaggedUnionTypeInfo(type of the first stream, type of the second)`.
        """
        self._windows.side_output_late_data(output_tag)
        return self

    def _evaluated(self, evaluation: Any, result_type: Any) -> DataStream:
        return self._windows.apply(evaluation, result_type).name(self._windows._described)


S = TypeVar("S", bound=_WithWindow)


class JoinedWithWindow(_WithWindow):
    """A join with keys and windows. `apply` adds its function."""

    def apply(
        self,
        function: JoinFunction | FlatJoinFunction | Callable[[Any, Any], Any],
        result_type: Any = None,
    ) -> DataStream:
        """Join all pairs of a key and window. The results' timestamp is the window's last millisecond.

        A `JoinFunction` or a callable returns one result per pair, a `FlatJoinFunction` any number.
        """
        where = self._windows._where("apply()")
        check_function(where, function, (JoinFunction, FlatJoinFunction), {"join": 2}, callable_arity=2)
        if isinstance(function, FlatJoinFunction):
            return self._evaluated(FlatJoinEvaluation(function), result_type)
        joining = function.join if isinstance(function, JoinFunction) else function
        check_single_valued(where, joining, instead="a FlatJoinFunction")
        return self._evaluated(JoinEvaluation(function), result_type)


class CoGroupedWithWindow(_WithWindow):
    """A co-group with keys and windows. `apply` adds its function."""

    def apply(self, function: CoGroupFunction | Callable[[Any, Any], Any], result_type: Any = None) -> DataStream:
        """Evaluate the elements of both streams per key and window. One of the two groups may be empty.

        The results' timestamp is the window's last millisecond.
        """
        where = self._windows._where("apply()")
        check_function(where, function, CoGroupFunction, {"co_group": 2}, callable_arity=2)
        return self._evaluated(CoGroupEvaluation(function), result_type)


class _PairOfStreams(ABC, Generic[S]):
    """Two streams, and the calls that must follow: `where`, `equal_to`, `window`, `apply`."""

    _windows: ClassVar[type[_Windows]]

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self._stream1 = stream1
        self._stream2 = stream2

    def where(self, key_selector: _Selector, key_type: Any = None) -> Where[S]:
        """Set the key selector of the first stream."""
        return Where(self, key_selector, self._check_selector("where()", key_selector, key_type))

    def equal_to(self, *_: Any) -> NoReturn:
        """Refused: where() comes first."""
        raise self._too_early("equal_to()", "where()")

    def window(self, *_: Any) -> NoReturn:
        """Refused: where() and equal_to() come first."""
        raise self._too_early("window()", "where() and equal_to()")

    def apply(self, *_: Any) -> NoReturn:
        """Refused: where(), equal_to() and window() come first."""
        raise self._too_early("apply()", "where(), equal_to() and window()")

    @abstractmethod
    def _with_window(self, windows: _Windows) -> S:
        """Return the object that `window()` gives the user."""

    def _check_selector(self, method: str, selector: _Selector, key_type: Any) -> TypeInformation | None:
        where = self._where(method)
        check_function(where, selector, KeySelector, {"get_key": 1}, callable_arity=1, single_valued=True)
        return declared_type(where, key_type)

    def _keyed(self, one: _Selector, two: _Selector, key_type: TypeInformation | None) -> KeyedStream:
        """Return one keyed stream with the tagged elements of both streams."""
        type_info = union_type(self._stream1._type_info, self._stream2._type_info)
        tagged = (
            self._tagged("First Input", self._stream1, TaggedUnion.one, type_info),
            self._tagged("Second Input", self._stream2, TaggedUnion.two, type_info),
        )
        both = DataStream(self._stream1._env, tuple(map(Upstream, tagged)), type_info)
        return KeyedStream(both, UnionKeySelector(one, two), key_type)

    def _tagged(
        self, which: str, stream: DataStream, tag: Callable[[Any], TaggedUnion], type_info: TypeInformation | None
    ) -> Transformation:
        """Build the map that tags a stream's elements, with the parallelism of the stream's operator."""
        # The tagged elements are partitioned by key afterwards, so tagging needs no exchange by key before it.
        upstreams = stream._origin._upstreams if isinstance(stream, KeyedStream) else stream._upstreams
        parallelisms = {upstream.transformation.parallelism for upstream in upstreams}
        return Transformation(
            OperatorKind.MAP,
            f"{self._windows._described}: {which}",
            tag,
            inputs=(upstreams,),
            output_type=type_info,
            parallelism=parallelisms.pop() if len(parallelisms) == 1 else None,
            implied=True,
        )

    def _where(self, method: str) -> str:
        streams = (self._stream1, self._stream2)
        names = ("|".join(upstream.transformation.name for upstream in stream._upstreams) for stream in streams)
        return f"{type(self).__name__}.{method} of {' and '.join(repr(name) for name in names)}"

    def _too_early(self, method: str, missing: str) -> GraphError:
        return GraphError(f"{self._where(method)} comes too early: call {missing} before it.")


class JoinedStreams(_PairOfStreams[JoinedWithWindow]):
    """Two streams whose elements with equal keys and windows are joined in pairs.

    >>> from rekindle.common import Time
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> from rekindle.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> orders, payments = env.from_collection([("ann", "pen")]), env.from_collection([("ann", "card")])
    >>> keyed = orders.join(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> hourly = keyed.window(TumblingEventTimeWindows.of(Time.hours(1)))
    >>> hourly.apply(lambda order, payment: (order[1], payment[1])).get_name()
    'Window Join'
    """

    _windows = _JoinWindows
    WithWindow = JoinedWithWindow

    def _with_window(self, windows: _Windows) -> JoinedWithWindow:
        return JoinedWithWindow(windows)


class CoGroupedStreams(_PairOfStreams[CoGroupedWithWindow]):
    """Two streams whose elements with equal keys and windows are evaluated together.

    >>> from rekindle.common import Time
    >>> from rekindle.datastream import CoGroupFunction, StreamExecutionEnvironment
    >>> from rekindle.datastream.window import TumblingEventTimeWindows
    >>> class Counted(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         yield len(list(first)), len(list(second))
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> orders, payments = env.from_collection([("ann", "pen")]), env.from_collection([("ann", "card")])
    >>> keyed = orders.co_group(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> keyed.window(TumblingEventTimeWindows.of(Time.hours(1))).apply(Counted()).get_name()
    'Window CoGroup'
    """

    _windows = _CoGroupWindows
    WithWindow = CoGroupedWithWindow

    def _with_window(self, windows: _Windows) -> CoGroupedWithWindow:
        return CoGroupedWithWindow(windows)


class Where(Generic[S]):
    """Two streams with the key selector of the first. `equal_to` adds that of the second."""

    def __init__(self, pair: _PairOfStreams[S], key_selector: _Selector, key_type: TypeInformation | None) -> None:
        self._pair = pair
        self._key_selector = key_selector
        self._key_type = key_type

    def equal_to(self, key_selector: _Selector, key_type: Any = None) -> EqualTo[S]:
        """Set the key selector of the second stream."""
        own, other = self._key_type, self._pair._check_selector("equal_to()", key_selector, key_type)
        if own is not None and other is not None and own != other:
            raise TypeMismatchError(
                f"{self._pair._where('equal_to()')} needs the type of key that where() has: {own}, not {other}."
            )
        return EqualTo(self._pair, self._key_selector, key_selector, own or other)

    def window(self, *_: Any) -> NoReturn:
        """Refused: equal_to() comes first."""
        raise self._pair._too_early("window()", "equal_to()")

    def apply(self, *_: Any) -> NoReturn:
        """Refused: equal_to() and window() come first."""
        raise self._pair._too_early("apply()", "equal_to() and window()")


class EqualTo(Generic[S]):
    """Two streams with both key selectors. `window` adds the windows."""

    def __init__(
        self, pair: _PairOfStreams[S], one: _Selector, two: _Selector, key_type: TypeInformation | None
    ) -> None:
        self._pair = pair
        self._one = one
        self._two = two
        self._key_type = key_type

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> S:
        """Divide each key's elements, of both streams together, into windows."""
        keyed = self._pair._keyed(self._one, self._two, self._key_type)
        return self._pair._with_window(self._pair._windows(self._pair, keyed, window_assigner))

    def apply(self, *_: Any) -> NoReturn:
        """Refused: window() comes first."""
        raise self._pair._too_early("apply()", "window()")
