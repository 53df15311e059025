"""Functions that take part in checkpoints. The methods count by name, with or without these classes."""

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
    """The managed part of what a function sees when it begins."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the operator's state comes from a checkpoint; always False for a task without state.

        What counts is the operator: a subtask whose own share is empty is restored too.
        """

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The checkpoint that the state comes from; None where `is_restored()` is False."""

    def is_checkpointing_enabled(self) -> bool:
        """Whether checkpoints are made without being asked for, also at the end of the input."""
        return True

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Operator list state (split or union) and broadcast state."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Keyed state; only on a keyed stream."""


class FunctionInitializationContext(ManagedInitializationContext):
    """What `initialize_state` sees."""


class ManagedSnapshotContext(ABC):
    """The managed part of what a function sees at a barrier."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Strictly increasing; a later checkpoint contains the earlier ones."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the driver triggered the checkpoint, in milliseconds."""


class FunctionSnapshotContext(ManagedSnapshotContext):
    """What `snapshot_state` sees."""


class StateSnapshotContext(FunctionSnapshotContext):
    """What `snapshot_state` receives: beside the checkpoint's id and time, the streams for raw state.

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
        """The stream for raw keyed state; on a keyed stream only, and not in an operator that has timers to save."""

    @abstractmethod
    def get_raw_operator_state_output(self) -> OperatorStateCheckpointOutputStream:
        """The stream for raw operator state."""


class StateInitializationContext(FunctionInitializationContext):
    """What `initialize_state` receives: beside the state stores, the raw state of the restored checkpoint.

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
        """This subtask's partitions of raw operator state; at another parallelism they are dealt out in turn."""

    @abstractmethod
    def get_raw_keyed_state_inputs(self) -> Iterable[KeyGroupStatePartitionStreamProvider]:
        """The raw keyed state of this subtask's key groups, those only that were started."""


class CheckpointedFunction(ABC):
    """A function that keeps operator state, or has work to do when a checkpoint cuts the stream.

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
        """Before `open()`: get the state, and take back what a restored one holds."""

    @abstractmethod
    def snapshot_state(self, context: StateSnapshotContext) -> None:
        """At the barrier: bring the state up to date. Nothing of this subtask is processed meanwhile."""


class ListCheckpointed(ABC):
    """The short form: a list goes into the checkpoint and comes back, redistributed, after a restore.

    >>> class Counting(ListCheckpointed):
    ...     count = 0
    ...     def snapshot_state(self, checkpoint_id, timestamp):
    ...         return [self.count]
    ...     def restore_state(self, state):
    ...         self.count = sum(state)
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """The state, as elements that can be given to any subtask."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """This subtask's share of the elements."""


class CheckpointListener(ABC):
    """Told what became of checkpoints: after the fact, best effort, possibly of an earlier one than the newest.

    An exception here does not undo the checkpoint; it fails the job, and recovery starts.
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """As if it had never been triggered: nothing is dropped, the next one covers more."""
