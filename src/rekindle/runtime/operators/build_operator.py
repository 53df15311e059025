"""Builds the operator of a node of the plan: one table by the node's kind, one by the parts of a window operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rekindle.datastream.windowing.operation import WindowOperation
from rekindle.datastream.windowing.session_assigners import DynamicEventTimeSessionWindows, EventTimeSessionWindows
from rekindle.datastream.windowing.time_assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rekindle.datastream.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from rekindle.graph.nodes import OperatorKind, OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.exchange.outbox import Outbox
from rekindle.runtime.operators.async_io import AsyncWaitOperator
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.collect_sink import CollectOperator
from rekindle.runtime.operators.connected import (
    BroadcastProcessOperator,
    CoFunctionOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
)
from rekindle.runtime.operators.interval_join import IntervalJoinOperator
from rekindle.runtime.operators.keyed import KeyedProcessOperator, ReduceOperator, Selector, with_current_key
from rekindle.runtime.operators.reader_source import ReaderSourceOperator
from rekindle.runtime.operators.sink_function import SinkOperator
from rekindle.runtime.operators.sink_writer import WriterOperator
from rekindle.runtime.operators.sources import FunctionSourceOperator
from rekindle.runtime.operators.stateless import (
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    ProcessOperator,
    method_or_callable,
)
from rekindle.runtime.operators.timestamps import TimestampsOperator
from rekindle.runtime.operators.windows.general_windows import GeneralWindowOperator
from rekindle.runtime.operators.windows.sessions import SessionWindowOperator
from rekindle.runtime.operators.windows.tumbling_and_sliding import AlignedWindowOperator
from rekindle.runtime.operators.windows.window_operator import WindowOperator
from rekindle.serde import codec_for


@dataclass
class Blueprint:
    """The parts from which an operator is built."""

    node: OperatorNode
    context: OperatorContext
    function: Any
    selectors: list[Any]  # one per input; None where the input is not keyed
    outbox: Outbox
    wake: Callable[[], None]


def selector_function(selector: Any) -> Selector:
    """Return a key selector as a plain function."""
    return method_or_callable(selector, "get_key")


class _KeyedFunction:
    """A function with one method per record, on a keyed stream: the record's key is current when the method runs."""

    def __init__(self, function: Any, method: str, context: OperatorContext, selector: Selector) -> None:
        self._function = function
        assert context.keyed is not None
        self._bound = with_current_key(context.keyed, selector, getattr(function, method))
        setattr(self, method, self._bound)

    def open(self, runtime_context: Any) -> None:
        """Open the user's function."""
        self._function.open(runtime_context)

    def close(self) -> None:
        """Close the user's function."""
        self._function.close()

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the user's function: `snapshot_state`, `finish`, ..."""
        return getattr(self._function, name)


def _with_method(operator: type[FunctionOperator], *methods: str) -> Callable[[Blueprint], Operator]:
    """Build an operator whose function has one method per record: the first of `methods` that it has."""

    def build(blueprint: Blueprint) -> Operator:
        function = blueprint.function
        method = next((name for name in methods if hasattr(function, name)), None)
        if blueprint.context.keyed is not None and method is not None:
            selector = selector_function(blueprint.selectors[0])
            function = _KeyedFunction(function, method, blueprint.context, selector)
        return operator(blueprint.node, blueprint.context, function)

    return build


def _with_selectors(operator: Any) -> Callable[[Blueprint], Operator]:
    def build(blueprint: Blueprint) -> Operator:
        selectors = [selector_function(each) for each in blueprint.selectors if each is not None]
        return operator(blueprint.node, blueprint.context, blueprint.function, selectors)  # type: ignore[no-any-return]

    return build


def _with_function(operator: Any) -> Callable[[Blueprint], Operator]:
    return lambda b: operator(b.node, b.context, b.function)


def _co_function(flat: bool) -> Callable[[Blueprint], Operator]:
    def build(blueprint: Blueprint) -> Operator:
        selectors = [selector_function(each) for each in blueprint.selectors if each is not None]
        return CoFunctionOperator(blueprint.node, blueprint.context, blueprint.function, selectors, flat)

    return build


#: (assigner, trigger) -> operator. Exact types only: a subclass may behave differently.
_FAST_WINDOW_OPERATORS: Final[dict[tuple[type[Any], type[Any]], type[WindowOperator]]] = {
    (TumblingEventTimeWindows, EventTimeTrigger): AlignedWindowOperator,
    (SlidingEventTimeWindows, EventTimeTrigger): AlignedWindowOperator,
    (TumblingProcessingTimeWindows, ProcessingTimeTrigger): AlignedWindowOperator,
    (SlidingProcessingTimeWindows, ProcessingTimeTrigger): AlignedWindowOperator,
    (EventTimeSessionWindows, EventTimeTrigger): SessionWindowOperator,
    (DynamicEventTimeSessionWindows, EventTimeTrigger): SessionWindowOperator,
}


def window_operator_class(operation: WindowOperation, on_disk: bool = False) -> type[WindowOperator]:
    """Return the operator class of a window operation: a fast one if all its parts are built in, else the general.

    The fast ones hold the rows of all open windows, so they do not fit state that is larger than memory.
    """
    if operation.evictor is not None or on_disk:
        return GeneralWindowOperator
    return _FAST_WINDOW_OPERATORS.get((type(operation.assigner), type(operation.trigger)), GeneralWindowOperator)


def _window_operator(
    node: OperatorNode, context: OperatorContext, operation: WindowOperation, selectors: list[Selector]
) -> WindowOperator:
    on_disk = context.keyed is not None and not context.keyed.in_memory
    return window_operator_class(operation, on_disk)(node, context, operation, selectors[0])


_BUILDERS: dict[OperatorKind, Callable[[Blueprint], Operator]] = {
    OperatorKind.SOURCE_FUNCTION: lambda b: FunctionSourceOperator(b.node, b.context, b.function, b.wake),
    OperatorKind.SOURCE_READER: lambda b: ReaderSourceOperator(b.node, b.context, b.function, b.wake),
    OperatorKind.TIMESTAMPS: _with_function(TimestampsOperator),
    OperatorKind.MAP: _with_method(MapOperator, "map"),
    OperatorKind.FLAT_MAP: _with_method(FlatMapOperator, "flat_map"),
    OperatorKind.FILTER: _with_method(FilterOperator, "filter"),
    OperatorKind.PROCESS: _with_function(ProcessOperator),
    OperatorKind.REDUCE: _with_selectors(ReduceOperator),
    OperatorKind.KEYED_PROCESS: _with_selectors(KeyedProcessOperator),
    OperatorKind.WINDOW: _with_selectors(_window_operator),
    OperatorKind.CO_MAP: _co_function(flat=False),
    OperatorKind.CO_FLAT_MAP: _co_function(flat=True),
    OperatorKind.CO_PROCESS: _with_function(CoProcessOperator),
    OperatorKind.KEYED_CO_PROCESS: _with_selectors(KeyedCoProcessOperator),
    OperatorKind.BROADCAST_PROCESS: _with_function(BroadcastProcessOperator),
    OperatorKind.KEYED_BROADCAST_PROCESS: _with_selectors(KeyedBroadcastProcessOperator),
    OperatorKind.INTERVAL_JOIN_PROCESS: _with_selectors(IntervalJoinOperator),
    OperatorKind.ASYNC_WAIT: lambda b: AsyncWaitOperator(b.node, b.context, b.function, b.wake),
    OperatorKind.SINK_FUNCTION: _with_method(SinkOperator, "invoke_current", "invoke"),
    OperatorKind.SINK: _with_function(WriterOperator),
    OperatorKind.COLLECT: lambda b: CollectOperator(b.node, b.context, codec_for(b.node.output_type), b.outbox),
}


def build_operator(blueprint: Blueprint) -> Operator:
    """Build the operator of a node."""
    return _BUILDERS[blueprint.node.kind](blueprint)
