"""Tables show what a job would restore: timers and state of a full part, changed by its deltas."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest

from rekindle.checkpoint.manifest import KeyedPart, Manifest, ManifestKind, OperatorState, PartKind, SubtaskState
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.common import Types
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.errors import TypeMismatchError
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.keyed_state_format import GroupPieces
from rekindle.runtime.state.rocksdb import stored_states, whole_capture
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend, RocksPlace
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.timer_parts import CapturedTimers, TimerLists
from rekindle.serde import value_codec_for
from rekindle.snapshots.find_snapshot import Snapshot
from rekindle.snapshots.table import ReadOptions
from rekindle.snapshots.tables import TableName, table_of

GROUPS = 4
TEXT = value_codec_for(Types.STRING())


def snapshot_of(**parts):
    """A checkpoint of one operator; the parts lie in its manifest."""
    manifest = Manifest(ManifestKind.CHECKPOINT, 2, "", "job", "", 1, 0)
    operator = OperatorState("op", "op", 1, GROUPS, [SubtaskState(0, **parts)])
    manifest.operators.append(operator)
    return Snapshot(MemoryStore(), manifest, "chk-2", "")


def rows(snapshot, table, **options):
    planned = table_of(snapshot, table, "op", ReadOptions(**options))
    return [row for split in planned.splits() for row in planned.rows(split)]


def timer_parts(order, kind, *lists):
    encoded = CapturedTimers(TimerLists(*lists), GROUPS, TEXT, value_codec_for(None)).encode()
    return [KeyedPart(group, kind, order, data) for group, data in encoded]


def test_timers_that_a_delta_removed_are_gone():
    full = timer_parts(1, PartKind.FULL, [(5, "a", None), (6, "a", None), (5, "b", None)], [(7, "a", None)])
    delta = timer_parts(2, PartKind.DELTA, [(9, "b", None)], [], [(5, "a", None)], [(7, "a", None)])
    found = rows(snapshot_of(timers=full + delta), TableName.TIMERS)
    assert sorted(found) == sorted(
        (key_group(key, GROUPS), key, "event", time) for key, time in (("a", 6), ("b", 5), ("b", 9))
    )


def test_deltas_change_values_lists_and_maps_and_remove_keys():
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS), key_codec=TEXT)
    value = keyed_state(backend, ValueStateDescriptor("value", Types.LONG()))
    elements = keyed_state(backend, ListStateDescriptor("elements", Types.LONG()))
    entries = keyed_state(backend, MapStateDescriptor("entries", Types.STRING(), Types.LONG()))
    for key in "abc":
        backend.set_current_key(key)
        value.update(1)
        elements.add(1)
        entries.put_all({"x": 1, "y": 2})
    full = [KeyedPart(each.key_group, PartKind.FULL, 1, each.encode()) for each in backend.snapshot_whole(1)]
    backend.snapshot_completed(1)
    backend.set_current_key("a")
    value.update(2)
    elements.add(3)
    entries.remove("x")
    backend.set_current_key("b")
    for each in (value, elements, entries):
        each.clear()
    delta = [KeyedPart(group, PartKind.DELTA, 2, data) for group, data in backend.snapshot_delta(2, 1).encode()]
    found = rows(snapshot_of(keyed=full + delta), TableName.KEYED_STATE)
    assert sorted(found, key=lambda row: row[1]) == [
        (key_group("a", GROUPS), "a", 2, [1, 3], [("y", 2)]),
        (key_group("c", GROUPS), "c", 1, [1], [("x", 1), ("y", 2)]),
    ]
    assert rows(snapshot_of(keyed=full), TableName.KEYED_STATE, states=("value",), key=("b",)) == [
        (key_group("b", GROUPS), "b", 1)
    ]


@dataclass(frozen=True)
class Total:
    count: int


OldTotal = Total


@dataclass(frozen=True)
class Total:  # type: ignore[no-redef]  # the next version of the program
    count: float
    currency: str = "EUR"
    note: str | None = None


def test_every_state_can_be_shown_as_json():
    backend = HashMapKeyedBackend(GROUPS, range(GROUPS), key_codec=TEXT)
    price = keyed_state(backend, ValueStateDescriptor("price", Types.BIG_DEC()))
    seen = keyed_state(backend, MapStateDescriptor("seen", Types.STRING(), Types.LIST(Types.LONG())))
    backend.set_current_key("a")
    price.update(Decimal("0." + "1" * 40))
    seen.put("x", [1, 2])
    parts = [KeyedPart(each.key_group, PartKind.FULL, 1, each.encode()) for each in backend.snapshot_whole(1)]
    with pytest.raises(TypeMismatchError, match="json=True"):
        rows(snapshot_of(keyed=parts), TableName.KEYED_STATE)
    ((_, _, shown, entries),) = rows(snapshot_of(keyed=parts), TableName.KEYED_STATE, all_as_json=True)
    assert shown == f'"0.{"1" * 40}"'
    assert entries == [('"x"', "[1,2]")]


def test_parts_before_and_after_a_change_of_the_type_are_one_table():
    """A key that was not touched since has the fields that it was saved with."""
    old = HashMapKeyedBackend(GROUPS, range(GROUPS), key_codec=TEXT)
    total = keyed_state(old, ValueStateDescriptor("total", OldTotal))
    for key in "ab":
        old.set_current_key(key)
        total.update(OldTotal(1))
    full = [(each.key_group, each.encode()) for each in old.snapshot_whole(1)]
    new = HashMapKeyedBackend(GROUPS, range(GROUPS), key_codec=TEXT)
    new.restore(full)
    total = keyed_state(new, ValueStateDescriptor("total", Total))
    new.set_current_key("a")
    total.update(Total(2.5, "CHF"))
    delta = list(new.snapshot_delta(2, 1).encode())
    parts = [
        KeyedPart(group, kind, order, data)
        for order, kind, own in ((1, PartKind.FULL, full), (2, PartKind.DELTA, delta))
        for group, data in own
    ]
    found = {row[1]: row[2] for row in rows(snapshot_of(keyed=parts), TableName.KEYED_STATE)}
    assert found == {
        "a": {"count": 2.5, "currency": "CHF", "note": None},
        "b": {"count": 1.0, "currency": None, "note": None},
    }


def test_a_large_key_group_of_rocksdb_in_pieces_is_one_table(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_states, "_PART_ENTRIES", 3)
    monkeypatch.setattr(whole_capture, "_LARGE_BYTES", 10)
    database = ScratchDatabase(tmp_path, MemoryShares.of(8 << 20))
    place = RocksPlace(database, 1, 1 << 20, 1 << 20)
    backend = RocksKeyedBackend(GROUPS, range(GROUPS), place, KeyedStateOptions(), key_codec=TEXT)
    value = keyed_state(backend, ValueStateDescriptor("value", Types.LONG()))
    for number in range(50):
        backend.row = backend.load_row(f"key {number}")
        value.update(number)
    captured = [(each.key_group, each.encode()) for each in backend.snapshot_whole(1)]
    assert all(isinstance(part, GroupPieces) and len(list(part)) > 3 for _, part in captured)
    full = [KeyedPart(group, PartKind.FULL, 1, b"".join(part)) for group, part in captured]
    database.close()
    found = rows(snapshot_of(keyed=full), TableName.KEYED_STATE)
    assert sorted(found, key=lambda row: row[2]) == [
        (key_group(f"key {number}", GROUPS), f"key {number}", number) for number in range(50)
    ]
