"""Timers and indexes on disk: bounded in memory, and nothing stays on the disk that nobody needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rekindle.errors import StateBackendError
from rekindle.runtime.state.rocksdb.group_spill import GroupSpill
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.runtime.state.rocksdb.stored_index import StoredIndex
from rekindle.runtime.state.rocksdb.stored_timer_queue import StoredTimerQueue
from rekindle.runtime.state.rocksdb.stored_timers import StoredTimers, TimerPlace
from rekindle.runtime.state.rocksdb.timer_shares import TimerLimits
from rekindle.serde import value_codec_for

LIMITS = TimerLimits.of(1 << 20)
GROUPS = 16


@pytest.fixture
def database(tmp_path: Path) -> Any:
    opened = ScratchDatabase(tmp_path, MemoryShares.of(16 << 20))
    yield opened
    opened.close()
    assert list(tmp_path.iterdir()) == []


def timers(database: ScratchDatabase, operator: int = 1, limits: TimerLimits = LIMITS) -> StoredTimers:
    return StoredTimers(GROUPS, range(GROUPS), TimerPlace(database, operator, limits))


def held(queue: Any) -> int:
    """The timers in memory: near ones, those that wait to be written or are remembered, and changes for the delta."""
    assert isinstance(queue, StoredTimerQueue)
    near = sum(map(len, queue._buckets.values()))
    segments = [segment for _, segment in queue.changes._sealed] + ([queue.changes.open] if queue.changes.open else [])
    return near + len(queue._far._waiting) + len(queue._far._known) + sum(len(each._held) for each in segments)


def spilled(database: ScratchDatabase) -> list[str]:
    return [name for name in os.listdir(database.folder) if name.startswith("spill-")]


@pytest.mark.parametrize("count", [30_000, pytest.param(300_000, marks=pytest.mark.long)])
def test_of_many_timers_few_are_in_memory(database: ScratchDatabase, count: int) -> None:
    some = timers(database)
    some.snapshot_whole(1, None, ())
    most = 0
    for number in range(count):
        # Half of them at one time, as the windows of many keys have it.
        some.register_event_time(count if number % 2 else number, number)
        if number % 1000 == 0:
            most = max(most, held(some.event))
    assert len(some.event) == count
    for number in range(0, count, 3):
        some.delete_event_time(count if number % 2 else number, number)
    fired = 0
    previous = -1, b""
    for time, key, _ in some.advance_watermark(count):
        position = time, key.to_bytes(4, "big")
        assert position > previous
        previous = position
        fired += 1
        if fired % 1000 == 0:
            most = max(most, held(some.event))
    assert fired == count - count // 3
    assert most <= LIMITS.most_held < 5000


def test_a_restore_holds_few_timers(database: ScratchDatabase) -> None:
    some = timers(database)
    for number in range(20_000):
        some.register_event_time(number % 7, number)
    parts = list(some.snapshot().encode())
    again = timers(database, 2)
    again.restore(parts)
    assert held(again.event) <= LIMITS.most_held
    assert len(again.event) == 20_000


def test_setting_a_timer_again_writes_nothing(database: ScratchDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    some = timers(database)
    some.restore([])
    keys = range(5000)
    for key in keys:
        some.register_event_time(7, key)
    assert len(list(some.snapshot_delta(1, 0).encode())) == GROUPS  # type: ignore[union-attr]
    written: list[Any] = []
    write = database.write
    monkeypatch.setattr(database, "write", lambda writes: write(written.extend(found := list(writes)) or found))
    for key in keys:
        some.register_event_time(7, key)
    assert list(some.snapshot_delta(2, 1).encode()) == []  # type: ignore[union-attr]
    assert written == []


def test_no_scan_passes_over_timers_that_fired(database: ScratchDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    some = timers(database)
    for number in range(5000):
        some.register_event_time(number // 1000, number)
    begins: list[bytes] = []
    scan = database.scan
    monkeypatch.setattr(database, "scan", lambda prefix, view, begin: begins.append(begin) or scan(prefix, view, begin))
    assert sum(1 for _ in some.advance_watermark(5)) == 5000
    assert len(begins) > 10
    assert sorted(set(begins)) == begins, "each scan begins after the timers that the one before it removed"
    assert begins[0] > b""


def test_files_of_changes_go_when_their_snapshot_is_complete(database: ScratchDatabase) -> None:
    some = timers(database)
    some.snapshot_whole(1, None, ())
    for snapshot_id in range(2, 8):
        for number in range(3000):
            some.register_event_time(snapshot_id, number)
        captured = some.snapshot_delta(snapshot_id, 1)
        assert spilled(database)
        if snapshot_id < 7:
            some.snapshot_aborted(snapshot_id)
    assert captured is not None
    some.snapshot_completed(7)
    assert sum(len(data) for _, data in captured.encode()) > 0  # an upload that is under way goes on
    del captured
    assert spilled(database) == []


def test_the_file_of_a_whole_snapshot_goes_with_it(database: ScratchDatabase) -> None:
    some = timers(database)
    for number in range(5000):
        some.register_event_time(number, number)
    parts = some.snapshot().encode()
    next(parts)
    assert len(spilled(database)) == 1
    parts.close()  # type: ignore[attr-defined]
    assert spilled(database) == []
    assert len(list(some.snapshot().encode())) == GROUPS
    assert spilled(database) == []


def test_a_time_that_no_clock_shows_is_refused(database: ScratchDatabase) -> None:
    with pytest.raises(
        ValueError, match=r"whole milliseconds between -2\*\*63 and 2\*\*63 - 1, not 9223372036854775808"
    ):
        timers(database).register_event_time(2**63, "k")


def test_an_index_holds_few_values_and_finds_all(database: ScratchDatabase) -> None:
    index = StoredIndex(database, b"index", value_codec_for(None, allow_pickle=False), 100)
    for key in range(5000):
        index.put(key, {(key, key + 1): (0, 1)})
        assert len(index) <= 102
    for key in range(0, 5000, 2):
        windows = index.get(key)
        windows[7, 8] = 9, 10
        index.put(key, windows)
    for key in range(0, 5000, 5):
        index.put(key, None)
    for key in range(5000):
        expected = {(key, key + 1): (0, 1)} | ({(7, 8): (9, 10)} if key % 2 == 0 else {})
        assert index.get(key) == (None if key % 5 == 0 else expected)
    assert index.get("nobody") is None


def test_pieces_that_cannot_be_read_or_written_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StateBackendError, match=r"Changes of timers cannot be written to .*No such file"):
        GroupSpill(tmp_path / "gone", "Changes of timers")
    file = GroupSpill(tmp_path, "Changes of timers")
    file.append([(3, b"abc"), (4, b"d"), (3, b"ef")])
    assert list(file.pieces(3)) == [b"abc", b"ef"]
    os.truncate(file._path, 4)
    with pytest.raises(StateBackendError, match=r"Changes of timers cannot be read from .*: it ends at 4"):
        list(file.pieces(3))
