"""What every function has: `open` with a runtime context, and `close`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

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
from rekindle.errors import StateAccessError

if TYPE_CHECKING:
    from rekindle.common.accumulators import Accumulator, DoubleCounter, Histogram, IntCounter, LongCounter
    from rekindle.metrics import MetricGroup


class DistributedCache(ABC):
    """Files that travel with the job, at hand on every machine where it runs."""

    @abstractmethod
    def get_file(self, name: str) -> str:
        """The path of the file or directory that was registered under a name."""


class KeyedStateStore(ABC):
    """Hands out keyed state; each handle follows the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """A value per key that a reduce function folds."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """A value per key that an aggregate function folds."""


class RuntimeContext(KeyedStateStore):
    """Where a function finds itself: task, subtask, parameters, metrics, keyed state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """The task's name."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """How many subtasks the operator has."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """How many it may ever have: its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """This subtask, counted from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often the job was restarted."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """The task's name with the subtask, as in `Map (2/4)`."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter, see `ExecutionConfig.set_global_job_parameters`."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its metrics."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Let the job's result have under this name what all subtasks add (see `rekindle.common.accumulators`)."""

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """This subtask's accumulator of that name, None if it has none."""

    @abstractmethod
    def get_int_counter(self, name: str) -> IntCounter:
        """A sum of whole numbers; made at the first call."""

    @abstractmethod
    def get_long_counter(self, name: str) -> LongCounter:
        """A sum of whole numbers; made at the first call."""

    @abstractmethod
    def get_double_counter(self, name: str) -> DoubleCounter:
        """A sum of numbers; made at the first call."""

    @abstractmethod
    def get_histogram(self, name: str) -> Histogram:
        """How often each value came; made at the first call."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """The files that were registered with `env.register_cached_file`."""


class Function(ABC):
    """Base of all user functions. One instance lives per subtask, for as long as the job runs.

    >>> class Greeting(Function):
    ...     def open(self, runtime_context):
    ...         self.client = "made where the function runs, never shipped"
    >>> Greeting().close()
    """

    _runtime_context: RuntimeContext | None = None

    def get_runtime_context(self) -> RuntimeContext:
        """Where the function finds itself: in every method that the engine calls, `initialize_state` and `run` too."""
        if self._runtime_context is None:
            raise StateAccessError(
                f"{type(self).__name__} has no runtime context yet: it is there from initialize_state() and open() "
                "on, not in __init__(); key selectors and partitioners have none."
            )
        return self._runtime_context

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Called by the engine before any other method."""
        object.__setattr__(self, "_runtime_context", runtime_context)  # the function may be a frozen dataclass

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once before the first record: make connections, get state handles."""

    def close(self) -> None:
        """Called once after the last record, also when the job fails or is cancelled."""


class RichFunction(Function):
    """Flink's name for a function with `open`, `close` and `get_runtime_context`, which all have here.

    >>> issubclass(RichFunction, Function)
    True
    """
