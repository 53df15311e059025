"""Raw state: bytes that a function writes into a checkpoint itself, and reads back after a restore.

Managed state (descriptors and handles) is the better choice nearly always: it is checked, evolves, and is written
incrementally. Raw state is for what has a form of its own, a sketch or a model for instance. Every checkpoint writes
all of it anew.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import Any, BinaryIO


class KeyedStateCheckpointOutputStream(io.RawIOBase):
    """Where raw keyed state is written, one key group after the other; at a rescale each goes to its new owner.

    Each of this subtask's key groups may be started once, in any order.
    """

    @abstractmethod
    def start_new_key_group(self, key_group_id: int) -> None:
        """What is written from here on belongs to this key group."""

    @abstractmethod
    def get_key_group_list(self) -> range:
        """The key groups of this subtask."""

    @abstractmethod
    def get_current_key_group(self) -> int | None:
        """The key group that was started last; None before the first."""

    @abstractmethod
    def is_key_group_already_started(self, key_group_id: int) -> bool:
        """Whether the key group was started, now or before."""

    @abstractmethod
    def is_key_group_already_finished(self, key_group_id: int) -> bool:
        """Whether the key group was started and another one after it."""

    @abstractmethod
    def assign_to_key_group(self, key: Any) -> int:
        """The key group of a key: what Flink's `KeyGroupRangeAssignment` says."""


class OperatorStateCheckpointOutputStream(io.RawIOBase):
    """Where raw operator state is written, in partitions that can be given to any subtask."""

    @abstractmethod
    def start_new_partition(self) -> None:
        """What is written from here on is another partition; the first one need not be started."""

    @abstractmethod
    def get_number_of_partitions(self) -> int:
        """How many there are by now."""


class StatePartitionStreamProvider:
    """A partition of restored raw operator state."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def get_stream(self) -> BinaryIO:
        """Its bytes, from the beginning."""
        return io.BytesIO(self._data)


class KeyGroupStatePartitionStreamProvider(StatePartitionStreamProvider):
    """A key group of restored raw keyed state."""

    def __init__(self, data: bytes, key_group_id: int) -> None:
        super().__init__(data)
        self._key_group_id = key_group_id

    def get_key_group_id(self) -> int:
        """Which key group it is."""
        return self._key_group_id
