"""The layer over state whose type contains rows: written rows get the field names of the type, as after a restore.

The layer knows no backend and no time to live: both are below it. State without rows has no such layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rekindle.common.type_system.type_information import Converter
from rekindle.datastream.state import ListState, MapState, ReducingState, ValueState
from rekindle.runtime.state.handles import AggregateLike
from rekindle.runtime.state.spec import StateSpec


def shaped_value(spec: StateSpec, inner: ValueState[Any]) -> ValueState[Any]:
    """Add the layer that the value state's type needs."""
    return inner if spec.shape is None else ShapedValueState(inner, spec.shape)


def shaped_list(spec: StateSpec, inner: ListState[Any]) -> ListState[Any]:
    """Add the layer that the list state's type needs."""
    return inner if spec.shape is None else ShapedListState(inner, spec.shape)


def shaped_map(spec: StateSpec, inner: MapState[Any, Any]) -> MapState[Any, Any]:
    """Add the layer that the map state's types need."""
    if spec.shape is None and spec.shape_field is None:
        return inner
    return ShapedMapState(inner, spec.shape_field or _same, spec.shape or _same)


def shaped_reducing(spec: StateSpec, inner: ReducingState[Any]) -> ReducingState[Any]:
    """Add the layer that the reducing state's type needs."""
    return inner if spec.shape is None else ShapedReducingState(inner, spec.shape)


def shaped_reduce(shape: Converter | None, reduce: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A reduce function whose results have the field names of their type."""
    return reduce if shape is None else lambda value1, value2: shape(reduce(value1, value2))


def shaped_aggregate(shape: Converter | None, aggregate: AggregateLike) -> AggregateLike:
    """An aggregate function whose accumulators have the field names of their type."""
    return aggregate if shape is None else ShapedAggregate(aggregate, shape)


def _same(value: Any) -> Any:
    return value


class ShapedValueState(ValueState[Any]):
    """One value per key, with rows in it."""

    __slots__ = ("_inner", "_shape")

    def __init__(self, inner: ValueState[Any], shape: Converter) -> None:
        self._inner = inner
        self._shape = shape

    def value(self) -> Any:
        """The current key's value, or None."""
        return self._inner.value()

    def update(self, value: Any) -> None:
        """Set the current key's value; None clears it."""
        self._inner.update(self._shape(value))

    def clear(self) -> None:
        """Remove the current key's value."""
        self._inner.clear()


class ShapedReducingState(ReducingState[Any]):
    """One value per key with rows in it, combined with each added one (by `shaped_reduce`)."""

    __slots__ = ("_inner", "_shape")

    def __init__(self, inner: ReducingState[Any], shape: Converter) -> None:
        self._inner = inner
        self._shape = shape

    def get(self) -> Any:
        """The reduced value of the current key, or None."""
        return self._inner.get()

    def add(self, value: Any) -> None:
        """Combine a value into the current key's."""
        self._inner.add(self._shape(value))

    def clear(self) -> None:
        """Remove the current key's value."""
        self._inner.clear()


class ShapedAggregate:
    """An aggregate function whose accumulators have rows in them."""

    def __init__(self, inner: AggregateLike, shape: Converter) -> None:
        self._inner = inner
        self._shape = shape

    def create_accumulator(self) -> Any:
        """The accumulator before the first value."""
        return self._shape(self._inner.create_accumulator())

    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with one more value."""
        return self._shape(self._inner.add(value, accumulator))

    def get_result(self, accumulator: Any) -> Any:
        """The result of an accumulator."""
        return self._inner.get_result(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Merge two accumulators."""
        return self._shape(self._inner.merge(acc_a, acc_b))


class ShapedListState(ListState[Any]):
    """A list per key, or of an operator, with rows in it."""

    __slots__ = ("_shape", "inner")

    def __init__(self, inner: ListState[Any], shape: Converter) -> None:
        #: The list below.
        self.inner = inner
        self._shape = shape

    def get(self) -> Iterable[Any]:
        """A copy of the list; empty when there is none."""
        return self.inner.get()

    def add(self, value: Any) -> None:
        """Append one element."""
        self.inner.add(self._shape(value))

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several elements."""
        self.inner.add_all(list(map(self._shape, values)))

    def update(self, values: Iterable[Any]) -> None:
        """Replace the list; an empty one clears it."""
        self.inner.update(list(map(self._shape, values)))

    def clear(self) -> None:
        """Remove the list."""
        self.inner.clear()


class ShapedMapState(MapState[Any, Any]):
    """A map per key with rows in its keys or values."""

    __slots__ = ("_inner", "_shape_key", "_shape_value")

    def __init__(self, inner: MapState[Any, Any], shape_key: Converter, shape_value: Converter) -> None:
        self._inner = inner
        self._shape_key = shape_key
        self._shape_value = shape_value

    def get(self, key: Any) -> Any:
        """The value of an entry, or None."""
        return self._inner.get(self._shape_key(key))

    def contains(self, key: Any) -> bool:
        """Whether there is such an entry."""
        return self._inner.contains(self._shape_key(key))

    def put(self, key: Any, value: Any) -> None:
        """Set an entry; None is a value like any other."""
        self._inner.put(self._shape_key(key), self._shape_value(value))

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        self._inner.put_all({self._shape_key(key): self._shape_value(value) for key, value in dict_value.items()})

    def remove(self, key: Any) -> None:
        """Remove an entry, if it is there."""
        self._inner.remove(self._shape_key(key))

    def items(self) -> Iterable[tuple[Any, Any]]:
        """The entries as they are now."""
        return self._inner.items()

    def keys(self) -> Iterable[Any]:
        """The keys as they are now: changing the map while iterating is safe."""
        return self._inner.keys()

    def values(self) -> Iterable[Any]:
        """The values as they are now."""
        return self._inner.values()

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return self._inner.is_empty()

    def clear(self) -> None:
        """Remove all entries."""
        self._inner.clear()
