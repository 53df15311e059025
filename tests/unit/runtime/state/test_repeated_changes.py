"""A key that leaves the cache again and again stands in one delta several times: the last change counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common.typeinfo import Types
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend
from tests.keyed_backends import BACKENDS, place_of

GROUPS = 1
VALUE = ValueStateDescriptor("value", Types.LONG())
LIST = ListStateDescriptor("list", Types.LONG())
MAP = MapStateDescriptor("map", Types.STRING(), Types.LONG())
Change = Callable[[Any, Any, Any], object]
CHANGES: dict[str, list[Change]] = {
    "set, cleared, set": [
        lambda value, elements, fields: (value.update(1), elements.add(1), fields.put("a", 1)),
        lambda value, elements, fields: (value.clear(), elements.clear(), fields.clear()),
        lambda value, elements, fields: (value.update(2), elements.add(2), fields.put("b", 2)),
    ],
    "set, set, cleared": [
        lambda value, elements, fields: (value.update(1), elements.add(1), fields.put("a", 1)),
        lambda value, elements, fields: (value.update(2), elements.add(2), fields.put("b", 2)),
        lambda value, elements, fields: (value.clear(), elements.clear(), fields.remove("a")),
    ],
}


def without_cache() -> RocksKeyedBackend:
    """Every row leaves at once, and all changes of a segment stay in one part."""
    backend = RocksKeyedBackend(GROUPS, range(GROUPS), place_of(0, 1 << 20), KeyedStateOptions())
    backend._cache.least_rows = 1
    backend._cache.note_sizes([b""], 1)
    return backend


def states_of(backend: KeyedStateBackend) -> tuple[Any, Any, Any]:
    return backend.value_state(VALUE), backend.list_state(LIST), backend.map_state(MAP)


def content(backend: KeyedStateBackend, states: tuple[Any, Any, Any]) -> tuple[Any, list[int], dict[str, int]]:
    backend.set_current_key("k")
    value, elements, fields = states
    return value.value(), list(elements.get()), dict(fields.items())


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("restored", BACKENDS)
def test_the_last_of_several_changes_counts(restored: str, changes: list[Change]) -> None:
    backend = without_cache()
    backend.restore([])
    states = states_of(backend)
    for change in changes:
        backend.set_current_key("k")
        change(*states)
        for other in ("x", "y", "z"):  # the key's row leaves
            backend.set_current_key(other)
    (delta,) = backend.snapshot_delta(1, 0).encode()
    again = BACKENDS[restored](GROUPS, range(GROUPS))
    again.restore([delta])
    assert content(again, states_of(again)) == content(backend, states)
