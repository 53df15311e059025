"""From a state descriptor to its handle over a backend: the spec, then the layers of its time to live and its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

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
from rekindle.runtime.state.ttl.cleanup import Expiry, FullSnapshotCleanup, IncrementalCleanup, ListExpiry, MapExpiry
from rekindle.runtime.state.ttl.expiring_handles import (
    Access,
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
)
from rekindle.runtime.state.ttl.expiry import TtlSettings, timed_spec, ttl_of

DescriptorT = TypeVar("DescriptorT", bound=StateDescriptor)


@overload
def keyed_state(backend: KeyedStateBackend, descriptor: ValueStateDescriptor) -> ValueState[Any]: ...
@overload
def keyed_state(backend: KeyedStateBackend, descriptor: ListStateDescriptor) -> ListState[Any]: ...
@overload
def keyed_state(backend: KeyedStateBackend, descriptor: MapStateDescriptor) -> MapState[Any, Any]: ...
@overload
def keyed_state(backend: KeyedStateBackend, descriptor: ReducingStateDescriptor) -> ReducingState[Any]: ...
@overload
def keyed_state(backend: KeyedStateBackend, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]: ...
@overload
def keyed_state(backend: KeyedStateBackend, descriptor: StateDescriptor) -> State: ...
def keyed_state(backend: KeyedStateBackend, descriptor: StateDescriptor) -> State:
    """The handle of a keyed state, the same for the same name; it holds the values restored under that name."""
    match descriptor:
        case ValueStateDescriptor():
            return _value_state(backend, _spec(backend, descriptor, value_spec))
        case ListStateDescriptor():
            return _list_state(backend, _spec(backend, descriptor, list_spec))
        case MapStateDescriptor():
            return _map_state(backend, _spec(backend, descriptor, map_spec))
        case ReducingStateDescriptor():
            reduce = descriptor.get_reduce_function().reduce
            return _reducing_state(backend, _spec(backend, descriptor, reducing_spec), reduce)
        case AggregatingStateDescriptor():
            aggregate = descriptor.get_agg_function()
            return _aggregating_state(backend, _spec(backend, descriptor, aggregating_spec), aggregate)
    raise AssertionError(f"{descriptor!r} describes no keyed state")


def values_of(backend: KeyedStateBackend, key: Any) -> dict[str, Any]:
    """The values that a key has now, by state, as they are stored; times to live are neither read nor changed."""
    values: dict[str, Any] = {}
    with backend.visiting_keys():
        backend.set_current_key(key)
        for spec, column in backend.registered():
            value = _value_at(backend, spec.kind, column)
            if value is not None:
                values[spec.name] = value
    return values


def _value_at(backend: KeyedStateBackend, kind: StateKind, column: int) -> Any:
    match kind:
        case StateKind.LIST:
            return list(backend.list_handle(column).get() or ()) or None
        case StateKind.MAP:
            return dict(backend.map_handle(column).items()) or None
        case _:
            return RowValueState(backend, column).value()


def _spec(
    backend: KeyedStateBackend, descriptor: DescriptorT, untimed: Callable[[DescriptorT, bool], StateSpec]
) -> StateSpec:
    """The spec of a descriptor; with a time to live, of pairs of the last access and the value."""
    spec, ttl = untimed(descriptor, backend.options.allow_pickle), ttl_of(descriptor, on_disk=not backend.in_memory)
    return spec if ttl is None else timed_spec(spec, ttl, backend.options.clock.wall_ms)


def _value_state(backend: KeyedStateBackend, spec: StateSpec) -> ValueState[Any]:
    def over(column: int) -> ValueState[Any]:
        cell = RowValueState(backend, column)
        if spec.ttl is None:
            return cell
        return TtlValueState(cell, spec.ttl, _access(backend, Expiry(backend, column, cell), spec.ttl))

    return shaped_value(spec, backend.register(spec, over))


def _list_state(backend: KeyedStateBackend, spec: StateSpec) -> ListState[Any]:
    def over(column: int) -> ListState[Any]:
        elements = backend.list_handle(column)
        if spec.ttl is None:
            return elements
        return TtlListState(elements, spec.ttl, _access(backend, ListExpiry(backend, column, elements), spec.ttl))

    return shaped_list(spec, backend.register(spec, over))


def _map_state(backend: KeyedStateBackend, spec: StateSpec) -> MapState[Any, Any]:
    def over(column: int) -> MapState[Any, Any]:
        entries = backend.map_handle(column)
        if spec.ttl is None:
            return entries
        return TtlMapState(entries, spec.ttl, _access(backend, MapExpiry(backend, column, entries), spec.ttl))

    return shaped_map(spec, backend.register(spec, over))


def _reducing_state(backend: KeyedStateBackend, spec: StateSpec, function: Callable[[Any, Any], Any]) -> State:
    reduce = shaped_reduce(spec.shape, function)

    def over(column: int) -> ReducingState[Any]:
        if spec.ttl is None:
            return RowReducingState(backend, column, reduce)
        cell = RowValueState(backend, column)
        return TtlReducingState(cell, spec.ttl, _access(backend, Expiry(backend, column, cell), spec.ttl), reduce)

    return shaped_reducing(spec, backend.register(spec, over))


def _aggregating_state(backend: KeyedStateBackend, spec: StateSpec, function: Any) -> State:
    aggregate = shaped_aggregate(spec.shape, function)

    def over(column: int) -> AggregatingState[Any, Any]:
        if spec.ttl is None:
            return RowAggregatingState(backend, column, aggregate)
        cell = RowValueState(backend, column)
        return TtlAggregatingState(cell, spec.ttl, _access(backend, Expiry(backend, column, cell), spec.ttl), aggregate)

    return backend.register(spec, over)


def _access(backend: KeyedStateBackend, expiry: Expiry, ttl: TtlSettings) -> Access:
    """Start the cleanup of a new state; returns the function that its handle calls at each access."""
    now_ms = backend.options.clock.wall_ms
    if ttl.cleans_full_snapshots:
        backend.before_full_snapshots(FullSnapshotCleanup(expiry, ttl.ttl_ms, now_ms))
    if not ttl.cleanup_size:
        return now_ms
    cleanup = IncrementalCleanup(backend, expiry, ttl.cleanup_size, ttl.ttl_ms, now_ms)
    if ttl.cleans_with_every_key:
        backend.with_every_key(cleanup.access)
    return cleanup.access
