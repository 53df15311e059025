"""Raw state in a slot: the streams that a function writes at the barrier, and the restored bytes that it reads."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rekindle.datastream.functions.raw_state import (
    KeyedStateCheckpointOutputStream,
    KeyGroupStatePartitionStreamProvider,
    OperatorStateCheckpointOutputStream,
    StatePartitionStreamProvider,
)
from rekindle.errors import StateAccessError
from rekindle.runtime.key_hash import key_group


class RawKeyedOutput(KeyedStateCheckpointOutputStream):
    """The stream for raw keyed state of one subtask; in memory until the upload."""

    def __init__(self, key_groups: range, max_parallelism: int) -> None:
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._parts: dict[int, io.BytesIO] = {}
        self._current: int | None = None

    def start_new_key_group(self, key_group_id: int) -> None:
        _check_open(self)
        if key_group_id not in self._key_groups:
            raise StateAccessError(
                f"Raw keyed state of key group {key_group_id} cannot be written here: this subtask has the key groups "
                f"{self._key_groups.start} to {self._key_groups.stop - 1}; assign_to_key_group(key) says a key's."
            )
        if key_group_id in self._parts:
            raise StateAccessError(
                f"Key group {key_group_id} was started before: write all of its raw keyed state at once."
            )
        self._parts[key_group_id] = io.BytesIO()
        self._current = key_group_id

    def get_key_group_list(self) -> range:
        return self._key_groups

    def get_current_key_group(self) -> int | None:
        return self._current

    def is_key_group_already_started(self, key_group_id: int) -> bool:
        return key_group_id in self._parts

    def is_key_group_already_finished(self, key_group_id: int) -> bool:
        return key_group_id in self._parts and key_group_id != self._current

    def assign_to_key_group(self, key: Any) -> int:
        return key_group(key, self._max_parallelism)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        _check_open(self)
        if self._current is None:
            raise StateAccessError("Raw keyed state belongs to a key group: call start_new_key_group(...) first.")
        return self._parts[self._current].write(data)

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """(key group, bytes), by key group."""
        for group in sorted(self._parts):
            yield group, self._parts[group].getvalue()


class RawOperatorOutput(OperatorStateCheckpointOutputStream):
    """The stream for raw operator state of one subtask; in memory until the upload."""

    def __init__(self) -> None:
        self._partitions: list[io.BytesIO] = []

    def start_new_partition(self) -> None:
        _check_open(self)
        self._partitions.append(io.BytesIO())

    def get_number_of_partitions(self) -> int:
        return len(self._partitions)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        _check_open(self)
        if not self._partitions:
            self.start_new_partition()
        return self._partitions[-1].write(data)

    def parts(self) -> Iterator[bytes]:
        """The bytes of each partition."""
        for partition in self._partitions:
            yield partition.getvalue()


def _check_open(stream: io.RawIOBase) -> None:
    if stream.closed:
        raise StateAccessError("Raw state is written in snapshot_state(): its stream is closed afterwards.")


@dataclass
class RawInputs:
    """An operator's restored raw state, until its function has read it."""

    keyed: list[tuple[int, bytes]] = field(default_factory=list)
    operator: list[bytes] = field(default_factory=list)

    def take_keyed(self) -> list[KeyGroupStatePartitionStreamProvider]:
        """Hand the raw keyed state to the function; a second call returns nothing."""
        taken, self.keyed = self.keyed, []
        return [KeyGroupStatePartitionStreamProvider(data, group) for group, data in taken]

    def take_operator(self) -> list[StatePartitionStreamProvider]:
        """Hand the raw operator state to the function; a second call returns nothing."""
        taken, self.operator = self.operator, []
        return [StatePartitionStreamProvider(data) for data in taken]
