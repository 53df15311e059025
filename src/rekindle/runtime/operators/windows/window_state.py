"""State per window: handles that make the window's row current for each call, in place of the key's row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rekindle.datastream.functions import KeyedStateStore
from rekindle.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from rekindle.runtime.state.backend import KeyedStateBackend
from rekindle.runtime.state.change_tracking import Row
from rekindle.runtime.state.described_states import keyed_state


class _WindowCalls:
    """Calls methods of a state handle while the window's row is current."""

    def __init__(self, keyed: KeyedStateBackend, row: Callable[[], Row]) -> None:
        self._keyed = keyed
        self._row = row

    def call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method on the window's row."""
        keyed = self._keyed
        outer = keyed.row
        keyed.row = self._row()
        try:
            return method(*arguments)
        finally:
            keyed.row = outer


class _WindowState(State):
    def __init__(self, handle: Any, window: _WindowCalls) -> None:
        self._handle = handle
        self._on_window = window.call

    def clear(self) -> None:
        self._on_window(self._handle.clear)


class _WindowValueState(_WindowState, ValueState[Any]):
    def value(self) -> Any:
        return self._on_window(self._handle.value)

    def update(self, value: Any) -> None:
        self._on_window(self._handle.update, value)


class _WindowAppendingState(_WindowState):
    def get(self) -> Any:
        return self._on_window(self._handle.get)

    def add(self, value: Any) -> None:
        self._on_window(self._handle.add, value)


class _WindowReducingState(_WindowAppendingState, ReducingState[Any]):
    pass


class _WindowAggregatingState(_WindowAppendingState, AggregatingState[Any, Any]):
    pass


class _WindowListState(_WindowAppendingState, ListState[Any]):
    def update(self, values: list[Any]) -> None:
        self._on_window(self._handle.update, values)

    def add_all(self, values: list[Any]) -> None:
        self._on_window(self._handle.add_all, values)


class _WindowMapState(_WindowState, MapState[Any, Any]):
    def get(self, key: Any) -> Any:
        return self._on_window(self._handle.get, key)

    def put(self, key: Any, value: Any) -> None:
        self._on_window(self._handle.put, key, value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        self._on_window(self._handle.put_all, dict_value)

    def remove(self, key: Any) -> None:
        self._on_window(self._handle.remove, key)

    def contains(self, key: Any) -> bool:
        return bool(self._on_window(self._handle.contains, key))

    def items(self) -> Iterable[tuple[Any, Any]]:
        return list(self._on_window(self._handle.items))

    def keys(self) -> Iterable[Any]:
        return list(self._on_window(self._handle.keys))

    def values(self) -> Iterable[Any]:
        return list(self._on_window(self._handle.values))

    def is_empty(self) -> bool:
        return bool(self._on_window(self._handle.is_empty))


class WindowStateStore(KeyedStateStore):
    """Returns state of the window that is being evaluated."""

    def __init__(self, keyed: KeyedStateBackend, row: Callable[[], Row], scoped: Callable[[Any], Any]) -> None:
        self._keyed = keyed
        self._window = _WindowCalls(keyed, row)
        self._scoped = scoped

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return _WindowValueState(keyed_state(self._keyed, self._scoped(state_descriptor)), self._window)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return _WindowListState(keyed_state(self._keyed, self._scoped(state_descriptor)), self._window)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return _WindowMapState(keyed_state(self._keyed, self._scoped(state_descriptor)), self._window)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return _WindowReducingState(keyed_state(self._keyed, self._scoped(state_descriptor)), self._window)

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return _WindowAggregatingState(keyed_state(self._keyed, self._scoped(state_descriptor)), self._window)


class CachedHandles(KeyedStateStore):
    """A store that creates each handle once: window functions ask for their state with every window."""

    def __init__(self, store: KeyedStateStore) -> None:
        self._store = store
        self._known: dict[StateDescriptor, Any] = {}

    def _handle(self, descriptor: StateDescriptor, get: Callable[[Any], Any]) -> Any:
        handle = self._known.get(descriptor)
        if handle is None:
            handle = self._known[descriptor] = get(descriptor)
        return handle

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._handle(state_descriptor, self._store.get_state)  # type: ignore[no-any-return]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._handle(state_descriptor, self._store.get_list_state)  # type: ignore[no-any-return]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._handle(state_descriptor, self._store.get_map_state)  # type: ignore[no-any-return]

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._handle(state_descriptor, self._store.get_reducing_state)  # type: ignore[no-any-return]

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return self._handle(state_descriptor, self._store.get_aggregating_state)  # type: ignore[no-any-return]
