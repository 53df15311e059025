"""What user functions see of the engine: the runtime context, and the contexts of process functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from rekindle.clock import Clock
from rekindle.datastream.functions import RuntimeContext
from rekindle.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from rekindle.datastream.timerservice import TimerService
from rekindle.errors import StateAccessError
from rekindle.graph.nodes import OperatorNode
from rekindle.metrics import MetricGroup
from rekindle.runtime.exchange.chunk import NO_TIMESTAMP
from rekindle.runtime.metrics import TaskMetricGroup
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.operator import OperatorStateBackend
from rekindle.runtime.timers import InternalTimers


@dataclass
class Accumulators:
    """Named sums of one slot; the driver adds the slots up."""

    values: dict[str, float | int] = field(default_factory=dict)

    def add(self, name: str, amount: float | int) -> None:
        """Add to a named sum."""
        self.values[name] = self.values.get(name, 0) + amount


class IntCounter:
    """Flink's accumulator of that name: a sum that reaches the job's result."""

    def __init__(self, name: str, accumulators: Accumulators) -> None:
        self._name = name
        self._accumulators = accumulators
        accumulators.add(name, 0)

    def add(self, amount: int) -> None:
        """Add to the sum of this slot."""
        self._accumulators.add(self._name, amount)

    def get_local_value(self) -> float | int:
        """The sum of this slot so far."""
        return self._accumulators.values[self._name]


@dataclass
class OperatorContext:
    """What the engine hands to one operator of one subtask."""

    node: OperatorNode
    subtask: int
    attempt: int
    clock: Clock
    job_parameters: dict[str, str]
    accumulators: Accumulators
    metrics: TaskMetricGroup
    keyed: HashMapKeyedBackend | None
    timers: InternalTimers | None
    operator_state: OperatorStateBackend
    batch: bool
    object_reuse: bool = False

    @property
    def task_name(self) -> str:
        """The operator with its subtask, counted from 1 as people do: `count (2/4)`."""
        return f"{self.node.name} ({self.subtask + 1}/{self.node.parallelism})"

    def runtime_context(self) -> RuntimeContextImpl:
        """The user's view."""
        return RuntimeContextImpl(self)


class RuntimeContextImpl(RuntimeContext):
    """`RuntimeContext` over an `OperatorContext`."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_task_name(self) -> str:
        return self._context.node.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._context.node.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._context.node.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._context.subtask

    def get_attempt_number(self) -> int:
        return self._context.attempt

    def get_task_name_with_subtasks(self) -> str:
        return self._context.task_name

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._context.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self._context.metrics

    def get_int_counter(self, name: str) -> IntCounter:
        """An accumulator: a named sum over all subtasks in the job's result."""
        return IntCounter(name, self._context.accumulators)

    def _keyed(self, state: str) -> HashMapKeyedBackend:
        if self._context.keyed is None:
            raise StateAccessError(
                f"Operator '{self._context.node.name}' asks for keyed state '{state}', but its input is not keyed: "
                "call key_by(...) before it, or keep the value in a field of the function."
            )
        return self._context.keyed

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._keyed(state_descriptor.name).value_state(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._keyed(state_descriptor.name).list_state(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._keyed(state_descriptor.name).map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._keyed(state_descriptor.name).reducing_state(state_descriptor)

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return self._keyed(state_descriptor.name).aggregating_state(state_descriptor)


class WatermarkHolder(Protocol):
    """Anything with a current watermark (an operator)."""

    current_watermark: int


class OperatorTimerService(TimerService):
    """Timers of the current key; without a key only the times can be asked for."""

    def __init__(self, context: OperatorContext, operator: WatermarkHolder) -> None:
        self._clock = context.clock
        self._operator = operator
        self._timers = context.timers
        self._keyed = context.keyed
        self._name = context.node.name

    def current_processing_time(self) -> int:
        return self._clock.wall_ms()

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def _for_key(self) -> tuple[InternalTimers, Any]:
        if self._timers is None or self._keyed is None:
            raise StateAccessError(
                f"Operator '{self._name}' sets a timer, but its input is not keyed: timers belong to a key; "
                "call key_by(...) before it."
            )
        return self._timers, self._keyed.current_key()

    def register_processing_time_timer(self, timestamp: int) -> None:
        timers, key = self._for_key()
        timers.register_processing_time(timestamp, key)

    def register_event_time_timer(self, timestamp: int) -> None:
        timers, key = self._for_key()
        timers.register_event_time(timestamp, key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        timers, key = self._for_key()
        timers.delete_processing_time(timestamp, key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        timers, key = self._for_key()
        timers.delete_event_time(timestamp, key)


def user_timestamp(timestamp: int) -> int | None:
    """A timestamp as users see it: None when the record has none."""
    return None if timestamp == NO_TIMESTAMP else timestamp
