"""A state that is registered after a cut: the snapshot holds its restored values, and no file stays for them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from rekindle.common import Types
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import StateBackendError
from rekindle.runtime.state.backend import KeyedStateOptions
from rekindle.runtime.state.described_states import keyed_state
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend, RocksPlace
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from tests.support.encoded_groups import encoded

EARLY, LATE = (ValueStateDescriptor(name, Types.LONG()) for name in ("early", "late"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[ScratchDatabase]:
    opened = ScratchDatabase(tmp_path, MemoryShares.of(8 << 20))
    yield opened
    opened.close()


def backend(database: ScratchDatabase, operator: int) -> RocksKeyedBackend:
    return RocksKeyedBackend(4, range(4), RocksPlace(database, operator, 1 << 20, 1 << 20), KeyedStateOptions())


def snapshot(keyed: RocksKeyedBackend) -> list[tuple[int, bytes]]:
    return encoded(keyed.snapshot_aside(1))


def values(
    parts: list[tuple[int, bytes]], database: ScratchDatabase, operator: int
) -> list[tuple[int | None, int | None]]:
    keyed = backend(database, operator)
    keyed.restore(parts)
    early, late = keyed_state(keyed, EARLY), keyed_state(keyed, LATE)
    found = []
    for key in range(20):
        keyed.row = keyed.load_row(key)
        found.append((early.value(), late.value()))
    return found


def saved(database: ScratchDatabase) -> list[tuple[int, bytes]]:
    keyed = backend(database, 1)
    early, late = keyed_state(keyed, EARLY), keyed_state(keyed, LATE)
    for key in range(20):
        keyed.row = keyed.load_row(key)
        early.update(key)
        late.update(-key)
    return snapshot(keyed)


def test_a_state_that_is_registered_between_cut_and_upload_is_in_the_snapshot(database: ScratchDatabase) -> None:
    keyed = backend(database, 2)
    keyed.restore(saved(database))
    keyed_state(keyed, EARLY)
    captured = keyed.snapshot_aside(2)
    keyed_state(keyed, LATE)
    assert values(encoded(captured), database, 3) == [(key, -key) for key in range(20)]


def test_restored_parts_leave_the_disk_when_all_are_claimed(database: ScratchDatabase) -> None:
    keyed = backend(database, 2)
    keyed.restore(saved(database))
    left = [len(list(database.folder.glob("restored-*")))]
    for descriptor in (EARLY, LATE):
        keyed_state(keyed, descriptor)
        left.append(len(list(database.folder.glob("restored-*"))))
    assert left == [1, 1, 0]


def test_restored_parts_that_were_cut_short_on_the_disk_are_told_by_their_file(database: ScratchDatabase) -> None:
    keyed = backend(database, 2)
    keyed.restore(saved(database))
    (file,) = database.folder.glob("restored-*")
    os.truncate(file, file.stat().st_size - 1)
    keyed_state(keyed, EARLY)
    with pytest.raises(StateBackendError, match=rf"^Restored state cannot be read in {file}: it ends at \d+\.$"):
        keyed_state(keyed, LATE)


def test_restored_parts_that_cannot_be_written_are_told_by_their_file(database: ScratchDatabase) -> None:
    keyed, parts = backend(database, 2), saved(database)
    shutil.rmtree(database.folder)
    with pytest.raises(StateBackendError, match=rf"^Restored state cannot be written in {database.folder}/restored-"):
        keyed.restore(parts)


def test_whole_parts_and_changes_that_nobody_claimed_are_carried_on_in_their_order(database: ScratchDatabase) -> None:
    """A snapshot writes them one behind the other into one part, which is not in order then."""
    keys = 8_000
    keyed = backend(database, 1)
    late = keyed_state(keyed, LATE)
    expected: dict[int, int] = {}

    def set_value(key: int, value: int | None) -> None:
        keyed.row = keyed.load_row(key)
        if value is None:
            late.clear()
            expected.pop(key, None)
        else:
            late.update(value)
            expected[key] = value

    for key in range(keys):
        set_value(key, key)
    parts = [(group.key_group, bytes_of(group.encode())) for group in keyed.snapshot_whole(1)]
    for checkpoint in (2, 3):
        for key in range(0, keys, 7):
            set_value(key * checkpoint, -key if key % 3 else None)
        parts += [(group, bytes_of(data)) for group, data in keyed.snapshot_delta(checkpoint, checkpoint - 1).encode()]
        keyed.snapshot_completed(checkpoint)
    for operator in (2, 3, 4):
        carrier = backend(database, operator)
        carrier.restore(parts)
        parts = [(group.key_group, bytes_of(group.encode())) for group in carrier.snapshot_aside(1)]
    restored = backend(database, 5)
    restored.restore(parts)
    late = keyed_state(restored, LATE)
    found = {}
    for key in range(keys * 4):
        restored.row = restored.load_row(key)
        if (value := late.value()) is not None:
            found[key] = value
    assert found == expected


def bytes_of(part: bytes | Iterable[bytes]) -> bytes:
    return part if isinstance(part, bytes) else b"".join(part)
