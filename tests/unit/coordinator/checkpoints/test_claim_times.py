"""The time of a claim rises with attempts, drivers and restores, also if no clock moves: sinks order attempts by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rekindle.checkpoint.ownership import claim_first
from rekindle.checkpoint.store.memory import MemoryStore
from tests.unit.coordinator.checkpoints.driver_harness import Driver, resumed, stopped

JOB = "0" * 32
RESTORE = "execution.state-recovery.path"


def restored(directory: Path, savepoint: str) -> Driver:
    settings: dict[str, Any] = {RESTORE: savepoint}
    return Driver(directory, **settings)


def test_restarts_and_other_drivers_claim_later_times(tmp_path: Path) -> None:
    first = Driver(tmp_path)
    times = [first.basis.claimed_ms]
    first.begin()
    times.append(first.basis.claimed_ms)
    times.append(Driver(tmp_path).basis.claimed_ms)
    times.append(resumed(tmp_path).basis.claimed_ms)
    assert times == sorted(set(times))


def test_a_clock_that_went_back_does_not_lower_the_time_of_a_claim() -> None:
    store = MemoryStore()
    times = [claim_first(store, "orders", JOB, "host:1", now_ms).claimed_ms for now_ms in (5000, 3000, 3000, 9000)]
    assert times == [5000, 5001, 5002, 9000]


def test_a_restore_in_another_directory_claims_a_later_time_each_time_it_is_tried(tmp_path: Path) -> None:
    """The savepoint says when its run was claimed: the directory, which is new, cannot."""
    old = Driver(tmp_path / "old")
    for _ in range(20):
        old.begin()
    settings: dict[str, Any] = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    runs = Driver(tmp_path / "old", **settings)
    savepoint = stopped(runs)
    times = [old.basis.claimed_ms, runs.basis.claimed_ms]
    for _ in range(3):
        again = restored(tmp_path / "new", savepoint)
        times.append(again.basis.claimed_ms)
        again.begin()
        times.append(again.basis.claimed_ms)
    assert times == sorted(set(times))
