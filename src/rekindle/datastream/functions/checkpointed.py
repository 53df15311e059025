"""Functions that take part in checkpoints. The methods count by name, with or without these classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rekindle.datastream.functions.base import KeyedStateStore
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
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Before `open()`: get the state, and take back what a restored one holds."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
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
