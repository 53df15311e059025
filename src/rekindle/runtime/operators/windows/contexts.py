"""The contexts of assigners, triggers, evictors and window functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rekindle.datastream.functions import KeyedStateStore, ProcessAllWindowFunction, ProcessWindowFunction
from rekindle.datastream.functions.function import RuntimeContext
from rekindle.datastream.output_tag import OutputTag
from rekindle.datastream.state import State, StateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.datastream.windowing.assigners import WindowAssigner
from rekindle.datastream.windowing.evictors import Evictor
from rekindle.datastream.windowing.triggers import Trigger
from rekindle.errors import StateAccessError
from rekindle.metrics import MetricGroup
from rekindle.runtime.context import OperatorContext, WatermarkHolder
from rekindle.runtime.operators.output import Collector
from rekindle.runtime.operators.windows.namespaces import Namespace
from rekindle.runtime.operators.windows.window_state import CachedHandles, WindowStateStore
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.merge_state import merge_state
from rekindle.runtime.timers import InternalTimers


class Clocks:
    """Both clocks of an operator, and its metrics."""

    def __init__(self, context: OperatorContext, operator: WatermarkHolder) -> None:
        self._wall_ms = context.clock.wall_ms
        self._operator = operator
        self._metrics = context.metrics

    def get_current_processing_time(self) -> int:
        """Return the processing time in milliseconds."""
        return self._wall_ms()

    def get_current_watermark(self) -> int:
        """Return the watermark in milliseconds."""
        return self._operator.current_watermark

    def get_metric_group(self) -> MetricGroup:
        """Return the group in which metrics are registered."""
        return self._metrics


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """The context of an assigner."""

    def __init__(self, context: OperatorContext) -> None:
        self._wall_ms = context.clock.wall_ms
        self._runtime_context = context.runtime_context()

    def get_current_processing_time(self) -> int:
        return self._wall_ms()

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class RuntimeEvictorContext(Clocks, Evictor.EvictorContext):
    """The context of an evictor."""


class RuntimeTriggerContext(Clocks, Trigger.OnMergeContext):
    """The context of a trigger. The operator sets `key` and `namespace`; the window's row is current."""

    def __init__(
        self, context: OperatorContext, operator: WatermarkHolder, row_of: Callable[[Any, Namespace], Row]
    ) -> None:
        super().__init__(context, operator)
        assert context.keyed is not None
        assert context.timers is not None
        self._keyed: KeyedStateBackend = context.keyed
        self._timers: InternalTimers = context.timers
        self._row_of = row_of
        self._handles: dict[str, State] = {}
        self.key: Any = None
        self.namespace: Namespace = None
        self.merged: list[Namespace] = []

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register_processing_time(time, self.key, self.namespace)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register_event_time(time, self.key, self.namespace)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time(time, self.key, self.namespace)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time(time, self.key, self.namespace)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        handle = self._handles.get(state_descriptor.name)
        if handle is None:
            handle = keyed_state(self._keyed, reserved(state_descriptor, "trigger:"))
            self._handles[state_descriptor.name] = handle
        return handle

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        handle = self.get_partitioned_state(state_descriptor)
        sources = [self._row_of(self.key, namespace) for namespace in self.merged if namespace != self.namespace]
        merge_state(self._keyed, handle, self._row_of(self.key, self.namespace), sources)


class WindowContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The context of a process window function. The operator sets `current_window`, `key` and `namespace`."""

    def __init__(
        self,
        context: OperatorContext,
        operator: WatermarkHolder,
        collector: Collector,
        row_of: Callable[[Any, Namespace], Row],
        merging: bool,
    ) -> None:
        self._wall_ms = context.clock.wall_ms
        self._operator = operator
        self._collector = collector
        self._global_state = CachedHandles(context.runtime_context())
        self._merging = merging
        self._row_of = row_of
        assert context.keyed is not None
        self._window_state = CachedHandles(
            WindowStateStore(context.keyed, self._window_row, lambda each: reserved(each, "window:"))
        )
        self.current_window: Any = None
        self.key: Any = None
        self.namespace: Namespace = None
        self.time = 0

    def _window_row(self) -> Row:
        return self._row_of(self.key, self.namespace)

    def window(self) -> Any:
        return self.current_window

    def current_processing_time(self) -> int:
        return self._wall_ms()

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def window_state(self) -> KeyedStateStore:
        if self._merging:
            raise StateAccessError(
                "Windows that merge, such as sessions, have no state of their own: use global_state()."
            )
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._global_state

    def output(self, output_tag: OutputTag, value: Any) -> None:
        self._collector.add((output_tag, value), self.time)
