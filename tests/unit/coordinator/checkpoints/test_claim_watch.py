"""A driver that publishes nothing still notices that another one has taken over (I14), at a bounded rate of looks."""

from __future__ import annotations

import threading

import pytest

from rekindle.checkpoint.ownership import claim_first, claim_next, refuse_taken_over
from rekindle.checkpoint.store.local import LocalStore
from rekindle.coordinator.checkpoints.claim_watch import ClaimWatch
from rekindle.errors import OwnershipLostError, StoreError
from rekindle.testing import ManualClock


class Looks:
    """Counts the looks of a watch with an interval of ten seconds, and what they found."""

    def __init__(self) -> None:
        self.count = 0
        self.error: Exception | None = None
        self.lost: list[OwnershipLostError] = []
        self.clock = ManualClock(1)
        self.watch = ClaimWatch(self.look, 10.0, self.lost.append, self.clock)

    def look(self) -> None:
        self.count += 1
        if self.error is not None:
            raise self.error

    def after(self, seconds: int) -> int:
        """The looks in this time, with one question each second."""
        before = self.count
        for _ in range(seconds):
            self.clock.advance(1000)
            self.watch.look_if_due()
        return self.count - before


@pytest.fixture
def looks() -> Looks:
    return Looks()


def test_there_is_one_look_per_interval(looks: Looks) -> None:
    assert looks.after(9) == 0
    assert looks.after(51) == 6


def test_a_publication_is_a_look(looks: Looks) -> None:
    for _ in range(5):
        assert looks.after(8) == 0
        looks.watch.looked()


def test_a_store_that_fails_is_asked_again_and_ends_nothing(looks: Looks) -> None:
    looks.error = StoreError("the network is gone")
    assert looks.after(40) == 4
    assert looks.lost == []


def test_a_lost_claim_is_told_once_and_never_after_the_end(looks: Looks) -> None:
    looks.error = OwnershipLostError("another driver has it")
    looks.after(40)
    assert looks.lost == [looks.error]
    ended = Looks()
    ended.error = looks.error
    ended.watch.close()
    ended.after(40)
    assert ended.lost == []


def test_the_thread_looks_by_itself_and_ends_with_the_watch() -> None:
    looked = threading.Event()
    clock = ManualClock(1)
    watch = ClaimWatch(looked.set, 0.01, lambda lost: None, clock).start()
    clock.advance(60_000)
    assert looked.wait(30)
    watch.close()


def test_only_a_newer_claim_is_a_takeover(tmp_path) -> None:
    store = LocalStore(tmp_path)
    claim = claim_first(store, "orders", "1" * 32, "a:1", 1)
    refuse_taken_over(store, claim)
    claim = claim_next(store, claim, 2)
    refuse_taken_over(store, claim)
    claim_first(store, "orders", "2" * 32, "b:2", 3)
    with pytest.raises(OwnershipLostError, match="now belong to the driver b:2"):
        refuse_taken_over(store, claim)
    for path in tmp_path.rglob("owners/*"):
        path.unlink()
    refuse_taken_over(store, claim)  # nobody else has it
