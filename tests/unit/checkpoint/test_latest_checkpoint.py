"""I21: a run notes what it began from before it acts, and `latest` follows the notes, not the last publication."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rekindle.checkpoint.latest_checkpoint import latest, older_checkpoints
from rekindle.checkpoint.load_checkpoint import load
from rekindle.checkpoint.manifest import Manifest
from rekindle.checkpoint.ownership import Claim, check_owner
from rekindle.checkpoint.paths import CheckpointPath, begun_path, checkpoint_folder, metadata_path
from rekindle.checkpoint.publish import publish, put_metadata
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.store.port import Store
from rekindle.checkpoint.timeline_notes import Beginning, note_beginning, note_completion, note_stop
from rekindle.errors import CheckpointNotFoundError, CorruptCheckpointError, OwnershipLostError
from tests.unit.checkpoint.samples import manifest_of, published, take_over
from tests.unit.checkpoint.store_turns import Turns, TurnStore, run_together


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def folder(claim: Claim, checkpoint_id: int) -> str:
    return checkpoint_folder(claim.job_name, claim.timeline, checkpoint_id)


def path_of(claim: Claim, checkpoint_id: int) -> CheckpointPath:
    path = CheckpointPath.parse(folder(claim, checkpoint_id))
    assert path is not None
    return path


def begin(store: Store, place: str | None = None, *, on_purpose: bool = False) -> Claim:
    """A driver that claims the job and notes what it begins from."""
    claim = take_over(store)
    beginning = Beginning(on_purpose=on_purpose)
    if place is not None:
        beginning = load(store, place).beginning(store, "orders")
    note_beginning(store, claim, beginning)
    return claim


def resume(store: Store) -> Claim:
    """A driver that claims the job, begins from `latest`, and notes that."""
    return begin(store, latest(store, "orders"))


def complete(store: Store, claim: Claim, checkpoint_id: int) -> Manifest:
    manifest = published(store, claim, checkpoint_id)
    note_completion(store, claim, checkpoint_id)
    return manifest


def publish_late(store: Store, claim: Claim, checkpoint_id: int) -> None:
    """Publish as a driver that checked its claim before another driver claimed, and writes afterwards."""
    put_metadata(store, folder(claim, checkpoint_id), manifest_of(claim, checkpoint_id))


def test_what_an_older_driver_publishes_after_its_successor_has_begun_does_not_count(store: MemoryStore) -> None:
    old = begin(store)
    complete(store, old, 1)
    resume(store)
    publish_late(store, old, 2)
    assert latest(store, "orders") == folder(old, 1)


def test_also_over_three_drivers_and_whoever_of_them_is_late(store: MemoryStore) -> None:
    first = begin(store)
    complete(store, first, 1)
    second = resume(store)
    third = resume(store)
    publish_late(store, first, 2)
    publish_late(store, second, 3)
    assert latest(store, "orders") == folder(first, 1)
    fourth = resume(store)
    complete(store, fourth, 4)
    publish_late(store, third, 5)
    assert latest(store, "orders") == folder(fourth, 4)


def test_a_stop_that_comes_late_does_not_count_either(store: MemoryStore) -> None:
    old = begin(store)
    complete(store, old, 1)
    resume(store)
    note_stop(store, old, 2, "file:///savepoints/savepoint-0a1b2c-1d2e3f")
    assert latest(store, "orders") == folder(old, 1)


def test_a_first_checkpoint_that_comes_late_leaves_a_job_that_began_anew_anew(store: MemoryStore) -> None:
    old = begin(store)
    resume(store)
    publish_late(store, old, 1)
    assert latest(store, "orders") is None


def test_a_driver_that_died_before_it_said_where_it_begins_has_done_nothing(store: MemoryStore) -> None:
    """So a checkpoint that the older driver published meanwhile is complete, and is found."""
    old = begin(store)
    complete(store, old, 1)
    take_over(store)
    publish_late(store, old, 2)
    assert latest(store, "orders") == folder(old, 2)


def test_timelines_without_a_note_count_by_their_checkpoints(store: MemoryStore) -> None:
    """Their drivers died before they wrote one: the newest timeline that has a checkpoint counts."""
    old = take_over(store)
    published(store, old, 7)
    new = take_over(store)
    assert latest(store, "orders") == folder(old, 7)
    published(store, new, 3)
    take_over(store)
    assert latest(store, "orders") == folder(new, 3)
    resume(store)
    publish_late(store, new, 4)
    assert latest(store, "orders") == folder(new, 3)


def test_a_run_from_elsewhere_goes_on_from_there(store: MemoryStore) -> None:
    complete(store, begin(store), 1)
    elsewhere = "file:///savepoints/savepoint-0a1b2c-1d2e3f"
    note_beginning(store, take_over(store), Beginning(elsewhere, "00000009-0a1b2c3d", 7))
    assert latest(store, "orders") == elsewhere


# -- nothing is there, and something was -------------------------------------------------------------------------------


@pytest.mark.parametrize("on_purpose", [True, False])
def test_a_job_that_died_before_its_first_checkpoint_begins_anew_by_itself(
    store: MemoryStore, on_purpose: bool
) -> None:
    assert latest(store, "orders") is None
    begin(store, on_purpose=on_purpose)
    assert latest(store, "orders") is None
    resume(store)
    assert latest(store, "orders") is None


def test_when_the_checkpoints_of_the_last_run_are_gone_nothing_is_chosen(store: MemoryStore) -> None:
    """The job may neither begin anew nor from that run's beginning: output since then is committed."""
    first = begin(store)
    complete(store, first, 1)
    second = resume(store)
    complete(store, second, 2)
    store.delete(metadata_path(folder(second, 2)))
    with pytest.raises(CheckpointNotFoundError) as refused:
        latest(store, "orders")
    assert str(refused.value) == (
        "Job 'orders' has completed checkpoints at memory://, but none of its last run is there any more: they went "
        "when it finished or was cancelled, or somebody removed them. To begin anew on purpose, start the job without "
        "execution.state-recovery.path, or remove the folder memory://orders; to go on, set "
        "execution.state-recovery.path to a checkpoint or savepoint."
    )
    store.delete(*(entry.path for entry in store.list("orders")))
    assert latest(store, "orders") is None


def test_a_run_that_began_anew_and_came_to_nothing_is_no_reason_to_repeat_what_was_committed(
    store: MemoryStore,
) -> None:
    old = begin(store)
    complete(store, old, 1)
    begin(store, on_purpose=True)
    with pytest.raises(CheckpointNotFoundError, match=rf"to go on, set \S+ to memory://{folder(old, 1)}\.$"):
        latest(store, "orders")
    complete(store, begin(store, on_purpose=True), 1)
    assert latest(store, "orders") != folder(old, 1)


# -- what a damaged one stands on --------------------------------------------------------------------------------------


def test_older_ones_are_those_that_a_checkpoint_stands_on(store: MemoryStore) -> None:
    first = begin(store)
    for number in (1, 2):
        complete(store, first, number)
    aside = begin(store, folder(first, 1))
    complete(store, aside, 3)
    second = begin(store, folder(first, 2))
    for number in (4, 5):
        complete(store, second, number)
    publish_late(store, first, 3)
    found = [str(each) for each in older_checkpoints(store, path_of(second, 5))]
    assert found == [folder(second, 4), folder(first, 2), folder(first, 1)]


def test_what_a_run_that_began_anew_stands_on_is_its_own(store: MemoryStore) -> None:
    complete(store, begin(store), 1)
    second = begin(store, on_purpose=True)
    complete(store, second, 1)
    assert list(older_checkpoints(store, path_of(second, 1))) == []


def test_what_it_was_stopped_with_and_before_that(store: MemoryStore) -> None:
    first = begin(store)
    complete(store, first, 1)
    note_stop(store, first, 2, "file:///savepoints/savepoint-0a1b2c-1d2e3f")
    second = take_over(store)
    note_beginning(store, second, Beginning("file:///savepoints/savepoint-0a1b2c-1d2e3f", first.timeline, 2))
    complete(store, second, 3)
    assert [str(each) for each in older_checkpoints(store, path_of(second, 3))] == [folder(first, 1)]


@pytest.mark.parametrize(("content", "sentence"), [(b"?", "is damaged"), (b"\x81\xa7version\x02", "has format 2")])
def test_a_note_that_cannot_be_read_is_refused_by_name(store: MemoryStore, content: bytes, sentence: str) -> None:
    claim = begin(store)
    store.put(begun_path(f"orders/{claim.timeline}"), content)
    with pytest.raises(CorruptCheckpointError, match=rf"orders/{claim.timeline}/_begun in memory:// {sentence}"):
        latest(store, "orders")


# -- every interleaving ------------------------------------------------------------------------------------------------


ORDERS = sorted(set(itertools.permutations("AAABBBBBB")))


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_a_third_driver_finds_what_the_second_began_from(order: tuple[str, ...]) -> None:
    """At any interleaving: the first driver writes and checks, the second claims, looks, notes and checks."""
    store = MemoryStore()
    old = begin(store)
    complete(store, old, 1)
    turns = Turns(order)
    store_a, store_b = TurnStore(store, turns, "A"), TurnStore(store, turns, "B")

    def b() -> Any:
        claim = take_over(store_b, driver="host-b:99")
        place = latest(store_b, "orders")
        note_beginning(store_b, claim, Beginning(str(place).removeprefix("orders/"), old.timeline, 1))
        check_owner(store_b, claim)
        return place

    outcomes = run_together(turns, A=lambda: publish(store_a, old, manifest_of(old, 2)), B=b)
    assert latest(store, "orders") == outcomes["B"]
    if outcomes["B"] == folder(old, 1):
        assert isinstance(outcomes["A"], OwnershipLostError), "it committed what nobody goes on from"
