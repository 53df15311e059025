"""I16: a damaged checkpoint is refused by name, and the newest older good one is offered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rekindle.checkpoint.latest_checkpoint import highest_checkpoint_id, latest
from rekindle.checkpoint.load_checkpoint import load, locate, newest_good_before
from rekindle.checkpoint.manifest import Manifest
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.paths import metadata_path, new_timeline
from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.errors import CheckpointNotFoundError, CorruptCheckpointError
from tests.support.listed_checkpoints import list_checkpoints
from tests.unit.checkpoint.samples import captured_groups, folder, published, state_file, take_over, written


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def claim(store: MemoryStore) -> Claim:
    return take_over(store)


def test_the_latest_is_of_the_newest_timeline_that_has_one(store: MemoryStore, claim: Claim) -> None:
    assert latest(store, "orders") is None
    old = [published(store, claim, number) for number in (9, 10, 2)]
    assert list_checkpoints(store, "orders") == [folder(old[2]), folder(old[0]), folder(old[1])]
    second = take_over(store)
    assert latest(store, "orders") == folder(old[1])
    new = published(store, second, 3)
    assert latest(store, "orders") == folder(new)
    published(store, take_over(store, "another"), 99)
    assert latest(store, "orders") == folder(new)
    assert load(store, folder(new)).manifest == new


def test_timelines_are_ordered_by_number_not_by_text(store: MemoryStore) -> None:
    timelines = [new_timeline(attempt) for attempt in (99_999_999, 100_000_000)]
    for timeline in timelines:
        store.put(f"orders/{timeline}/chk-1/_metadata", b"")
    assert list_checkpoints(store, "orders") == [f"orders/{timeline}/chk-1" for timeline in timelines]


def test_what_is_not_complete_does_not_count(store: MemoryStore, claim: Claim) -> None:
    done = published(store, claim, 1)
    written(store, claim, captured_groups(0, 2, [(0, b"x")]))
    store.put(f"orders/{claim.timeline}/chk-2/_metadata.0a1b2c3d.part", b"half")
    assert list_checkpoints(store, "orders") == [folder(done)]
    with pytest.raises(CheckpointNotFoundError, match=r"no complete checkpoint .* at 'orders/.*/chk-2'.*no _metadata"):
        load(store, f"orders/{claim.timeline}/chk-2")


def test_ids_are_not_used_again(store: MemoryStore, claim: Claim) -> None:
    assert highest_checkpoint_id(store, "orders") == 0
    published(store, claim, 3)
    assert highest_checkpoint_id(store, "orders") == 3
    written(store, claim, captured_groups(0, 7, [(0, b"x")]))
    assert highest_checkpoint_id(store, "orders") == 7


@pytest.mark.parametrize("ending", ["", "/", "/_metadata"])
def test_a_checkpoint_by_its_folder_or_metadata(store: MemoryStore, claim: Claim, ending: str) -> None:
    manifest = published(store, claim, 1)
    loaded = load(store, folder(manifest) + ending)
    assert (loaded.manifest, loaded.path) == (manifest, folder(manifest))
    assert loaded.root == f"orders/{claim.timeline}"


# -- damage ------------------------------------------------------------------------------------------------------------

Damage = Callable[[MemoryStore, Manifest], None]


def cut_metadata(store: MemoryStore, manifest: Manifest) -> None:
    path = metadata_path(folder(manifest))
    store.put(path, store.read(path)[:-3])


def flip_metadata(store: MemoryStore, manifest: Manifest) -> None:
    path = metadata_path(folder(manifest))
    data = bytearray(store.read(path))
    data[-5] ^= 1
    store.put(path, bytes(data))


def replace_metadata(store: MemoryStore, manifest: Manifest) -> None:
    store.put(metadata_path(folder(manifest)), b"\x00\x00 some other program's file")


def foreign_metadata(store: MemoryStore, manifest: Manifest) -> None:
    path = metadata_path(folder(manifest))
    data = bytearray(store.read(path))
    data[8] = 2
    store.put(path, bytes(data))


def cut_state(store: MemoryStore, manifest: Manifest) -> None:
    store.put(state_file(manifest), store.read(state_file(manifest))[:-1])


def lose_state(store: MemoryStore, manifest: Manifest) -> None:
    store.delete(state_file(manifest))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (cut_metadata, r"chk-3/_metadata is truncated"),
        (flip_metadata, r"chk-3/_metadata is damaged"),
        (replace_metadata, r"chk-3/_metadata was not written by Rekindle"),
        (foreign_metadata, r"chk-3/_metadata has format 2"),
        (cut_state, r"shared/3-1-op-0.state is truncated"),
        (lose_state, r"shared/3-1-op-0.state is missing"),
    ],
)
def test_the_newest_older_good_one_is_offered(store: MemoryStore, claim: Claim, damage: Damage, sentence: str) -> None:
    one, two, three = (published(store, claim, number) for number in (1, 2, 3))
    damage(store, three)
    with pytest.raises(CorruptCheckpointError, match=sentence) as caught:
        load(store, folder(three))
    assert caught.value.alternative == folder(two)
    assert f"the newest older good checkpoint is memory://{folder(two)}: set" in str(caught.value)
    assert caught.value.path == folder(three)
    damage(store, two)
    with pytest.raises(CorruptCheckpointError) as caught:
        load(store, folder(three))
    assert caught.value.alternative == folder(one)
    damage(store, one)
    with pytest.raises(CorruptCheckpointError, match="there is no older good checkpoint") as caught:
        load(store, folder(three))
    assert caught.value.alternative is None


def test_the_alternative_may_be_of_an_older_timeline(store: MemoryStore, claim: Claim) -> None:
    old = published(store, claim, 1)
    second = take_over(store)
    new = published(store, second, 2)
    later = published(store, take_over(store), 3)
    lose_state(store, new)
    with pytest.raises(CorruptCheckpointError) as caught:
        load(store, folder(new))
    assert caught.value.alternative == folder(old)
    assert newest_good_before(store, folder(later)) == folder(old)


def test_a_checkpoint_that_needs_a_lost_file_of_an_older_one_is_damaged_too(store: MemoryStore, claim: Claim) -> None:
    base = published(store, claim, 1)
    second = published(store, claim, 2, [(0, b"delta")], base)
    lose_state(store, base)
    with pytest.raises(CorruptCheckpointError, match=r"shared/1-1-op-0.state is missing"):
        load(store, folder(second))


def test_a_flipped_byte_of_state_is_found_by_a_deep_look(store: MemoryStore, claim: Claim) -> None:
    one, two = published(store, claim, 1), published(store, claim, 2)
    data = bytearray(store.read(state_file(two)))
    data[1] ^= 1
    store.put(state_file(two), bytes(data))
    assert load(store, folder(two)).manifest == two
    with pytest.raises(CorruptCheckpointError, match=r"2-1-op-0.state is damaged") as caught:
        load(store, folder(two), deep=True)
    assert caught.value.alternative == folder(one)


# -- where -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["{url}/{path}", "{url}/{path}/", "{url}/{path}/_metadata", "{plain}/{path}"])
def test_a_checkpoint_by_url_with_its_older_ones_in_reach(tmp_path: Path, form: str) -> None:
    store = LocalStore(tmp_path / "checkpoints")
    first = published(store, take_over(store), 1)
    second = published(store, take_over(store), 2)
    location = locate(form.format(url=store.url, plain=store.directory, path=folder(second)))
    assert location.path == folder(second)
    assert load(location.store, location.path).manifest == second
    (store.directory / state_file(second)).unlink()
    with pytest.raises(CorruptCheckpointError) as caught:
        load(location.store, location.path)
    assert caught.value.alternative == folder(first)


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore(tmp_path)
    manifest = published(store, take_over(store), 1)
    for path in (folder(manifest), f"./{folder(manifest)}", f"../{tmp_path.name}/{folder(manifest)}"):
        location = locate(path)
        assert load(location.store, location.path).manifest == manifest
    monkeypatch.chdir(tmp_path / folder(manifest))
    location = locate("../chk-1")
    assert load(location.store, location.path).manifest == manifest


def test_a_timeline_that_was_moved(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "checkpoints")
    manifest = published(store, take_over(store), 1)
    (tmp_path / "checkpoints" / "orders" / manifest.timeline).rename(tmp_path / "elsewhere")
    location = locate(str(tmp_path / "elsewhere" / "chk-1"))
    assert load(location.store, location.path, deep=True).manifest == manifest


@pytest.mark.parametrize(
    ("url", "root", "path"),
    [
        ("s3://bucket/chk-7", "s3://bucket", "chk-7"),
        ("s3://bucket/a/b/orders/00000001-0a1b2c3d/chk-7", "s3://bucket/a/b", "orders/00000001-0a1b2c3d/chk-7"),
        ("s3://bucket/a/savepoint-1-2/_metadata", "s3://bucket/a", "savepoint-1-2"),
        ("gs://bucket/savepoint-1-2", "gs://bucket", "savepoint-1-2"),
    ],
)
def test_the_bucket_belongs_to_the_store(url: str, root: str, path: str) -> None:
    location = locate(url, {"skip_signature": "true"})
    assert (location.store.url, location.path) == (root, path)


@pytest.mark.parametrize("url", ["", "/", "file:///", "file:///_metadata"])
def test_what_names_no_checkpoint(url: str) -> None:
    with pytest.raises(CheckpointNotFoundError, match="names no checkpoint"):
        locate(url)
