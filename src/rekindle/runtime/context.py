"""The context of an operator, and the contexts of user functions: runtime context and timer services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from rekindle.clock import Clock
from rekindle.common.accumulators import (
    Accumulator,
    DoubleCounter,
    Histogram,
    IntCounter,
    LongCounter,
    encode_accumulators,
    merge_accumulators,
)
from rekindle.common.watermark_strategy import MAX_WATERMARK, NO_TIMESTAMP
from rekindle.datastream.functions import RuntimeContext
from rekindle.datastream.functions.function import DistributedCache
from rekindle.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from rekindle.datastream.timerservice import TimerService
from rekindle.errors import StateAccessError
from rekindle.graph.nodes import OperatorNode
from rekindle.graph.settings import JobSettings
from rekindle.metrics import MetricGroup
from rekindle.runtime.raw_streams import RawInputs
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import ROW_KEY
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.operator_state import OperatorStateBackend
from rekindle.runtime.task_metrics import TaskMetricGroup
from rekindle.runtime.timers import InternalTimers

_A = TypeVar("_A", bound=Accumulator[Any, Any])


class Accumulators:
    """The accumulators of one slot. Each belongs to one subtask, so to one thread; the driver merges them by name."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Accumulator[Any, Any]] = {}

    def get(self, owner: str, name: str) -> Accumulator[Any, Any] | None:
        """Return a subtask's accumulator; None if it has none of that name."""
        return self._held.get((owner, name))

    def add(self, owner: str, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register a subtask's accumulator under a name."""
        self._held[owner, name] = accumulator

    @property
    def values(self) -> Mapping[str, Any]:
        """The merged results of this slot by name."""
        return merge_accumulators((name, held) for (_, name), held in self._held.items())

    def encode(self) -> bytes:
        """Encode all accumulators for the driver."""
        return encode_accumulators((name, held) for (_, name), held in self._held.items())


@dataclass(frozen=True)
class JobIdentity:
    """The identity of an attempt. Timeline and attempt together are unique: they name staged files (I14)."""

    name: str = ""
    id: str = ""
    timeline: str = ""
    attempt: int = 0  # counted over all drivers of the job
    claimed_ms: int = 0  # rises with the attempts, over all drivers and directories as far as the driver knows


@dataclass
class OperatorContext:
    """Everything that the engine gives to one operator of one subtask."""

    node: OperatorNode
    subtask: int
    attempt: int
    clock: Clock
    settings: JobSettings
    accumulators: Accumulators
    metrics: TaskMetricGroup
    keyed: KeyedStateBackend | None
    timers: InternalTimers | None
    operator_state: OperatorStateBackend
    batch: bool
    job: JobIdentity = field(default_factory=JobIdentity)
    directory: str = ""
    cached_files: Mapping[str, str] = field(default_factory=dict)  # name -> path on this machine
    #: Whether the restored checkpoint holds state of this operator, on any subtask.
    has_restored_state: bool = False
    raw_inputs: RawInputs = field(default_factory=RawInputs)

    @property
    def checkpointed(self) -> bool:
        """Whether the job takes checkpoints by itself, also at the end of the input."""
        return self.settings.checkpointed

    @property
    def task_name(self) -> str:
        """The operator's name with its subtask, counted from 1: `count (2/4)`."""
        return f"{self.node.name} ({self.subtask + 1}/{self.node.parallelism})"

    def ends_batch(self, watermark: int) -> bool:
        """Whether this is the one watermark of BATCH mode: every timer of both clocks is due, and none can be set."""
        return self.batch and watermark == MAX_WATERMARK

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """Tell the keyed state and the timers that the checkpoint is durable."""
        if self.keyed is not None:
            self.keyed.snapshot_completed(checkpoint_id)
        if self.timers is not None:
            self.timers.snapshot_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Tell the keyed state and the timers that the checkpoint was aborted."""
        if self.keyed is not None:
            self.keyed.snapshot_aborted(checkpoint_id)
        if self.timers is not None:
            self.timers.snapshot_aborted(checkpoint_id)

    def runtime_context(self) -> RuntimeContextImpl:
        """Return the runtime context for user functions."""
        return RuntimeContextImpl(self)


class RuntimeContextImpl(RuntimeContext):
    """`RuntimeContext` on top of an `OperatorContext`."""

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
        settings = self._context.settings
        return settings.global_job_parameters.get(key, settings.own_settings.get(key, default_value))

    def get_metrics_group(self) -> MetricGroup:
        return self._context.metrics

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        if not isinstance(accumulator, Accumulator):
            raise TypeError(f"add_accumulator('{name}') takes an Accumulator, not {accumulator!r}")
        if self.get_accumulator(name) is not None:
            owner = self._context.task_name
            raise ValueError(f"{owner} has an accumulator '{name}' already: get it with get_accumulator()")
        self._context.accumulators.add(self._owner, name, accumulator)

    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        return self._context.accumulators.get(self._owner, name)

    @property
    def _owner(self) -> str:
        return f"{self._context.node.uid}/{self._context.subtask}"

    def get_int_counter(self, name: str) -> IntCounter:
        return self._accumulator(name, IntCounter)

    def get_long_counter(self, name: str) -> LongCounter:
        return self._accumulator(name, LongCounter)

    def get_double_counter(self, name: str) -> DoubleCounter:
        return self._accumulator(name, DoubleCounter)

    def get_histogram(self, name: str) -> Histogram:
        return self._accumulator(name, Histogram)

    def get_distributed_cache(self) -> DistributedCache:
        return _SlotCache(self._context)

    def _accumulator(self, name: str, kind: type[_A]) -> _A:
        held = self.get_accumulator(name)
        if held is None:
            held = kind()
            self.add_accumulator(name, held)
        if not isinstance(held, kind):
            raise TypeError(f"accumulator '{name}' is a {type(held).__name__}, not a {kind.__name__}")
        return held

    def _keyed(self, state: str) -> KeyedStateBackend:
        if self._context.keyed is None:
            raise StateAccessError(
                f"Operator '{self._context.node.name}' asks for keyed state '{state}', but its input is not keyed: "
                "call key_by(...) before it, or keep the value in a field of the function."
            )
        return self._context.keyed

    def state_of(self, descriptor: StateDescriptor) -> State:
        """Return the keyed state of a descriptor of any kind."""
        return keyed_state(self._keyed(descriptor.name), descriptor)

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return keyed_state(self._keyed(state_descriptor.name), state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return keyed_state(self._keyed(state_descriptor.name), state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return keyed_state(self._keyed(state_descriptor.name), state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return keyed_state(self._keyed(state_descriptor.name), state_descriptor)

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return keyed_state(self._keyed(state_descriptor.name), state_descriptor)


class _SlotCache(DistributedCache):
    """The cached files of the slot."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_file(self, name: str) -> str:
        path = self._context.cached_files.get(name)
        if path is None:
            known = ", ".join(f"'{each}'" for each in sorted(self._context.cached_files)) or "none"
            raise KeyError(f"no cached file '{name}' was registered with register_cached_file(); there are: {known}")
        return path


class WatermarkHolder(Protocol):
    """An object with a current watermark, such as an operator."""

    current_watermark: int


class OperatorTimerService(TimerService):
    """The timer service of an operator without keys: it returns times, but refuses timers."""

    def __init__(self, context: OperatorContext, operator: WatermarkHolder) -> None:
        self._clock = context.clock
        self._operator = operator
        self._name = context.node.name

    def current_processing_time(self) -> int:
        return self._clock.wall_ms()

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        raise self._not_keyed()

    def register_event_time_timer(self, timestamp: int) -> None:
        raise self._not_keyed()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        raise self._not_keyed()

    def delete_event_time_timer(self, timestamp: int) -> None:
        raise self._not_keyed()

    def _not_keyed(self) -> StateAccessError:
        return StateAccessError(
            f"Operator '{self._name}' sets a timer, but its input is not keyed: timers belong to a key; "
            "call key_by(...) before it."
        )


class KeyedTimerService(OperatorTimerService):
    """The timer service of a keyed operator: timers belong to the current key."""

    def __init__(
        self, context: OperatorContext, operator: WatermarkHolder, keyed: KeyedStateBackend, timers: InternalTimers
    ) -> None:
        super().__init__(context, operator)
        self._keyed = keyed
        self._timers = timers

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timers.register_processing_time(timestamp, self._keyed.row[ROW_KEY])

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timers.register_event_time(timestamp, self._keyed.row[ROW_KEY])

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timers.delete_processing_time(timestamp, self._keyed.row[ROW_KEY])

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timers.delete_event_time(timestamp, self._keyed.row[ROW_KEY])


def user_timestamp(timestamp: int) -> int | None:
    """Return a timestamp as users see it: None when the record has none."""
    return None if timestamp == NO_TIMESTAMP else timestamp
