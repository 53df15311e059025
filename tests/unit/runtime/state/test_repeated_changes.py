"""A key that leaves the cache again and again stands in one delta several times: the last change counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID
from weakref import ref

import pytest

from rekindle.common.typeinfo import Types
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.change_tracking import ROW_KEY
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend
from tests.support.keyed_backends import BACKENDS, place_of

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
    return keyed_state(backend, VALUE), keyed_state(backend, LIST), keyed_state(backend, MAP)


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


def test_a_row_that_has_left_the_cache_is_in_nobodys_memory_also_after_a_checkpoint() -> None:
    """Rows that are not written yet keep the marks of the checkpoint, and with them everything that these hold."""
    backend = RocksKeyedBackend(GROUPS, range(GROUPS), place_of(0, 1 << 20), KeyedStateOptions())
    backend._cache.least_rows = 4
    backend._cache.note_sizes([b""], 1)
    value = keyed_state(backend, VALUE)
    keys = [UUID(int=number) for number in range(8)]
    living = [ref(key) for key in keys]
    for key in keys:
        backend.set_current_key(key)
        value.update(1)
    del key, keys
    assert len(list(backend.snapshot_delta(1, None).encode())) == 1
    backend.snapshot_completed(1)
    for number in range(100, 104):
        backend.set_current_key(UUID(int=number))
    cached = {row[ROW_KEY] for row in backend._cache.rows()}
    known = {found for alive in living if (found := alive()) is not None}
    assert known == {key for key in cached if key.int < 8}
    assert 0 < len(known) < 8
