"""State: handles for user functions, descriptors and time to live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from rekindle.datastream.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rekindle.datastream.state_ttl import StateTtlConfig

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Base of all state. State belongs to an operator; keyed state belongs to the current key, too."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the value of the current key."""


class ValueState(State, Generic[T]):
    """A single value.

    After changing the value in place, call `update`: a checkpoint contains the values written since the one before,
    and may miss a change in place.
    """

    @abstractmethod
    def value(self) -> T | None:
        """Return the value, or None if there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Set the value. None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State to which values are added."""

    @abstractmethod
    def get(self) -> OUT:
        """Return the result of the values added so far."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add one value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state that can be merged with another one, as when windows merge."""


class ReducingState(MergingState[T, T]):
    """A value that a `ReduceFunction` combines with each added value."""


class AggregatingState(MergingState[IN, OUT]):
    """A result that an `AggregateFunction` computes from all added values."""


class ListState(MergingState[T, Iterable[T]]):
    """A list. Iterating over the state is the same as iterating over `get()`."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append several values."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapState(State, Generic[K, V]):
    """A map whose entries are read and written one by one. After changing a value in place, `put` it again."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of an entry, or None if there is none."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set one entry."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set several entries."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove one entry."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether the map has an entry with this key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return the keys of all entries."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return the values of all entries."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether the map has no entries."""

    def get_internal_state(self) -> MapState[K, V]:
        """Return the state itself: in PyFlink it is the implementation below, with the same methods."""
        return self

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Any:
        return iter(self.keys())


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """Broadcast state for elements that are not broadcast. They may only read it."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of an entry, or None if there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether the map has an entry with this key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return the keys of all entries."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return the values of all entries."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether the map has no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Any:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """Broadcast state for broadcast elements. They must change it in the same way on every subtask."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set one entry."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set several entries."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove one entry."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class OperatorStateStore(ABC):
    """Returns handles of operator state, which belongs to a subtask, not to a key."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return a map that is the same on every subtask."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list whose elements a restore distributes evenly over the subtasks."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list of which every subtask gets all elements on a restore."""
