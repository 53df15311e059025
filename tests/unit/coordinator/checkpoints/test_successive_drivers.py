"""I21: drivers that come after each other, on a real store; none restores a checkpoint that another one undid."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rekindle.checkpoint.latest_checkpoint import latest
from rekindle.checkpoint.load_checkpoint import load
from rekindle.checkpoint.paths import begun_path
from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import JobStatus
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.errors import CheckpointNotFoundError, CorruptCheckpointError, OwnershipLostError, StoreError
from tests.unit.coordinator.checkpoints.driver_harness import Driver, finish, resumed, stopped

RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
MODES = ["NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"]


def complete(driver: Driver) -> int:
    order = driver.cut()
    driver.checkpointing.on_message(driver.snapshot(order))
    return order.id


def publish_after(driver: Driver, monkeypatch: pytest.MonkeyPatch, meanwhile) -> None:
    """Publish a checkpoint; `meanwhile` is called between the check of the claim and the write."""
    taken = driver.snapshot(driver.cut())
    put = driver.store.put_if_absent

    def put_late(path: str, data: bytes) -> bool:
        if path.endswith("/_metadata"):
            meanwhile()
        return put(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "put_if_absent", put_late)
        with pytest.raises(OwnershipLostError):
            driver.checkpointing.on_message(taken)


def test_a_checkpoint_published_after_the_successor_began_does_not_count(tmp_path, monkeypatch):
    """A publishes 2 after B has begun from 1; B dies before its first checkpoint; C begins from 1 as well."""
    first = Driver(tmp_path)
    assert complete(first) == 1
    begun = []
    publish_after(first, monkeypatch, lambda: begun.append(resumed(tmp_path)))
    assert begun[0].basis.restored_id == 1
    third = resumed(tmp_path)
    assert third.basis.restored_id == 1
    assert third.basis.restore_root == first.basis.storage.root
    assert complete(third) == 3, "an id was used again"
    assert resumed(tmp_path).basis.restored_id == 3


def test_a_stop_noted_after_the_successor_began_does_not_count(tmp_path, monkeypatch):
    settings = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    first = Driver(tmp_path / "checkpoints", **settings)
    first.checkpointing.requests.ask(CheckpointKind.STOP)
    publish_after_note(first, monkeypatch, lambda: resumed(tmp_path / "checkpoints"))
    assert list((tmp_path / "checkpoints").rglob("_stopped")), "nothing came late"
    assert resumed(tmp_path / "checkpoints").basis.restored_id is None


def publish_after_note(driver: Driver, monkeypatch: pytest.MonkeyPatch, meanwhile) -> None:
    """Publish the savepoint of a stop; `meanwhile` is called before its note is written."""
    taken = driver.snapshot(driver.cut())
    put = driver.store.put_if_absent

    def put_late(path: str, data: bytes) -> bool:
        meanwhile()
        return put(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "put_if_absent", put_late)
        with pytest.raises(OwnershipLostError):
            driver.checkpointing.on_message(taken)


def test_a_savepoint_published_after_the_successor_began_is_deleted(tmp_path):
    """It was not answered or notified, and its transactions may be gone."""
    driver = Driver(tmp_path / "checkpoints", **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    taken = driver.snapshot(driver.cut())
    place = next(iter(driver.checkpointing._under_way.values())).savepoint
    put = place.store.put_if_absent

    def put_late(path: str, data: bytes) -> bool:
        resumed(tmp_path / "checkpoints")
        return put(path, data)

    place.store.put_if_absent = put_late
    with pytest.raises(OwnershipLostError):
        driver.checkpointing.on_message(taken)
    driver.checkpointing.job_ended(JobStatus.FAILED)
    assert asked.exception(0) is not None
    assert not [path for path in (tmp_path / "savepoints").rglob("*") if path.is_file()]


def test_a_driver_that_is_overtaken_while_it_notes_its_beginning_stops(tmp_path, monkeypatch):
    """The note is written before the attempt does anything else; then the claim is checked."""
    first = Driver(tmp_path)
    complete(first)

    def overtaken():
        found = latest(first.store, "shell")
        Driver(tmp_path)
        return load(first.store, found)

    with pytest.raises(OwnershipLostError):
        Driver(tmp_path, overtaken)


def test_a_restart_keeps_the_note_and_restores_the_runs_own_checkpoint(tmp_path):
    first = Driver(tmp_path)
    complete(first)
    second = resumed(tmp_path)
    note = second.store.read(begun_path(second.basis.storage.root))
    second.checkpointing.failed("on purpose")
    second.begin()
    assert second.basis.restored_id == 1
    complete(second)
    second.checkpointing.failed("on purpose")
    second.begin()
    assert second.basis.restored_id == 2
    assert second.store.read(begun_path(second.basis.storage.root)) == note


def test_going_back_to_an_older_checkpoint_is_noted(tmp_path):
    """I16: the next driver must not restore the damaged checkpoint either."""
    keys = {"rekindle.state-recovery.allow-older-checkpoint": "true", "execution.checkpointing.num-retained": "3"}
    first = Driver(tmp_path, **keys)
    for _ in range(3):
        complete(first)
    second = resumed(tmp_path, **keys)
    assert second.basis.restored_id == 3
    damage = CorruptCheckpointError("The state file x is damaged.")
    second.checkpointing.failed(str(damage))
    second.checkpointing.go_back(damage)
    second.begin()
    assert second.basis.restored_id == 2
    assert resumed(tmp_path, **keys).basis.restored_id == 2


def test_latest_after_a_run_from_a_path_is_that_path(tmp_path):
    first = Driver(tmp_path, **{"execution.checkpointing.num-retained": "3"})
    complete(first)
    complete(first)
    named = {"execution.state-recovery.path": str(tmp_path / first.basis.storage.root / "chk-1")}
    assert Driver(tmp_path, **named).basis.restored_id == 1
    assert resumed(tmp_path).basis.restored_id == 1


def test_latest_works_in_a_moved_directory(tmp_path):
    first = Driver(tmp_path / "here")
    complete(first)
    resumed(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert resumed(tmp_path / "there").basis.restored_id == 1


# -- half-written files ------------------------------------------------------------------------------------------------


def half_written(driver: Driver, *names: str) -> list[Path]:
    files = [driver.store.directory / f"{name}.0a1b2c3d.part" for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half")
    return files


def test_half_written_files_of_an_attempt_are_deleted_by_the_next_attempt(tmp_path):
    driver = Driver(tmp_path)
    complete(driver)
    left = half_written(driver, f"{driver.basis.storage.root}/chk-2/_metadata")
    driver.checkpointing.failed("on purpose")
    driver.begin()
    assert not any(file.exists() for file in left)


def test_half_written_files_of_a_driver_are_deleted_by_the_next_driver(tmp_path):
    driver = Driver(tmp_path)
    complete(driver)
    root = driver.basis.storage.root
    left = half_written(driver, f"{root}/chk-2/_metadata", f"{root}/_begun", "shell/owners/00000001")
    assert resumed(tmp_path).basis.restored_id == 1
    assert not any(file.exists() for file in left)


def test_half_written_files_that_cannot_be_deleted_do_not_fail_the_job(tmp_path, caplog, monkeypatch):
    driver = Driver(tmp_path)
    complete(driver)
    half_written(driver, f"{driver.basis.storage.root}/chk-2/_metadata")
    delete = LocalStore.delete

    def refuse(store, *paths):
        if any(path.endswith(".part") for path in paths):
            raise StoreError("not yours")
        delete(store, *paths)

    monkeypatch.setattr(LocalStore, "delete", refuse)
    assert resumed(tmp_path).basis.restored_id == 1
    assert "half-written files of earlier runs could not be deleted: not yours" in caplog.text.lower()


# -- `latest` after each end of a job ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_keeps_its_checkpoints(tmp_path, mode):
    driver = Driver(tmp_path, **{RETENTION: mode})
    complete(driver)
    driver.checkpointing.failed("on purpose")
    driver.checkpointing.job_ended(JobStatus.FAILED)
    assert resumed(tmp_path).basis.restored_id == 1


def end(driver: Driver, status: JobStatus) -> None:
    if status is JobStatus.FINISHED:
        driver.checkpointing.input_ended()
        finish(driver, driver.cut())
    else:
        driver.checkpointing.job_ended(status)


@pytest.mark.parametrize("status", [JobStatus.FINISHED, JobStatus.CANCELED])
def test_latest_refuses_a_job_whose_checkpoints_were_deleted_at_its_end(tmp_path, status):
    """Also when an older run has left checkpoints: the output after them is committed."""
    complete(Driver(tmp_path))
    driver = resumed(tmp_path) if status is JobStatus.CANCELED else Driver(tmp_path)
    complete(driver)
    end(driver, status)
    with pytest.raises(CheckpointNotFoundError, match=r"To begin anew on purpose, start the job without"):
        resumed(tmp_path)
    assert complete(Driver(tmp_path)) == 1, "on purpose"
    assert resumed(tmp_path).basis.restored_id == 1


def test_latest_begins_anew_after_a_job_without_a_completed_checkpoint(tmp_path):
    for status in (JobStatus.FAILED, JobStatus.CANCELED):
        driver = resumed(tmp_path)
        assert driver.basis.restored_id is None
        driver.cut()
        driver.checkpointing.job_ended(status)


def test_latest_is_the_savepoint_of_a_stop_also_after_a_driver_without_a_checkpoint(tmp_path):
    settings = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    driver = Driver(tmp_path / "checkpoints", **settings)
    complete(driver)
    stopped(driver)
    for _ in range(2):
        assert resumed(tmp_path / "checkpoints", **settings).basis.restored_id == 2
    shutil.rmtree(tmp_path / "savepoints")
    with pytest.raises(CheckpointNotFoundError, match=r"last began from, file://.*, which is not there any more"):
        resumed(tmp_path / "checkpoints", **settings)


def test_latest_works_in_a_directory_without_notes(tmp_path):
    """Older versions wrote no notes."""
    driver = Driver(tmp_path)
    complete(driver)
    for note in Path(tmp_path).rglob("_[bc]*"):
        note.unlink()
    assert resumed(tmp_path).basis.restored_id == 1
