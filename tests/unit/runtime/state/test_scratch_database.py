"""The database of a slot: views stand still, damage is told, nothing is left on the disk."""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from pathlib import Path

import pytest

from rekindle.errors import StateBackendError
from rekindle.runtime.state.rocksdb import scratch_database
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase


@pytest.fixture
def database(tmp_path: Path):
    opened = ScratchDatabase(tmp_path, MemoryShares.of(8 << 20))
    yield opened
    opened.close()


def test_entries_are_written_removed_and_scanned_in_order(database: ScratchDatabase) -> None:
    database.write([(b"b", b"2"), (b"a", b"1"), (b"c", b"3")])
    database.write([(b"b", None), (b"a", b"0"), (b"a", b"1")])
    assert list(database.scan(b"")) == [(b"a", b"1"), (b"c", b"3")]
    assert database.get_many([b"a", b"b"]) == [b"1", None]


def test_a_view_does_not_see_later_writes_also_on_another_thread(database: ScratchDatabase) -> None:
    """The snapshots of the package do: only their `get` is as of the snapshot."""
    database.write([(b"a", b"1")])
    view = database.view()
    database.write([(b"a", b"2"), (b"b", b"2")])
    seen: list[list[tuple[bytes, bytes]]] = []
    thread = threading.Thread(target=lambda: seen.extend(list(database.scan(b"", view)) for _ in range(2)))
    thread.start()
    thread.join()
    assert seen == [[(b"a", b"1")]] * 2


def test_many_sorted_entries_are_added_as_a_file_and_few_without_one(database: ScratchDatabase) -> None:
    """A file waits for the disk: a restore of 128 small key groups took ten seconds on a busy one."""
    database.ingest((b"%03d" % number, b"x") for number in range(100))
    database.ingest(iter(()))
    assert len(list(database.scan(b"0"))) == 100
    assert list((database.folder / "db").glob("*.sst")) == []
    database.ingest((b"1%03d" % number, b"x" * 1000) for number in range(1000))
    assert len(list(database.scan(b"1"))) == 1000
    assert len(list((database.folder / "db").glob("*.sst"))) == 1


def share_in_page_cache(file: Path) -> float:
    """Ask the system; a read, even one that does not wait, would bring the file there."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
        first = ctypes.c_char.from_buffer(mapped)
        asked = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(mapped)), pages)
        del first
    assert asked == 0
    return sum(page & 1 for page in pages) / len(pages)


def test_ingested_files_are_in_the_page_cache_although_rocksdb_drops_them_from_there(
    database: ScratchDatabase,
) -> None:
    database.ingest((b"%06d" % number, b"x" * 1000) for number in range(5_000))  # its end is read by RocksDB
    (file,) = (database.folder / "db").glob("*.sst")
    deadline = time.monotonic() + 30
    while share_in_page_cache(file) < 1:  # the system reads it while others work
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_scarce_memory_is_not_filled_with_ingested_files(
    database: ScratchDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(scratch_database, "_read_ahead", read.append)
    monkeypatch.setattr(scratch_database, "_available_bytes", lambda: 4 << 20)
    for first in range(0, 30_000, 5_000):
        database.ingest((b"%06d" % number, b"x" * 100) for number in range(first, first + 5_000))
    assert len(read) == 1  # of about 600 kB each; two would be more than a quarter of the memory


def test_a_damaged_file_is_told_also_by_a_scan(tmp_path: Path) -> None:
    """An iterator of RocksDB just ends there: a snapshot would lose the rest without a word."""
    database = ScratchDatabase(tmp_path, MemoryShares.of(8 << 20))
    database.ingest((b"%06d" % number, b"x" * 100) for number in range(20_000))
    (file,) = (database.folder / "db").glob("*.sst")
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = b"\xff" * 4096
    file.write_bytes(data)
    with pytest.raises(StateBackendError, match=r"The RocksDB of this slot in .* cannot be read"):
        list(database.scan(b""))
    database.close()


def test_nothing_is_left_on_the_disk(tmp_path: Path) -> None:
    database = ScratchDatabase(tmp_path, MemoryShares.of(8 << 20))
    database.write([(b"a", b"1")])
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateBackendError, match=r"cannot be opened: .*set state\.backend\.rocksdb\.localdir"):
        ScratchDatabase(tmp_path / "file", MemoryShares.of(8 << 20))
