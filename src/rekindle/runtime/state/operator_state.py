"""Operator state: lists (split or union on a rescale) and broadcast maps of a subtask, not of a key."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, TypeVar

from rekindle.checkpoint.part_formats import (
    ListDistribution,
    OperatorStatePart,
    decode_operator_part,
    encode_operator_part,
)
from rekindle.datastream.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    ReadOnlyBroadcastState,
    StateDescriptor,
)
from rekindle.errors import IncompatibleStateError, StateAccessError
from rekindle.runtime.state.evolution import evolved_entries, migrations
from rekindle.runtime.state.keyed_state_format import decoded, encoded
from rekindle.runtime.state.named_rows import shaped_list
from rekindle.runtime.state.spec import UNREADABLE, StateSpec, list_spec, map_spec
from rekindle.runtime.state.ttl.expiry import ttl_of

_LOG: Final = logging.getLogger("rekindle.state")
DescriptorT = TypeVar("DescriptorT", bound=StateDescriptor)


# -- handles -----------------------------------------------------------------------------------------------------------


class OperatorListState(ListState[Any]):
    """A list of this subtask."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def get(self) -> list[Any]:
        """A copy of the list."""
        return self._values.copy()

    def add(self, value: Any) -> None:
        """Append one element."""
        self._values.append(value)

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several elements."""
        self._values.extend(values)

    def update(self, values: Iterable[Any]) -> None:
        """Replace the list."""
        self._values = list(values)

    def clear(self) -> None:
        """Empty the list."""
        self._values = []


class HeapReadOnlyBroadcastState(ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state for the side that may not change it."""

    def __init__(self, spec: StateSpec, entries: dict[Any, Any]) -> None:
        self._name = spec.name
        self._entries = entries
        self._shape, self._shape_key = spec.shape, spec.shape_field

    def get(self, key: Any) -> Any:
        """The value of an entry, or None."""
        return self._entries.get(key if self._shape_key is None else self._shape_key(key))

    def contains(self, key: Any) -> bool:
        """Whether there is such an entry."""
        return (key if self._shape_key is None else self._shape_key(key)) in self._entries

    def items(self) -> list[tuple[Any, Any]]:
        """The entries as they are now."""
        return list(self._entries.items())

    def keys(self) -> list[Any]:
        """The keys as they are now."""
        return list(self._entries)

    def values(self) -> list[Any]:
        """The values as they are now."""
        return list(self._entries.values())

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return not self._entries

    def put(self, key: Any, value: Any) -> None:
        """Raise StateAccessError: only the broadcast side may."""
        self._refuse()

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Raise StateAccessError: only the broadcast side may."""
        self._refuse()

    def remove(self, key: Any) -> None:
        """Raise StateAccessError: only the broadcast side may."""
        self._refuse()

    def clear(self) -> None:
        """Raise StateAccessError: only the broadcast side may."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StateAccessError(
            f"Broadcast state '{self._name}' is read-only here: change it in process_broadcast_element(), "
            "so that every subtask changes it alike."
        )


class HeapBroadcastState(BroadcastState[Any, Any], HeapReadOnlyBroadcastState):
    """Broadcast state for the broadcast side, which may change it."""

    def put(self, key: Any, value: Any) -> None:
        """Set an entry."""
        field = key if self._shape_key is None else self._shape_key(key)
        self._entries[field] = value if self._shape is None else self._shape(value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove an entry, if it is there."""
        self._entries.pop(key if self._shape_key is None else self._shape_key(key), None)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()


# -- backend -----------------------------------------------------------------------------------------------------------


class _Registered:
    """A registered state of this operator: a list, or the dict of a broadcast map."""

    def __init__(self, spec: StateSpec, distribution: ListDistribution) -> None:
        self.spec = spec
        self.distribution = distribution
        self.elements = shaped_list(spec, OperatorListState())
        self.entries: dict[Any, Any] = {}
        self.broadcast = HeapBroadcastState(spec, self.entries)
        self.read_only = HeapReadOnlyBroadcastState(spec, self.entries)

    def check_same(self, spec: StateSpec, distribution: ListDistribution) -> None:
        if distribution is not self.distribution:
            raise StateAccessError(
                f"Operator state '{spec.name}' is already registered as {self.distribution} state; it cannot be "
                f"{distribution} state too: give one of them another name."
            )
        self.spec.check_same(spec)

    def encode(self) -> OperatorStatePart:
        values, fields = self.spec.values, self.spec.fields
        if fields is None:
            data = [encoded(value, values) for value in self.elements.get()]
        else:
            pairs = self.entries.items()
            data = [part for field, value in pairs for part in (encoded(field, fields), encoded(value, values))]
        spec = self.spec
        return OperatorStatePart(spec.name, self.distribution, spec.type_name, data, spec.stored_schema(None))

    def load(self, part: OperatorStatePart) -> None:
        if part.distribution is not self.distribution:
            raise IncompatibleStateError(
                f"Operator state '{part.name}' was saved as {part.distribution} state, but the program registers it as "
                f"{self.distribution} state: give the new one another name."
            )
        migrations(self.spec, part, None)  # refuses a type that cannot be read, by name
        try:
            self._decode(evolved_entries(self.spec, part))
        except UNREADABLE as error:
            raise IncompatibleStateError(
                f"Operator state '{part.name}', saved as {part.distribution} state of {part.type_name}, cannot be read "
                f"as {self.spec.type_name} ({error}): declare the type it was saved with, or give the new state "
                "another name."
            ) from error

    def _decode(self, flat: list[bytes]) -> None:
        values, fields = self.spec.values, self.spec.fields
        if fields is None:
            self.elements.add_all([decoded(data, values) for data in flat])
        else:
            for field, value in zip(flat[::2], flat[1::2], strict=True):
                self.entries[decoded(field, fields)] = decoded(value, values)


class OperatorStateBackend(OperatorStateStore):
    """Operator state of one subtask, in memory. It is small: snapshots are whole and encoded at the cut (I13)."""

    def __init__(self, subtask: int = 0, *, allow_pickle: bool = True) -> None:
        self._subtask = subtask
        self._allow_pickle = allow_pickle
        self._states: dict[str, _Registered] = {}
        # By name; several parts if subtasks wrote them under different schemas.
        self._unclaimed: dict[str, list[OperatorStatePart]] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are spread evenly over the subtasks on a rescale."""
        return self._register(list_spec, state_descriptor, ListDistribution.SPLIT).elements

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements all go to every subtask on a restore."""
        return self._register(list_spec, state_descriptor, ListDistribution.UNION).elements

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map that is the same in every subtask."""
        return self._register(map_spec, state_descriptor, ListDistribution.BROADCAST).broadcast

    def get_read_only_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """The broadcast map for the side that may not change it."""
        return self._register(map_spec, state_descriptor, ListDistribution.BROADCAST).read_only

    @property
    def allow_pickle(self) -> bool:
        """Whether values of undeclared types may be pickled."""
        return self._allow_pickle

    def unclaimed_names(self) -> list[str]:
        """The restored states that are not registered; snapshots carry them along."""
        return list(self._unclaimed)

    def registered_names(self) -> set[str]:
        """The names of all states, registered or restored."""
        return {*self._states, *self._unclaimed}

    def snapshot(self) -> bytes:
        """Encode all states."""
        carried = [
            part
            for parts in self._unclaimed.values()
            for part in parts
            # Every subtask has all elements of a union list: one subtask carries it along.
            if part.distribution is not ListDistribution.UNION or self._subtask == 0
        ]
        return encode_operator_part([*carried, *(state.encode() for state in self._states.values())])

    def restore(self, data: bytes) -> None:
        """Restore this subtask's share (`redistribute.operator_share`); states are decoded when they are registered."""
        assert not self._states, "restore comes before registration"
        for part in decode_operator_part(data):
            self._unclaimed.setdefault(part.name, []).append(part)

    def _register(
        self, spec_of: Callable[[DescriptorT, bool], StateSpec], descriptor: DescriptorT, distribution: ListDistribution
    ) -> _Registered:
        spec = spec_of(descriptor, self._allow_pickle)
        known = self._states.get(spec.name)
        if known is not None:
            known.check_same(spec, distribution)
            return known
        if ttl_of(descriptor) is not None and self._subtask == 0:
            _LOG.warning(
                "State '%s' has a time to live, but it is %s state of the operator: as in Flink only keyed state "
                "expires, this one stays until it is removed.",
                spec.name,
                distribution,
            )
        state = _Registered(spec, distribution)
        for part in self._unclaimed.get(spec.name, ()):
            state.load(part)
        self._unclaimed.pop(spec.name, None)
        self._states[spec.name] = state
        return state
