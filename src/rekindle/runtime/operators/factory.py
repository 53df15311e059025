"""From a node of the plan to an operator: one table, one entry per kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from rekindle.runtime.operators.interval_join_operator import IntervalJoinOperator
from rekindle.runtime.operators.keyed import KeyedProcessOperator, ReduceOperator, Selector, with_current_key
from rekindle.runtime.operators.sink_function import SinkOperator
from rekindle.runtime.operators.sink_writer import WriterOperator
from rekindle.runtime.operators.sources import FunctionSourceOperator, ReaderSourceOperator
from rekindle.runtime.operators.stateless import (
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    ProcessOperator,
    method_or_callable,
)
from rekindle.runtime.operators.timestamps import TimestampsOperator
from rekindle.runtime.operators.windows.choose_operator import window_operator
from rekindle.serde import codec_for


@dataclass
class Blueprint:
    """Everything an operator may be built from."""

    node: OperatorNode
    context: OperatorContext
    function: Any
    selectors: list[Any]  # one per input; None where the input is not keyed
    outbox: Outbox
    wake: Callable[[], None]


def selector_function(selector: Any) -> Selector:
    """A key selector as a plain function."""
    return method_or_callable(selector, "get_key")


class _StatefulMethod:
    """Lends a map-like function the current key before each call."""

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
        """Everything else is the user's: `snapshot_state`, `notify_checkpoint_complete`, `finish`, ..."""
        return getattr(self._function, name)


def _map_like(operator: type[FunctionOperator], *methods: str) -> Callable[[Blueprint], Operator]:
    def build(blueprint: Blueprint) -> Operator:
        function = blueprint.function
        method = next((name for name in methods if hasattr(function, name)), None)
        if blueprint.context.keyed is not None and method is not None:
            selector = selector_function(blueprint.selectors[0])
            function = _StatefulMethod(function, method, blueprint.context, selector)
        return operator(blueprint.node, blueprint.context, function)

    return build


def _keyed(operator: Any) -> Callable[[Blueprint], Operator]:
    def build(blueprint: Blueprint) -> Operator:
        selectors = [selector_function(each) for each in blueprint.selectors if each is not None]
        return operator(blueprint.node, blueprint.context, blueprint.function, selectors)  # type: ignore[no-any-return]

    return build


def _plain(operator: Any) -> Callable[[Blueprint], Operator]:
    return lambda b: operator(b.node, b.context, b.function)


def _co(flat: bool) -> Callable[[Blueprint], Operator]:
    def build(blueprint: Blueprint) -> Operator:
        selectors = [selector_function(each) for each in blueprint.selectors if each is not None]
        return CoFunctionOperator(blueprint.node, blueprint.context, blueprint.function, selectors, flat)

    return build


_BUILDERS: dict[OperatorKind, Callable[[Blueprint], Operator]] = {
    OperatorKind.SOURCE_FUNCTION: lambda b: FunctionSourceOperator(b.node, b.context, b.function, b.wake),
    OperatorKind.SOURCE_READER: _plain(ReaderSourceOperator),
    OperatorKind.TIMESTAMPS: _plain(TimestampsOperator),
    OperatorKind.MAP: _map_like(MapOperator, "map"),
    OperatorKind.FLAT_MAP: _map_like(FlatMapOperator, "flat_map"),
    OperatorKind.FILTER: _map_like(FilterOperator, "filter"),
    OperatorKind.PROCESS: _plain(ProcessOperator),
    OperatorKind.REDUCE: _keyed(ReduceOperator),
    OperatorKind.KEYED_PROCESS: _keyed(KeyedProcessOperator),
    OperatorKind.WINDOW: _keyed(window_operator),
    OperatorKind.CO_MAP: _co(flat=False),
    OperatorKind.CO_FLAT_MAP: _co(flat=True),
    OperatorKind.CO_PROCESS: _plain(CoProcessOperator),
    OperatorKind.KEYED_CO_PROCESS: _keyed(KeyedCoProcessOperator),
    OperatorKind.BROADCAST_PROCESS: _plain(BroadcastProcessOperator),
    OperatorKind.KEYED_BROADCAST_PROCESS: _keyed(KeyedBroadcastProcessOperator),
    OperatorKind.INTERVAL_JOIN_PROCESS: _keyed(IntervalJoinOperator),
    OperatorKind.ASYNC_WAIT: lambda b: AsyncWaitOperator(b.node, b.context, b.function, b.wake),
    OperatorKind.SINK_FUNCTION: _map_like(SinkOperator, "invoke_current", "invoke"),
    OperatorKind.SINK: _plain(WriterOperator),
    OperatorKind.COLLECT: lambda b: CollectOperator(b.node, b.context, codec_for(b.node.output_type), b.outbox),
}


def build_operator(blueprint: Blueprint) -> Operator:
    """The operator of a node."""
    return _BUILDERS[blueprint.node.kind](blueprint)
