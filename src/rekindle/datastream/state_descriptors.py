"""State descriptors: names and types of state. Users import them from `rekindle.datastream.state`, as in PyFlink."""

from __future__ import annotations

import copy
from abc import ABC
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rekindle.common.serializer import TypeSerializer
from rekindle.common.typeinfo import TypeInformation, Types, infer_type_info
from rekindle.datastream.state_ttl import StateTtlConfig
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.functions.simple import AggregateFunction, ReduceFunction


#: The prefix of the names of the engine's own state, so that they never clash with users' names.
RESERVED_PREFIX: Final = "rekindle:"


class StateDescriptor(ABC):
    """The name of a state, unique within its function, and the type of its values."""

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        if not isinstance(name, str) or not name:
            raise GraphError(f"{type(self).__name__} needs a name: a non-empty string, not {name!r}.")
        if name.startswith(RESERVED_PREFIX):
            raise GraphError(
                f"State '{name}': names that begin with '{RESERVED_PREFIX}' belong to Rekindle's own state: choose "
                "another one."
            )
        self.name = name
        self.type_info = type_info
        self._ttl_config: StateTtlConfig | None = None
        self._serializer: TypeSerializer[Any] | None = None

    def get_name(self) -> str:
        """Return the state's name."""
        return self.name

    def get_type_info(self) -> TypeInformation:
        """Return the type of the state's values."""
        return self.type_info

    def set_serializer(self, serializer: TypeSerializer[Any]) -> None:
        """Let a serializer of your own write the state's values, in place of their type's encoding.

        The checkpoint knows it by its name and version (`rekindle.common.TypeSerializer`). State that was saved without
        it is read by the declared type. In a list state it writes each element, in a map state each value. It may be
        called on another thread than the function, so it must not change itself.
        """
        self._serializer = self._checked_serializer(serializer)

    def get_serializer(self) -> TypeSerializer[Any] | None:
        """Return the serializer of the values, or None if their type's encoding is used."""
        return self._serializer

    def _checked_serializer(self, serializer: TypeSerializer[Any]) -> TypeSerializer[Any]:
        if not isinstance(serializer, TypeSerializer):
            raise GraphError(f"State '{self.name}': set_serializer takes a TypeSerializer, not {serializer!r}.")
        return serializer

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let the state's values expire."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise GraphError(f"State '{self.name}': enable_time_to_live takes a StateTtlConfig, not {ttl_config!r}.")
        self._ttl_config = ttl_config

    def get_ttl_config(self) -> StateTtlConfig | None:
        """Return the time-to-live configuration, or None if it is not enabled."""
        return self._ttl_config

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, StateDescriptor)
            and (self.name, self.type_info, self._serializer) == (other.name, other.type_info, other._serializer)
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"


class ValueStateDescriptor(StateDescriptor):
    """Describes a `ValueState`.

    >>> ValueStateDescriptor("count", int).get_name()
    'count'
    """

    def __init__(self, name: str, value_type_info: Any) -> None:
        super().__init__(name, infer_type_info(value_type_info))


class ListStateDescriptor(StateDescriptor):
    """Describes a `ListState`; `elem_type_info` is the type of one element.

    >>> ListStateDescriptor("recent", float).get_name()
    'recent'
    """

    def __init__(self, name: str, elem_type_info: Any) -> None:
        self.elem_type_info = infer_type_info(elem_type_info)
        super().__init__(name, Types.LIST(self.elem_type_info))


class MapStateDescriptor(StateDescriptor):
    """Describes a `MapState` or a broadcast state.

    >>> MapStateDescriptor("stock", str, int).get_name()
    'stock'
    """

    def __init__(self, name: str, key_type_info: Any, value_type_info: Any) -> None:
        self.key_type_info = infer_type_info(key_type_info)
        self.value_type_info = infer_type_info(value_type_info)
        super().__init__(name, Types.MAP(self.key_type_info, self.value_type_info))
        self._key_serializer: TypeSerializer[Any] | None = None

    def set_key_serializer(self, serializer: TypeSerializer[Any]) -> None:
        """Let a serializer of your own write the keys of the map; see `set_serializer` for its values."""
        self._key_serializer = self._checked_serializer(serializer)

    def get_key_serializer(self) -> TypeSerializer[Any] | None:
        """Return the serializer of the map's keys, or None if their type's encoding is used."""
        return self._key_serializer


class ReducingStateDescriptor(StateDescriptor):
    """Describes a `ReducingState`. `reduce_function` is a `ReduceFunction` or a callable of two values.

    >>> ReducingStateDescriptor("sum", lambda a, b: a + b, int).get_reduce_function().reduce(1, 2)
    3
    """

    def __init__(self, name: str, reduce_function: ReduceFunction | Callable[[Any, Any], Any], type_info: Any) -> None:
        from rekindle.datastream.functions.simple import ReduceFunction
        from rekindle.datastream.validation import check_callable

        super().__init__(name, infer_type_info(type_info))
        if not isinstance(reduce_function, ReduceFunction):
            check_callable(f"ReducingStateDescriptor '{name}'", reduce_function, 2, "a ReduceFunction")
            reduce_function = _reduce_function(reduce_function)
        self._reduce_function: ReduceFunction = reduce_function

    def get_reduce_function(self) -> ReduceFunction:
        """Return the function that combines the values."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Describes an `AggregatingState`. `state_type_info` is the type of the function's accumulator."""

    def __init__(self, name: str, agg_function: AggregateFunction, state_type_info: Any) -> None:
        from rekindle.datastream.functions.simple import AggregateFunction

        super().__init__(name, infer_type_info(state_type_info))
        if not isinstance(agg_function, AggregateFunction):
            raise GraphError(f"AggregatingStateDescriptor '{name}' takes an AggregateFunction, not {agg_function!r}.")
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        """Return the function that combines the values."""
        return self._agg_function


def _reduce_function(function: Callable[[Any, Any], Any]) -> ReduceFunction:
    from rekindle.datastream.aggregations import CallableReduceFunction

    return CallableReduceFunction(function)


DescriptorT = TypeVar("DescriptorT", bound=StateDescriptor)


def reserved(descriptor: DescriptorT, scope: str = "") -> DescriptorT:
    """Return a copy of the descriptor with a name that users cannot use. `scope` separates equal names of the engine.

    >>> reserved(ValueStateDescriptor("count", int), "trigger:").name
    'rekindle:trigger:count'
    """
    renamed = copy.copy(descriptor)
    renamed.name = f"{RESERVED_PREFIX}{scope}{descriptor.name}"
    return renamed
