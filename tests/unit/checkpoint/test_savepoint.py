"""I17: a savepoint stands on its own, wherever it is moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.checkpoint.manifest import FileRef, Manifest, ManifestKind, OperatorState
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.resolve import LoadedCheckpoint, load, locate
from rekindle.checkpoint.savepoint import copy_to_savepoint
from rekindle.checkpoint.statefile import read_blob
from rekindle.checkpoint.store import Data, Store
from rekindle.checkpoint.stores.local import LocalStore
from rekindle.checkpoint.stores.memory import MemoryStore
from rekindle.checkpoint.subtask import SubtaskParts
from rekindle.errors import CorruptCheckpointError, StoreError
from tests.unit.checkpoint.samples import contents, manifest_of, published, take_over, written


def everything(store: Store, claim: Claim) -> Manifest:
    """A checkpoint with every kind of state, deltas on older files among it."""
    base = SubtaskParts(0, 1, keyed_full=[(0, b"zero" * 2000), (1, b"one" * 2000)])
    first = written(store, claim, base)
    parts = SubtaskParts(
        0,
        2,
        keyed_delta=[(0, b"delta" * 1000)],
        timers=[(1, b"timers" * 1000)],
        raw_keyed=[(1, b"raw keyed" * 1000)],
        operator_state=b"\x92\x01\x90",
        raw_operator=[b"raw" * 1000, b""],
        source=b"source",
        task=b"task",
        committables=[b"a file" * 5000],
    )
    second = written(store, claim, parts, base=first)
    small = written(store, claim, SubtaskParts(0, 2, keyed_full=[(0, b"x")]), uid="small", inline_bytes=100)
    operators = [OperatorState("op", "count", 1, 2, [second]), OperatorState("small", "small", 1, 2, [small])]
    return manifest_of(claim, 2, operators)


def values(store: Store, root: str, manifest: Manifest) -> list[bytes]:
    return [read_blob(store, root, blob) for blob in manifest.blobs()]


def test_everything_is_in_the_folder_and_nothing_else(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "checkpoints")
    claim = take_over(store)
    manifest = everything(store, claim)
    root = f"orders/{claim.timeline}"
    before = values(store, root, manifest)
    target = LocalStore(tmp_path / "savepoints")
    folder = copy_to_savepoint(store, LoadedCheckpoint(manifest, f"{root}/chk-2", root), target)
    assert folder.startswith("savepoint-0a1b2c-")
    assert [entry.path for entry in target.list()] == [f"{folder}/2-1-op-0.state", f"{folder}/_metadata"]

    # The job's own directory goes, the savepoint is moved: it still restores.
    for entry in store.list():
        store.delete(entry.path)
    (tmp_path / "savepoints" / folder).rename(tmp_path / "moved and renamed")
    location = locate(str(tmp_path / "moved and renamed"))
    loaded = load(location.store, location.path, deep=True)
    assert loaded.manifest.kind is ManifestKind.SAVEPOINT
    assert values(location.store, loaded.root, loaded.manifest) == before
    assert loaded.manifest.checkpoint_id == 2


def test_a_savepoint_of_a_savepoint() -> None:
    store, target = MemoryStore(), MemoryStore()
    claim = take_over(store)
    manifest = everything(store, claim)
    root = f"orders/{claim.timeline}"
    before = values(store, root, manifest)
    first = load(target, copy_to_savepoint(store, LoadedCheckpoint(manifest, f"{root}/chk-2", root), target))
    second = load(store, copy_to_savepoint(target, first, store))
    assert values(store, second.root, second.manifest) == before


def test_sizes_are_those_of_a_full_one() -> None:
    store = MemoryStore()
    claim = take_over(store)
    manifest = published(store, claim, 2, [(0, b"y" * 5000)], published(store, claim, 1, [(0, b"x" * 9000)]))
    assert (manifest.new_bytes(), manifest.full_bytes()) == (5000, 14_000)
    root = f"orders/{claim.timeline}"
    copy = load(store, copy_to_savepoint(store, LoadedCheckpoint(manifest, f"{root}/chk-2", root), store)).manifest
    assert (copy.new_bytes(), copy.full_bytes()) == (14_000, 14_000)
    assert {ref.path for ref in copy.references()} == {"2-1-op-0.state"}


def test_damage_is_found_while_copying_and_nothing_is_left() -> None:
    store, target = MemoryStore(), MemoryStore()
    claim = take_over(store)
    manifest = everything(store, claim)
    root = f"orders/{claim.timeline}"
    ref = next(manifest.references())
    assert isinstance(ref, FileRef)
    data = bytearray(store.read(f"{root}/{ref.path}"))
    data[3] ^= 1
    store.put(f"{root}/{ref.path}", bytes(data))
    with pytest.raises(CorruptCheckpointError, match="is damaged"):
        copy_to_savepoint(store, LoadedCheckpoint(manifest, f"{root}/chk-2", root), target)
    assert target.list() == []


def test_a_store_that_fails_half_way_leaves_nothing_that_looks_complete() -> None:
    class FullDisk(MemoryStore):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            raise StoreError("no space left", retryable=True)

        def put(self, path: str, data: Data) -> None:
            super().put(path, data)

    store, target = MemoryStore(), FullDisk()
    claim = take_over(store)
    manifest = everything(store, claim)
    root = f"orders/{claim.timeline}"
    before = contents(store)
    with pytest.raises(StoreError, match="no space left"):
        copy_to_savepoint(store, LoadedCheckpoint(manifest, f"{root}/chk-2", root), target)
    assert target.list() == []
    assert contents(store) == before
