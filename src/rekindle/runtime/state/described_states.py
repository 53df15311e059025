"""From a state descriptor to its handle: the spec, then the layers that its time to live and its type need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
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
from rekindle.runtime.state.handles import RowAggregatingState, RowReducingState, RowValueState
from rekindle.runtime.state.named_rows import (
    shaped_aggregate,
    shaped_list,
    shaped_map,
    shaped_reduce,
    shaped_reducing,
    shaped_value,
)
from rekindle.runtime.state.spec import (
    StateKind,
    StateSpec,
    aggregating_spec,
    list_spec,
    map_spec,
    reducing_spec,
    value_spec,
)
from rekindle.runtime.state.ttl.expiry import ttl_of
from rekindle.runtime.state.ttl.layer import ExpiringRows, TtlStates


class _Registering(ExpiringRows, Protocol):
    """The parts of a backend that these methods use."""

    _allow_pickle: bool
    _ttl_states: TtlStates

    @property
    def prefetch(self) -> Callable[[Iterable[Any]], None] | None: ...
    def registered(self) -> Iterable[tuple[StateSpec, int]]: ...
    def visiting_keys(self) -> AbstractContextManager[None]: ...
    def set_current_key(self, key: Any) -> None: ...
    def _value_at(self, kind: StateKind, column: int) -> Any: ...


class DescribedStates:
    """The methods of a backend that hand out state by descriptor; the backend's `register` does the rest."""

    __slots__ = ()

    def values_of(self: _Registering, key: Any) -> dict[str, Any]:
        """The values that a key has now, by state, as they are stored; times to live are neither read nor changed."""
        values: dict[str, Any] = {}
        with self.visiting_keys():
            self.set_current_key(key)
            for spec, column in self.registered():
                value = self._value_at(spec.kind, column)
                if value is not None:
                    values[spec.name] = value
        return values

    def _value_at(self: _Registering, kind: StateKind, column: int) -> Any:
        match kind:
            case StateKind.LIST:
                return list(self.list_handle(column).get() or ()) or None
            case StateKind.MAP:
                return dict(self.map_handle(column).items()) or None
            case _:
                return RowValueState(self, column).value()

    def value_state(self: _Registering, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """The handle of a value state."""
        spec, ttl = value_spec(descriptor, self._allow_pickle), ttl_of(descriptor, self.prefetch is not None)
        if ttl is not None:
            return shaped_value(spec, self._ttl_states.value_state(spec, ttl))
        return shaped_value(spec, self.register(spec, lambda column: RowValueState(self, column)))

    def list_state(self: _Registering, descriptor: ListStateDescriptor) -> ListState[Any]:
        """The handle of a list state."""
        spec, ttl = list_spec(descriptor, self._allow_pickle), ttl_of(descriptor, self.prefetch is not None)
        if ttl is not None:
            return shaped_list(spec, self._ttl_states.list_state(spec, ttl))
        return shaped_list(spec, self.register(spec, self.list_handle))

    def map_state(self: _Registering, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """The handle of a map state."""
        spec, ttl = map_spec(descriptor, self._allow_pickle), ttl_of(descriptor, self.prefetch is not None)
        if ttl is not None:
            return shaped_map(spec, self._ttl_states.map_state(spec, ttl))
        return shaped_map(spec, self.register(spec, self.map_handle))

    def reducing_state(self: _Registering, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """The handle of a reducing state."""
        spec, ttl = reducing_spec(descriptor, self._allow_pickle), ttl_of(descriptor, self.prefetch is not None)
        reduce = shaped_reduce(spec.shape, descriptor.get_reduce_function().reduce)
        if ttl is not None:
            return shaped_reducing(spec, self._ttl_states.reducing_state(spec, ttl, reduce))
        return shaped_reducing(spec, self.register(spec, lambda column: RowReducingState(self, column, reduce)))

    def aggregating_state(self: _Registering, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """The handle of an aggregating state."""
        spec, ttl = aggregating_spec(descriptor, self._allow_pickle), ttl_of(descriptor, self.prefetch is not None)
        aggregate = shaped_aggregate(spec.shape, descriptor.get_agg_function())
        if ttl is not None:
            return self._ttl_states.aggregating_state(spec, ttl, aggregate)
        return self.register(spec, lambda column: RowAggregatingState(self, column, aggregate))
