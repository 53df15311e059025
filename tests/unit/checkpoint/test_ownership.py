"""I14: attempts are numbered over all drivers; of two drivers of one job only the newer one publishes and deletes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from rekindle.checkpoint import publish as publishing
from rekindle.checkpoint.latest_checkpoint import latest
from rekindle.checkpoint.ownership import Claim, check_owner, claim_first, claim_next, newest_attempt
from rekindle.checkpoint.paths import owners_folder
from rekindle.checkpoint.publish import publish
from rekindle.checkpoint.retention import Deletion, delete_files
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.store.port import FileEntry, Store
from rekindle.errors import CheckpointError, OwnershipLostError, StoreError
from tests.unit.checkpoint.samples import JOB_ID, NOW_MS, contents, manifest_of, published, take_over
from tests.unit.checkpoint.store_turns import Turns, TurnStore, run_together


def test_attempts_count_over_restarts_and_drivers() -> None:
    store = MemoryStore()
    first = take_over(store)
    restarted = claim_next(store, first, NOW_MS)
    second_driver = take_over(store)
    assert [first.attempt, restarted.attempt, second_driver.attempt] == [1, 2, 3]
    assert first.timeline == restarted.timeline != second_driver.timeline
    assert claim_first(store, "another job", JOB_ID, "host-a:17", NOW_MS).attempt == 1


def test_the_older_driver_is_stopped_with_a_sentence() -> None:
    store = MemoryStore()
    old = take_over(store)
    published(store, old, 1)
    take_over(store, driver="host-b:99")
    before = contents(store)
    for act in (
        lambda: publish(store, old, manifest_of(old, 2)),
        lambda: delete_files(store, old, Deletion(files=[next(iter(before))])),
        lambda: claim_next(store, old, NOW_MS),
        lambda: check_owner(store, old),
    ):
        with pytest.raises(OwnershipLostError, match=r"job 'orders' at memory:// now belong to the driver host-b:99"):
            act()
    assert contents(store) == before


def test_an_older_attempt_of_the_same_driver_is_stopped_too() -> None:
    store = MemoryStore()
    old = take_over(store)
    new = claim_next(store, old, NOW_MS)
    with pytest.raises(OwnershipLostError):
        publish(store, old, manifest_of(old, 1))
    publish(store, new, manifest_of(new, 1))


def test_a_directory_that_was_emptied_is_noticed() -> None:
    store = MemoryStore()
    claim = take_over(store)
    store.delete(*(entry.path for entry in store.list()))
    with pytest.raises(OwnershipLostError, match="were removed while the job ran"):
        publish(store, claim, manifest_of(claim, 1))


def test_a_claim_that_cannot_be_read_still_stops_the_older_driver() -> None:
    store = MemoryStore()
    old = take_over(store)
    store.put(owners_folder("orders") + "/00000009", b"\xc1 damaged")
    with pytest.raises(OwnershipLostError, match="now belong to another driver"):
        check_owner(store, old)


def test_claims_do_not_pile_up() -> None:
    store = MemoryStore()
    claim = take_over(store)
    for _ in range(50):
        claim = claim_next(store, claim, NOW_MS)
    assert claim.attempt == newest_attempt(store, "orders") == 51
    assert len(store.list()) <= 6


def test_a_claim_that_came_too_late_is_made_again() -> None:
    """Between look and claim, the old driver restarted so often that the number is free again."""

    class Busy(MemoryStore):
        meanwhile: Callable[[], None] | None = None

        def put_if_absent(self, path: str, data: bytes) -> bool:
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            return super().put_if_absent(path, data)

    store = Busy()
    old = take_over(store)

    def restart_often() -> None:
        claim = old
        for _ in range(10):
            claim = claim_next(store, claim, NOW_MS)

    store.meanwhile = restart_often
    claim = take_over(store, driver="host-b:99")
    assert claim.attempt == newest_attempt(store, "orders") == 12
    check_owner(store, claim)


def test_a_manifest_of_another_attempt_is_our_own_mistake() -> None:
    store = MemoryStore()
    claim = take_over(store)
    for wrong in (take_over(store, "another"), claim_next(store, claim, NOW_MS)):
        with pytest.raises(AssertionError, match="a manifest of another"):
            publish(store, claim, manifest_of(wrong, 1))


def test_a_checkpoint_is_published_once() -> None:
    store = MemoryStore()
    claim = take_over(store)
    folder = publish(store, claim, manifest_of(claim, 1))
    before = contents(store)
    assert publish(store, claim, manifest_of(claim, 1)) == folder
    with pytest.raises(CheckpointError, match="already another checkpoint"):
        publish(store, claim, manifest_of(claim, 1, timestamp_ms=5))
    assert contents(store) == before


def test_a_write_whose_answer_was_lost_is_recognised() -> None:
    class AskingTwice(MemoryStore):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            super().put_if_absent(path, data)
            return super().put_if_absent(path, data)

    store = AskingTwice()
    claim = take_over(store)
    assert claim.attempt == 1
    assert publish(store, claim, manifest_of(claim, 1)) == latest(store, "orders")


def test_manifests_are_deleted_before_their_files() -> None:
    class Recording(MemoryStore):
        deleted: list[tuple[str, ...]] = []

        def delete(self, *paths: str) -> None:
            self.deleted.append(paths)

    store = Recording()
    delete_files(store, take_over(store), Deletion(manifests=["m"], files=["f", "g"]))
    assert store.deleted == [("m",), ("f", "g")]
    delete_files(store, take_over(store), Deletion())
    assert len(store.deleted) == 2


# -- every interleaving ------------------------------------------------------------------------------------------------


ORDERS = sorted(set(itertools.permutations("AAABBBBB")))


def publish_against_take_over(order: tuple[str, ...]) -> tuple[Any, str | None, str]:
    """Driver A publishes checkpoint 2 while driver B takes over and looks for the latest one."""
    store = MemoryStore()
    old = take_over(store)
    published(store, old, 1)
    turns = Turns(order)
    store_a, store_b = TurnStore(store, turns, "A"), TurnStore(store, turns, "B")

    def b() -> str | None:
        take_over(store_b, driver="host-b:99")
        return latest(store_b, "orders")

    outcomes = run_together(turns, A=lambda: publish(store_a, old, manifest_of(old, 2)), B=b)
    return outcomes["A"], outcomes["B"], f"orders/{old.timeline}"


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_what_the_old_driver_may_commit_the_new_one_has_seen(order: tuple[str, ...]) -> None:
    outcome, seen, timeline = publish_against_take_over(order)
    if isinstance(outcome, str):
        assert outcome == seen == f"{timeline}/chk-2"
    else:
        assert isinstance(outcome, OwnershipLostError), outcome
        assert seen in (f"{timeline}/chk-1", f"{timeline}/chk-2")


def test_without_the_second_look_it_would_go_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count()

    def only_before_publishing(store: Store, claim: Claim) -> None:
        if next(looks) % 2 == 0:
            check_owner(store, claim)

    monkeypatch.setattr(publishing, "check_owner", only_before_publishing)
    wrong = set()
    for order in ORDERS:
        looks = itertools.count()
        outcome, seen, _ = publish_against_take_over(order)
        wrong.add(isinstance(outcome, str) and outcome != seen)
    assert wrong == {True, False}


CLAIMS = sorted(set(itertools.permutations("AAABBB")))


@pytest.mark.parametrize("order", CLAIMS, ids="".join)
def test_two_drivers_that_start_at_once_have_different_attempts(order: tuple[str, ...]) -> None:
    store = MemoryStore()
    turns = Turns(order)
    claims = run_together(
        turns,
        A=lambda: take_over(TurnStore(store, turns, "A")),
        B=lambda: take_over(TurnStore(store, turns, "B")),
    ).values()
    numbers = sorted(claim.attempt for claim in claims)
    assert len(set(numbers)) == 2
    for claim in claims:
        if claim.attempt == numbers[1]:
            check_owner(store, claim)
        else:
            with pytest.raises(OwnershipLostError):
                check_owner(store, claim)


def test_a_store_fault_is_not_a_lost_claim() -> None:
    class Down(MemoryStore):
        down = False

        def list(self, prefix: str = "") -> list[FileEntry]:
            if self.down:
                raise StoreError("no answer", retryable=True)
            return super().list(prefix)

    store = Down()
    claim = take_over(store)
    store.down = True
    with pytest.raises(StoreError, match="no answer"):
        publish(store, claim, manifest_of(claim, 1))


class FailsOnce(MemoryStore):
    """Fails at the n-th call after it is armed, before or after the call has had its effect."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: int | None = None
        self.after = False

    def _count(self) -> bool:
        if self.calls is None:
            return False
        self.calls -= 1
        return self.calls == 0

    def _answer(self, call: Callable[[], Any]) -> Any:
        fails = self._count()
        done = None if fails and not self.after else call()
        if fails:
            raise StoreError("no answer", retryable=True)
        return done

    def list(self, prefix: str = "") -> list[FileEntry]:
        return self._answer(lambda: super(FailsOnce, self).list(prefix))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._answer(lambda: super(FailsOnce, self).read(path, offset, length))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._answer(lambda: super(FailsOnce, self).put_if_absent(path, data))

    def delete(self, *paths: str) -> None:
        self._answer(lambda: super(FailsOnce, self).delete(*paths))


@pytest.mark.parametrize("after", [False, True], ids=["refused", "answer lost"])
@pytest.mark.parametrize("call", range(1, 8))
def test_a_driver_does_not_take_its_own_claim_for_anothers(call: int, after: bool) -> None:
    """I14: the store fails once, at any call while the next attempt is claimed; the attempt after that is claimed."""
    store = FailsOnce()
    claim = take_over(store)
    for _ in range(6):  # so that there are old claims to forget
        claim = claim_next(store, claim, NOW_MS)
    store.calls, store.after = call, after
    try:
        last = claim_next(store, claim, NOW_MS + 1)
    except StoreError:
        last = claim
    store.calls = None
    again = claim_next(store, last, NOW_MS + 2)
    assert again.timeline == claim.timeline
    assert again.attempt > last.attempt
    publish(store, again, manifest_of(again, 1))
    with pytest.raises(OwnershipLostError):
        publish(store, last, manifest_of(last, 2))


def test_a_claim_of_another_driver_is_not_taken_for_the_own_one() -> None:
    store = MemoryStore()
    old = take_over(store)
    take_over(store, driver="host-b:99")
    with pytest.raises(OwnershipLostError, match="host-b:99"):
        claim_next(store, old, NOW_MS)
