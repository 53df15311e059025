"""Which operator runs a window operation: a fast one where only built-in parts decide, else the general one."""

from __future__ import annotations

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
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.operators.keyed import Selector
from rekindle.runtime.operators.windows.aligned import AlignedWindowOperator
from rekindle.runtime.operators.windows.general import GeneralWindowOperator
from rekindle.runtime.operators.windows.sessions import SessionWindowOperator
from rekindle.runtime.operators.windows.window_operator import WindowOperator

#: (assigner, trigger) -> operator; subclasses may do something else and do not count.
_FAST: Final[dict[tuple[type[Any], type[Any]], type[WindowOperator]]] = {
    (TumblingEventTimeWindows, EventTimeTrigger): AlignedWindowOperator,
    (SlidingEventTimeWindows, EventTimeTrigger): AlignedWindowOperator,
    (TumblingProcessingTimeWindows, ProcessingTimeTrigger): AlignedWindowOperator,
    (SlidingProcessingTimeWindows, ProcessingTimeTrigger): AlignedWindowOperator,
    (EventTimeSessionWindows, EventTimeTrigger): SessionWindowOperator,
    (DynamicEventTimeSessionWindows, EventTimeTrigger): SessionWindowOperator,
}


def operator_class(operation: WindowOperation) -> type[WindowOperator]:
    """The operator for an operation."""
    if operation.evictor is not None:
        return GeneralWindowOperator
    return _FAST.get((type(operation.assigner), type(operation.trigger)), GeneralWindowOperator)


def window_operator(
    node: OperatorNode, context: OperatorContext, operation: WindowOperation, selectors: list[Selector]
) -> WindowOperator:
    """The operator of a node."""
    return operator_class(operation)(node, context, operation, selectors[0])
