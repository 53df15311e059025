"""State files: parts with checksums, small ones inside the manifest."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rekindle.checkpoint import statefile
from rekindle.checkpoint.manifest import Blob, FileRef
from rekindle.checkpoint.statefile import InlineWriter, StateFileWriter, read_blob, read_blobs
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.errors import CheckpointError, CorruptCheckpointError

ROOT, FILE = "orders/t", "shared/1-1-op-0.state"


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, int, int | None]] = []

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self.reads.append((path, offset, length))
        return super().read(path, offset, length)


def write(store: MemoryStore, parts: list[bytes], reference: str = FILE, inline_bytes: int = 0) -> list[Blob]:
    writer = StateFileWriter(store, ROOT, reference, inline_bytes=inline_bytes)
    tagged = writer.write(enumerate(parts))
    assert [tag for tag, _ in tagged] == list(range(len(parts)))
    return [blob for _, blob in tagged]


def test_small_state_needs_no_file() -> None:
    store = MemoryStore()
    assert write(store, [b"x" * 2000, b"", b"y" * 2096], inline_bytes=4096) == [b"x" * 2000, b"", b"y" * 2096]
    assert write(store, [], inline_bytes=0) == []
    assert store.list() == []


def test_larger_state_is_one_file() -> None:
    store = MemoryStore()
    parts = [b"x" * 2000, b"", b"y" * 2097]
    blobs = write(store, parts, inline_bytes=4096)
    assert [(blob.offset, blob.length) for blob in blobs if isinstance(blob, FileRef)] == [
        (0, 2000),
        (2000, 0),
        (2000, 2097),
    ]
    assert [entry.path for entry in store.list()] == [f"{ROOT}/{FILE}"]
    assert [read_blob(store, ROOT, blob) for blob in blobs] == parts


def test_parts_are_taken_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statefile, "_BLOCK_BYTES", 100)
    made = 0
    blocks: list[tuple[int, int]] = []

    class Slow(MemoryStore):
        def put(self, path: str, data: object) -> None:
            for block in data:  # type: ignore[attr-defined]
                blocks.append((made, len(block)))

    def parts() -> Iterator[tuple[int, bytes]]:
        nonlocal made
        for made in range(1, 11):
            yield made, b"x" * 60

    StateFileWriter(Slow(), ROOT, FILE).write(parts())
    assert blocks == []  # 600 bytes fit into the manifest
    StateFileWriter(Slow(), ROOT, FILE, inline_bytes=0).write(parts())
    assert blocks == [(2, 120), (4, 120), (6, 120), (8, 120), (10, 120)]


def test_a_part_that_cannot_be_made_leaves_no_file() -> None:
    store = MemoryStore()

    def parts() -> Iterator[tuple[int, bytes]]:
        yield 0, b"x" * 10_000
        raise ValueError("not serializable")

    with pytest.raises(ValueError, match="not serializable"):
        StateFileWriter(store, ROOT, FILE).write(parts())
    assert store.list() == []


def test_memory_storage_refuses_large_state_by_name() -> None:
    writer = InlineWriter("'count' (1/2)", max_bytes=10)
    assert writer.write([("a", b"12345"), ("b", b"67890")]) == [("a", b"12345"), ("b", b"67890")]
    with pytest.raises(
        CheckpointError, match=r"state of 'count' \(1/2\) is larger than 10 bytes.*execution\.checkpointing\.dir"
    ):
        writer.write([("a", b"12345"), ("b", b"678901")])


# -- reading -----------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=8), min_size=1, max_size=4), st.data(), st.booleans()
)
def test_any_blobs_in_any_order(files: list[list[bytes]], data: st.DataObject, small_windows: bool) -> None:
    store = MemoryStore()
    known: list[tuple[Blob, bytes]] = []
    for number, parts in enumerate(files):
        known += zip(write(store, parts, f"shared/{number}"), parts, strict=True)
    chosen = data.draw(st.lists(st.sampled_from(known), max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        if small_windows:
            patch.setattr(statefile, "_BLOCK_BYTES", 50)
            patch.setattr(statefile, "_GAP_BYTES", 5)
        assert list(read_blobs(store, ROOT, [blob for blob, _ in chosen])) == [content for _, content in chosen]


def test_neighbours_are_read_together_and_each_byte_once() -> None:
    store = CountingStore()
    files = [write(store, [b"%d" % n * 1000 for n in range(50)], f"shared/{name}") for name in "ab"]
    by_key_group = [blob for pair in zip(*files, strict=True) for blob in pair]
    assert len(list(read_blobs(store, ROOT, by_key_group))) == 100
    assert len(store.reads) == 2


def test_parts_of_many_files_are_read_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a restore reads a key group with a delta in each of many checkpoints, then the next key group."""
    monkeypatch.setattr(statefile, "_HELD_BYTES", 4 << 20)
    store, files, groups = MemoryStore(), 40, 60
    written = [write(store, [b"x" * 20_000] * groups, f"shared/{number}-1-op-0.state") for number in range(files)]
    # Without the first part of a file: a read of all its bytes would be no copy in this store.
    by_key_group = [blobs[group] for group in range(1, groups) for blobs in written]
    tracemalloc.start()
    assert sum(map(len, read_blobs(store, ROOT, by_key_group))) == files * (groups - 1) * 20_000
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 8 << 20


def test_what_lies_far_apart_is_not_read_with_it() -> None:
    store = CountingStore()
    blobs = write(store, [b"a" * 10, b"x" * 1_000_000, b"b" * 10])
    assert list(read_blobs(store, ROOT, [blobs[0], blobs[2]])) == [b"a" * 10, b"b" * 10]
    assert sum(length or 0 for _, _, length in store.reads) == 20


# -- damage ------------------------------------------------------------------------------------------------------------


def both_ways(store: MemoryStore, blob: Blob) -> Iterator[str]:
    for read in (lambda: read_blob(store, ROOT, blob), lambda: list(read_blobs(store, ROOT, [blob]))):
        with pytest.raises(CorruptCheckpointError) as caught:
            read()
        yield str(caught.value)


def test_a_file_truncated_anywhere_is_refused_by_name() -> None:
    store = MemoryStore()
    blobs = write(store, [b"first part", b"second part"])
    whole = store.read(f"{ROOT}/{FILE}")
    for length in range(len(whole)):
        store.put(f"{ROOT}/{FILE}", whole[:length])
        for sentence in both_ways(store, blobs[1]):
            assert sentence.startswith(f"The state file {ROOT}/{FILE} is truncated")


def test_every_flipped_byte_is_found() -> None:
    store = MemoryStore()
    blobs = write(store, [b"first part", b"second part"])
    whole = store.read(f"{ROOT}/{FILE}")
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x40
        store.put(f"{ROOT}/{FILE}", bytes(damaged))
        hit, other = (blobs[0], blobs[1]) if place < 10 else (blobs[1], blobs[0])
        for sentence in both_ways(store, hit):
            assert sentence.startswith(f"The state file {ROOT}/{FILE} is damaged")
        assert read_blob(store, ROOT, other)


def test_a_missing_file_is_refused_by_name() -> None:
    store = MemoryStore()
    (blob,) = write(store, [b"x"])
    store.delete(f"{ROOT}/{FILE}")
    assert set(both_ways(store, blob)) == {f"The state file {ROOT}/{FILE} is missing."}


def test_a_reference_that_leads_elsewhere_is_refused() -> None:
    store = MemoryStore()
    with pytest.raises(CheckpointError, match="not a path inside a checkpoint store"):
        read_blob(store, ROOT, FileRef("../../../etc/passwd", 0, 10, 0))
