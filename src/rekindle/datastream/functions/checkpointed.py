"""Interfaces of functions that take part in checkpoints.

The engine finds the methods by name, so a function need not extend these classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from rekindle.datastream.functions.function import KeyedStateStore
from rekindle.datastream.functions.raw_state import (
    KeyedStateCheckpointOutputStream,
    KeyGroupStatePartitionStreamProvider,
    OperatorStateCheckpointOutputStream,
    StatePartitionStreamProvider,
)
from rekindle.datastream.state import OperatorStateStore


class ManagedInitializationContext(ABC):
    """The context of a function's start: restored checkpoint and managed state."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Return whether the operator's state comes from a checkpoint. Always False for a task without state.

        The answer is the same on all subtasks of the operator, even if a subtask's share of the state is empty.
        """

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the id of the restored checkpoint, or None if `is_restored()` is False."""

    def is_checkpointing_enabled(self) -> bool:
        """Return whether the job makes checkpoints by itself, including one at the end of the input."""
        return True

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of operator state: list state (split or union) and broadcast state."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state. Only on a keyed stream."""


class FunctionInitializationContext(ManagedInitializationContext):
    """Flink's name for the context of `initialize_state`, without raw state."""


class ManagedSnapshotContext(ABC):
    """The context of a snapshot: checkpoint id and time."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return the checkpoint's id. Ids strictly increase; a later checkpoint contains the earlier ones."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return the time at which the driver triggered the checkpoint, in milliseconds."""


class FunctionSnapshotContext(ManagedSnapshotContext):
    """Flink's name for the context of `snapshot_state`, without raw state."""


class StateSnapshotContext(FunctionSnapshotContext):
    """The argument of `snapshot_state`: the checkpoint's id and time, and the output streams for raw state.

    >>> import pickle
    >>> from rekindle.datastream import CheckpointedFunction, MapFunction, StreamExecutionEnvironment
    >>> from rekindle.testing import InProcessJob
    >>> class Seen(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         inputs = context.get_raw_operator_state_inputs()
    ...         self.seen = set().union(*(pickle.load(each.get_stream()) for each in inputs))
    ...     def snapshot_state(self, context):
    ...         pickle.dump(self.seen, context.get_raw_operator_state_output())
    ...     def map(self, value):
    ...         known = value in self.seen
    ...         self.seen.add(value)
    ...         return value, known
    >>> def program():
    ...     env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    ...     return env.from_collection([1, 2, 1, 2]).map(Seen())
    >>> checkpoint = InProcessJob.of(program(), max_records=2).checkpoint()
    >>> checkpoint.results, InProcessJob.of(program(), restore=checkpoint).run()
    ([(1, False), (2, False)], [(1, True), (2, True)])
    """

    @abstractmethod
    def get_raw_keyed_operator_state_output(self) -> KeyedStateCheckpointOutputStream:
        """Return the stream for raw keyed state. Only on a keyed stream, and not in an operator that saves timers."""

    @abstractmethod
    def get_raw_operator_state_output(self) -> OperatorStateCheckpointOutputStream:
        """Return the stream for raw operator state."""


class StateInitializationContext(FunctionInitializationContext):
    """The argument of `initialize_state`: the state stores, and the raw state of the restored checkpoint.

    >>> import pickle
    >>> from rekindle.datastream import CheckpointedFunction, MapFunction, StreamExecutionEnvironment
    >>> from rekindle.testing import InProcessJob
    >>> class Last(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         self.last = {}
    ...         for group in context.get_raw_keyed_state_inputs():
    ...             self.last.update(pickle.load(group.get_stream()))
    ...     def snapshot_state(self, context):
    ...         output = context.get_raw_keyed_operator_state_output()
    ...         by_group = {}
    ...         for key, value in self.last.items():
    ...             by_group.setdefault(output.assign_to_key_group(key), {})[key] = value
    ...         for key_group, entries in by_group.items():
    ...             output.start_new_key_group(key_group)
    ...             pickle.dump(entries, output)
    ...     def map(self, value):
    ...         before, self.last[value[0]] = self.last.get(value[0]), value[1]
    ...         return value[0], before
    >>> def program(parallelism):
    ...     env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    ...     return env.from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4)]).key_by(lambda v: v[0]).map(Last())
    >>> checkpoint = InProcessJob.of(program(1), max_records=2).checkpoint()
    >>> checkpoint.results, sorted(InProcessJob.of(program(2), restore=checkpoint).run())
    ([('a', None), ('b', None)], [('a', 1), ('b', 2)])
    """

    @abstractmethod
    def get_raw_operator_state_inputs(self) -> Iterable[StatePartitionStreamProvider]:
        """Return this subtask's partitions of raw operator state. A rescale deals them out to the subtasks in turn."""

    @abstractmethod
    def get_raw_keyed_state_inputs(self) -> Iterable[KeyGroupStatePartitionStreamProvider]:
        """Return the raw keyed state of this subtask's key groups, without groups that were never started."""


class CheckpointedFunction(ABC):
    """A function that keeps operator state, or that must act at a checkpoint's barrier.

    >>> from rekindle.common import Types
    >>> from rekindle.datastream import SinkFunction
    >>> from rekindle.datastream.state import ListStateDescriptor
    >>> class Buffering(SinkFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         descriptor = ListStateDescriptor("buffered", Types.STRING())
    ...         self.state = context.get_operator_state_store().get_list_state(descriptor)
    ...         self.buffered = list(self.state.get()) if context.is_restored() else []
    ...     def snapshot_state(self, context):
    ...         self.state.update(self.buffered)
    ...     def invoke(self, value, context):
    ...         self.buffered.append(value)
    """

    @abstractmethod
    def initialize_state(self, context: StateInitializationContext) -> None:
        """Get the state handles, and read restored state. Called before `open()`."""

    @abstractmethod
    def snapshot_state(self, context: StateSnapshotContext) -> None:
        """Bring the state up to date. Called at the barrier, while the subtask processes nothing else."""


class ListCheckpointed(ABC):
    """A function whose state is a list. A restore at another parallelism redistributes its elements.

    >>> class Counting(ListCheckpointed):
    ...     count = 0
    ...     def snapshot_state(self, checkpoint_id, timestamp):
    ...         return [self.count]
    ...     def restore_state(self, state):
    ...         self.count = sum(state)
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """Return the state as a list of elements, each of which any subtask can take over."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Take over this subtask's share of the elements."""


class CheckpointListener(ABC):
    """Is notified when a checkpoint completes or is aborted.

    A notification is best effort: it comes after the event and may be about a checkpoint that is not the newest. An
    exception here does not undo the checkpoint. It fails the job, and recovery starts.
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Handle the completion of a checkpoint, which is durable now."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Handle an aborted checkpoint. Drop nothing: the next checkpoint covers the same changes and more."""
