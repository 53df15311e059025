"""`Function`, the base of all user functions, and its `RuntimeContext`."""

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
    """The files that were registered with the job, available on every machine on which it runs."""

    @abstractmethod
    def get_file(self, name: str) -> str:
        """Return the local path of the file or directory that was registered under a name."""


class KeyedStateStore(ABC):
    """Returns handles of keyed state. A handle always reads and writes the state of the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """Return a state with one value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a state with a list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """Return a state with a map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """Return a state whose value per key a reduce function combines."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """Return a state whose value per key an aggregate function computes."""


class RuntimeContext(KeyedStateStore):
    """The runtime information of a function: task, subtask, job parameters, metrics, keyed state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Return the task's name."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the operator's number of subtasks."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the operator's maximum parallelism, which is its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Return the index of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return the number of times that the job was restarted."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the task's name with the subtask, such as `Map (2/4)`."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter (`ExecutionConfig.set_global_job_parameters`), else a setting of your own.

        A setting of your own has a key in the configuration that begins with a word of your own.
        """

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the group in which the function registers its metrics."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator. The job's result holds its total over all subtasks under this name."""

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """Return this subtask's accumulator of that name, or None if it has none."""

    @abstractmethod
    def get_int_counter(self, name: str) -> IntCounter:
        """Return a counter of whole numbers. The first call creates it."""

    @abstractmethod
    def get_long_counter(self, name: str) -> LongCounter:
        """Return a counter of whole numbers. The first call creates it."""

    @abstractmethod
    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return a counter of numbers. The first call creates it."""

    @abstractmethod
    def get_histogram(self, name: str) -> Histogram:
        """Return an accumulator that counts how often each value occurs. The first call creates it."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """Return the files that were registered with `env.register_cached_file`."""


class Function(ABC):
    """Base of all user functions. Each subtask has one instance, which lives as long as the subtask.

    >>> class Greeting(Function):
    ...     def open(self, runtime_context):
    ...         self.client = "made where the function runs, never shipped"
    >>> Greeting().close()
    """

    _runtime_context: RuntimeContext | None = None

    def get_runtime_context(self) -> RuntimeContext:
        """Return the runtime context. It is set in every method that the engine calls, but not in `__init__`."""
        if self._runtime_context is None:
            raise StateAccessError(
                f"{type(self).__name__} has no runtime context yet: it is there from initialize_state() and open() "
                "on, not in __init__(); key selectors and partitioners have none."
            )
        return self._runtime_context

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Set the runtime context. The engine calls this before any other method."""
        object.__setattr__(self, "_runtime_context", runtime_context)  # works for frozen dataclasses, too

    # They return nothing, or a coroutine in an async function: a checker accepts both with `Any`.
    def open(self, runtime_context: RuntimeContext) -> Any:
        """Open connections and get state handles. Called once before the first record."""

    def close(self) -> Any:
        """Release resources. Called once after the last record, also when the job fails or is cancelled."""


class RichFunction(Function):
    """Flink's name for a function with `open`, `close` and `get_runtime_context`. Here every function has them.

    >>> issubclass(RichFunction, Function)
    True
    """
