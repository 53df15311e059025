"""A slot's memory for RocksDB keeps to its budget: rows, deltas and whole key groups in small portions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.common import Types
from rekindle.datastream.state import ListStateDescriptor, ValueStateDescriptor
from rekindle.errors import StateBackendError
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.runtime.state.keyed_state_format import GroupPieces
from rekindle.runtime.state.rocksdb import rocks_backend, stored_states, whole_capture
from rekindle.runtime.state.rocksdb.group_spill import GroupSpill
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend, RocksPlace
from rekindle.runtime.state.rocksdb.row_cache import RowCache
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from tests.unit.runtime.state.fake_disk import Disk

TEXT = ValueStateDescriptor("text", Types.STRING())
LOG_BYTES = 2 << 10
KEYS = 400


@pytest.fixture
def database(tmp_path: Path) -> Iterator[ScratchDatabase]:
    opened = ScratchDatabase(tmp_path, MemoryShares.of(8 << 20))
    yield opened
    opened.close()


@pytest.fixture
def keyed(database: ScratchDatabase) -> RocksKeyedBackend:
    backend = RocksKeyedBackend(4, range(4), RocksPlace(database, 1, 1 << 20, LOG_BYTES), KeyedStateOptions())
    update(backend, "first")
    return backend


def update(backend: RocksKeyedBackend, word: str) -> None:
    state = keyed_state(backend, TEXT)
    for key in range(KEYS):
        backend.row = backend.load_row(key)
        state.update(f"{word} of {key}")


def restored(parts: list[tuple[int, Any]]) -> dict[int, str | None]:
    """Write parts as a checkpoint does, and read them into the in-memory backend."""
    store = MemoryStore()
    written = StateFileWriter(store, "job", "shared/state", inline_bytes=0).write(parts)
    data = store.read("job/shared/state")
    backend = HashMapKeyedBackend(4, range(4))
    backend.restore([(group, data[blob.offset : blob.offset + blob.length]) for group, blob in written])  # type: ignore[union-attr]
    state, found = keyed_state(backend, TEXT), {}
    for key in range(KEYS):
        backend.row = backend.load_row(key)
        found[key] = state.value()
    return found


def test_a_large_key_group_is_written_in_pieces(keyed: RocksKeyedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_states, "_PART_ENTRIES", 16)
    monkeypatch.setattr(whole_capture, "_LARGE_BYTES", 100)
    parts = [(group.key_group, group.encode()) for group in keyed.snapshot_aside(1)]
    for _, part in parts:
        assert isinstance(part, GroupPieces)
        assert len(list(part)) > 4
        assert max(map(len, part)) < len(part) / 3
        kept: Any = part._kept
        assert sum(len(piece) for piece in kept._held) < len(part) / 3, "the first pieces wait in a file"
    assert restored(parts) == {key: f"first of {key}" for key in range(KEYS)}


def test_an_upload_keeps_no_more_of_its_delta_in_memory_than_the_logs_share(keyed: RocksKeyedBackend) -> None:
    whole = [(group.key_group, group.encode()) for group in keyed.snapshot_whole(1)]
    keyed.snapshot_completed(1)
    update(keyed, "second")
    delta = keyed.snapshot_delta(2, 1)
    (segment,) = keyed.log._sealed
    uploaded, held = [], segment.encoded_bytes
    for part in delta.encode():
        uploaded.append(part)
        held = max(held, segment.encoded_bytes)
    assert sum(len(part) for _, part in uploaded) > 2 * LOG_BYTES
    assert held <= LOG_BYTES
    assert segment.bytes_on_disk > 0
    assert list(delta.encode()) == uploaded, "a delta that was spilled is read again, as after an aborted upload"
    assert restored(whole + uploaded) == {key: f"second of {key}" for key in range(KEYS)}


@pytest.mark.parametrize("groups_before", range(4))
def test_a_full_disk_at_a_cut_doubles_no_element_of_a_list(
    database: ScratchDatabase, monkeypatch: pytest.MonkeyPatch, groups_before: int
) -> None:
    """The checkpoint is declined and the job goes on: the next delta has each change once, also half spilled ones."""
    keyed = RocksKeyedBackend(4, range(4), RocksPlace(database, 1, 1 << 20, LOG_BYTES), KeyedStateOptions())
    numbers = ListStateDescriptor("numbers", Types.LONG())
    state, write, written = keyed_state(keyed, numbers), GroupSpill._write, 0

    def add_to_all(number: int) -> None:
        for key in range(KEYS):
            keyed.row = keyed.load_row(key)
            state.add(number)

    def full(self: GroupSpill, data: bytes) -> None:
        nonlocal written
        written += 1
        if written > groups_before:
            raise OSError(28, "No space left on device")
        write(self, data)

    add_to_all(1)
    whole = [(group.key_group, b"".join([group.encode()])) for group in keyed.snapshot_whole(1)]  # type: ignore[list-item]
    keyed.snapshot_completed(1)
    add_to_all(2)
    with monkeypatch.context() as patch:
        patch.setattr(GroupSpill, "_write", full)
        with pytest.raises(StateBackendError, match="No space left"):
            keyed.snapshot_delta(2, 1)
    keyed.snapshot_aborted(2)
    add_to_all(3)
    delta = list(keyed.snapshot_delta(3, 1).encode())

    again = HashMapKeyedBackend(4, range(4))
    again.restore(whole + delta)
    found = keyed_state(again, numbers)
    for key in range(KEYS):
        again.row = again.load_row(key)
        assert list(found.get()) == [1, 2, 3]


def test_rows_are_saved_in_small_batches(keyed: RocksKeyedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocks_backend, "_SAVED_ROWS", 50)
    written: list[int] = []
    write = keyed.database.write
    monkeypatch.setattr(keyed.database, "write", lambda writes: (written.append(len(writes)), write(writes)))
    parts = [(group.key_group, group.encode()) for group in keyed.snapshot_aside(1)]
    assert written == [50] * (KEYS // 50)
    assert restored(parts) == {key: f"first of {key}" for key in range(KEYS)}


def test_new_keys_do_not_make_the_cache_larger_than_its_share() -> None:
    cache = RowCache(Disk(), 10 << 20)
    cache.note_sizes([bytes(1000)] * 5000, 5000)
    fitting = cache._half
    cache.note_sizes([None] * 5000, 5000)
    assert cache._half == fitting
    cache.note_sizes([bytes(1000)] * 5000 + [None] * 5000, 5000)  # two states, one of them without values
    assert cache._half == fitting
