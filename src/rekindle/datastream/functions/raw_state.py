"""Raw state: bytes that a function writes into a checkpoint itself, and reads back after a restore.

Prefer managed state (descriptors and handles): it is checked, can evolve, and is written incrementally. Raw state is
for data with a binary form of its own, such as a sketch or a model. Every checkpoint writes all raw state again.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import Any, BinaryIO


class KeyedStateCheckpointOutputStream(io.RawIOBase):
    """The output stream for raw keyed state, one key group after the other.

    Each of this subtask's key groups may be started once, in any order. A rescale moves each to its new subtask.
    """

    @abstractmethod
    def start_new_key_group(self, key_group_id: int) -> None:
        """Start a key group. The bytes written from now on belong to it."""

    @abstractmethod
    def get_key_group_list(self) -> range:
        """Return the key groups of this subtask."""

    @abstractmethod
    def get_current_key_group(self) -> int | None:
        """Return the key group that was started last, or None before the first."""

    @abstractmethod
    def is_key_group_already_started(self, key_group_id: int) -> bool:
        """Return whether the key group was started."""

    @abstractmethod
    def is_key_group_already_finished(self, key_group_id: int) -> bool:
        """Return whether the key group was started and another one after it."""

    @abstractmethod
    def assign_to_key_group(self, key: Any) -> int:
        """Return the key group of a key, as Flink's `KeyGroupRangeAssignment.assignToKeyGroup` does."""


class OperatorStateCheckpointOutputStream(io.RawIOBase):
    """The output stream for raw operator state, in partitions. A restore may give a partition to any subtask."""

    @abstractmethod
    def start_new_partition(self) -> None:
        """Start another partition. The first one need not be started."""

    @abstractmethod
    def get_number_of_partitions(self) -> int:
        """Return the number of partitions so far."""


class StatePartitionStreamProvider:
    """A partition of restored raw operator state."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def get_stream(self) -> BinaryIO:
        """Return a stream over the partition's bytes, from the beginning."""
        return io.BytesIO(self._data)


class KeyGroupStatePartitionStreamProvider(StatePartitionStreamProvider):
    """A key group of restored raw keyed state."""

    def __init__(self, data: bytes, key_group_id: int) -> None:
        super().__init__(data)
        self._key_group_id = key_group_id

    def get_key_group_id(self) -> int:
        """Return the id of the key group."""
        return self._key_group_id
