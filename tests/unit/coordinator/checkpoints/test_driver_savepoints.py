"""Savepoints and stops with a savepoint in the checkpoint driver (I17)."""

from __future__ import annotations

import pytest

from rekindle.checkpoint import load_checkpoint
from rekindle.checkpoint.latest_checkpoint import latest
from rekindle.checkpoint.ownership import claim_first
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.errors import CheckpointError, OwnershipLostError, StoreError
from rekindle.protocol import (
    CheckpointCompleted,
    Committed,
)
from tests.unit.coordinator.checkpoints.driver_harness import Driver, stopped


@pytest.fixture
def driver(tmp_path) -> Driver:
    return Driver(tmp_path / "checkpoints", **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})


def test_a_savepoint_is_answered_with_its_location_and_notifies_no_task(driver, tmp_path):
    """I17: it neither notifies nor becomes the restore point."""
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    order = driver.cut()
    assert order.savepoint
    driver.checkpointing.on_message(driver.snapshot(order))
    savepoint = asked.result(0)
    assert savepoint.location.startswith(f"file://{tmp_path}/savepoints/savepoint-")
    assert driver.sent == []
    assert driver.checkpointing.ledger.restore_point is None
    location = load_checkpoint.locate(savepoint.location)
    assert load_checkpoint.load(location.store, location.path, deep=True).manifest.checkpoint_id == 1


def test_a_stop_ends_when_the_commit_is_acknowledged_and_restarts_from_its_savepoint(driver):
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP, drain=True)
    order = driver.cut()
    assert order.drain
    driver.checkpointing.input_ended()
    driver.checkpointing.on_message(driver.snapshot(order))
    assert driver.sent == [CheckpointCompleted(1, True)]
    assert not driver.checkpointing.ended
    assert not asked.done()
    driver.checkpointing.failed("killed while it committed")
    driver.begin()
    assert driver.basis.restored_id == 1
    assert driver.basis.restore_root.startswith("savepoint-")
    assert driver.sent[-1] == CheckpointCompleted(1, True), "only the commits are left to do"
    (chain,) = driver.plan.chains
    driver.checkpointing.on_message(Committed(1, chain.id, 0))
    assert driver.checkpointing.ended
    assert asked.result(0).id == 1


@pytest.mark.parametrize("path", ["latest", None])
def test_latest_is_the_savepoint_that_the_job_was_stopped_with(tmp_path, path):
    """The job's checkpoints are older, and the output after them is committed."""
    settings = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    keys = settings | ({"execution.state-recovery.path": path} if path else {})
    driver = Driver(tmp_path / "checkpoints", **keys)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert latest(driver.store, "shell").endswith("/chk-1")
    savepoint = stopped(driver)
    assert latest(driver.store, "shell") == savepoint
    again = Driver(tmp_path / "checkpoints", **settings, **{"execution.state-recovery.path": "latest"})
    assert again.basis.restored_id == 2
    assert latest(driver.store, "shell") == savepoint, "until there is something newer"
    again.checkpointing.on_message(again.snapshot(again.cut()))
    assert latest(driver.store, "shell") == f"{again.basis.storage.root}/chk-3"


def test_the_savepoint_of_a_stop_is_noted_before_anything_is_committed(driver):
    """A job that is killed in between goes on from the savepoint; a restart that only commits keeps the note."""
    driver.checkpointing.requests.ask(CheckpointKind.STOP)
    latest_when_notified = []
    driver.checkpointing.started(lambda message: latest_when_notified.append(latest_of(driver)))
    order = driver.cut()
    driver.checkpointing.on_message(driver.snapshot(order))
    assert latest_when_notified == [latest_of(driver)] != [None]
    driver.checkpointing.failed("killed while it committed")
    driver.begin()
    assert latest_of(driver) is not None


def latest_of(driver) -> str | None:
    return latest(driver.store, "shell")


def test_a_stop_that_fails_with_its_note_leaves_neither_note_nor_savepoint(driver, tmp_path, monkeypatch):
    """The store has written the note and gave no answer: the job goes on, and `latest` is its last checkpoint."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP)
    taken = driver.snapshot(driver.cut())
    put = driver.store.put_if_absent

    def put_then_fail(path, data):
        put(path, data)
        raise StoreError("the network is gone for a moment")

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "put_if_absent", put_then_fail)
        driver.checkpointing.on_message(taken)
    with pytest.raises(CheckpointError, match="the network is gone"):
        asked.result(0)
    assert not driver.checkpointing.ended
    assert latest_of(driver).endswith("/chk-1")
    assert not [path for path in (tmp_path / "savepoints").rglob("*") if path.is_file()]


def test_the_files_of_a_savepoint_that_failed_with_its_attempt_are_deleted(driver, tmp_path):
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    order = driver.cut()
    driver.snapshot(order)
    driver.checkpointing.failed("a slot was killed")
    with pytest.raises(CheckpointError, match="restarting"):
        asked.result(0)
    driver.begin()
    assert not list((tmp_path / "savepoints").rglob("*.state"))


def test_a_request_is_answered_although_the_job_fails_at_the_same_time(driver):
    """A checkpoint and a savepoint expire together: the first fails the job, a caller waits for the second."""
    driver.cut()
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    driver.cut()
    driver.clock.advance(10 * driver.checkpointing.ledger.policy.timeout_ms)
    with pytest.raises(CheckpointError) as failure:
        driver.checkpointing.next_order({})
    with pytest.raises(CheckpointError, match="expired"):
        asked.result(0)
    assert str(failure.value) == (
        "Exceeded checkpoint tolerable failure threshold (0). "
        "Checkpoint 1 failed: Checkpoint expired before completing."
    )


def test_a_drain_into_a_directory_that_cannot_be_written_lets_the_job_go_on(driver, tmp_path):
    (tmp_path / "taken").write_text("a file where the directory should be")
    asked = driver.checkpointing.requests.ask(CheckpointKind.STOP, str(tmp_path / "taken"), drain=True)
    driver.checkpointing.take_requests()
    assert driver.checkpointing.next_order({}) is None
    with pytest.raises(CheckpointError, match="taken"):
        asked.result(0)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.sent[-1] == CheckpointCompleted(2, False)


def test_an_older_driver_cannot_complete_a_savepoint(driver, tmp_path):
    """I14: savepoints are fenced too."""
    driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    order = driver.cut()
    claim_first(driver.store, "shell", "1" * 32, "another:1", 0)
    with pytest.raises(OwnershipLostError, match="another:1"):
        driver.checkpointing.on_message(driver.snapshot(order))
    assert not list((tmp_path / "savepoints").rglob("_metadata"))
