"""The port of keyed state: what an operator and the snapshot need of a backend, whatever it keeps its rows in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

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
from rekindle.runtime.state.deferred import Deferred
from rekindle.runtime.state.format import CapturedGroup, CapturedState
from rekindle.runtime.state.spec import Codec


class Delta:
    """What changed since a completed snapshot, taken at the cut: one captured part per key group that changed."""

    __slots__ = ("_deferred", "_groups", "_key_codec", "whole")

    def __init__(
        self,
        groups: dict[int, CapturedGroup],
        whole: list[CapturedGroup],
        deferred: list[Deferred[dict[int, CapturedState]]],
        key_codec: Codec,
    ) -> None:
        #: Key groups that are written whole instead.
        self.whole = whole
        self._groups = groups
        self._deferred = deferred
        self._key_codec = key_codec

    @property
    def groups(self) -> list[CapturedGroup]:
        """The key groups that changed, in order."""
        while self._deferred:
            for group, state in self._deferred.pop().result().items():
                if group not in self._groups:
                    self._groups[group] = CapturedGroup(group, self._key_codec)
                self._groups[group].states.append(state)
        return [self._groups[group] for group in sorted(self._groups)]

    def encode(self) -> Iterator[tuple[int, bytes]]:
        """(key group, part), ready for the store; may run on another thread while processing goes on."""
        for group in self.groups:
            yield group.key_group, group.encode()


class KeyedStateBackend(Protocol):
    """Keyed state of one operator in one subtask. All but `Delta.encode` is called on the task's thread."""

    key_groups: range

    def set_current_key(self, key: Any) -> None:
        """Handles work on this key from now on."""

    def current_key(self) -> Any:
        """The key that handles work on; StateAccessError when there is none."""

    def clear_current_key(self) -> None:
        """No key any more: handles refuse to work."""

    def keys(self) -> Iterator[Any]:
        """The keys that have state, by key group; handling one may change its state."""

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """A handle, the same for the same name; holds what was restored under that name."""

    def snapshot_delta(self, snapshot_id: int, since_completed_id: int | None, whole: Iterable[int] = ()) -> Delta:
        """Cut: what changed since the completed snapshot, some key groups whole; costs what changed."""

    def snapshot_whole(self, snapshot_id: int) -> list[CapturedGroup]:
        """Cut: everything, on top of nothing."""

    def snapshot_aside(self, snapshot_id: int) -> list[CapturedGroup]:
        """Everything, for a snapshot on which nothing will stand: the next delta is as if it had not been."""

    def snapshot_completed(self, snapshot_id: int) -> None:
        """The snapshot is durable: later deltas stand on it."""

    def snapshot_aborted(self, snapshot_id: int) -> None:
        """As if it had never been triggered: the next delta covers more."""

    def snapshot_full(self, key_groups: Iterable[int] | None = None) -> Iterator[CapturedGroup]:
        """Whole key groups, one at a time; changes stay tracked. Take all before the next element is processed."""

    def forget_changes(self) -> None:
        """No snapshot will ask for what changed so far (end of an epoch without checkpointing)."""

    def restore(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Load (key group, part): for each key group the full part first, then its deltas in order."""
