"""I21: drivers that come after each other, played against a real store; none goes on from what another undid."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rekindle.checkpoint.latest import latest
from rekindle.checkpoint.paths import begun_path
from rekindle.checkpoint.resolve import load
from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import JobStatus
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.errors import CheckpointNotFoundError, CorruptCheckpointError, OwnershipLostError, StoreError
from tests.unit.coordinator.checkpoints.test_driver import Driver, finish, resumed, stopped

RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
MODES = ["NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"]


def complete(driver: Driver) -> int:
    order = driver.cut()
    driver.checkpointing.on_message(driver.snapshot(order))
    return order.id


def publish_after(driver: Driver, monkeypatch: pytest.MonkeyPatch, meanwhile) -> None:
    """The driver looks at its claim, `meanwhile` happens, and then it writes: it finds out afterwards."""
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


def test_what_the_successor_began_from_counts_and_not_what_came_late(tmp_path, monkeypatch):
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


def test_also_when_nothing_had_completed_and_when_it_is_a_stop(tmp_path, monkeypatch):
    settings = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    first = Driver(tmp_path / "checkpoints", **settings)
    first.checkpointing.requests.ask(CheckpointKind.STOP)
    publish_after_note(first, monkeypatch, lambda: resumed(tmp_path / "checkpoints"))
    assert list((tmp_path / "checkpoints").rglob("_stopped")), "nothing came late"
    assert resumed(tmp_path / "checkpoints").basis.restored_id is None


def publish_after_note(driver: Driver, monkeypatch: pytest.MonkeyPatch, meanwhile) -> None:
    """The same with a stop: its savepoint is written, and only then its note."""
    taken = driver.snapshot(driver.cut())
    put = driver.store.put_if_absent

    def put_late(path: str, data: bytes) -> bool:
        meanwhile()
        return put(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "put_if_absent", put_late)
        with pytest.raises(OwnershipLostError):
            driver.checkpointing.on_message(taken)


def test_a_savepoint_that_comes_late_is_taken_back(tmp_path):
    """Nobody was told of it, and its transactions may be gone."""
    driver = Driver(tmp_path / "checkpoints", **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    asked = driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    taken = driver.snapshot(driver.cut())
    place = next(iter(driver.checkpointing.catalogue.savepoints.values()))
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


def test_the_beginning_is_noted_before_the_attempt_has_anything_to_tell(tmp_path, monkeypatch):
    """And a driver that finds another one just then does not act."""
    first = Driver(tmp_path)
    complete(first)

    def overtaken():
        found = latest(first.store, "shell")
        Driver(tmp_path)
        return load(first.store, found)

    with pytest.raises(OwnershipLostError):
        Driver(tmp_path, overtaken)


def test_a_restart_leaves_the_note_and_goes_on_from_the_runs_own(tmp_path):
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


def test_going_back_to_an_older_one_is_noted_too(tmp_path):
    """I16: what was undone on the way back is undone for the next driver as well."""
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


def test_a_run_from_a_path_is_gone_on_with_from_that_path(tmp_path):
    first = Driver(tmp_path, **{"execution.checkpointing.num-retained": "3"})
    complete(first)
    complete(first)
    named = {"execution.state-recovery.path": str(tmp_path / first.basis.storage.root / "chk-1")}
    assert Driver(tmp_path, **named).basis.restored_id == 1
    assert resumed(tmp_path).basis.restored_id == 1


def test_a_moved_directory_is_gone_on_with(tmp_path):
    first = Driver(tmp_path / "here")
    complete(first)
    resumed(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert resumed(tmp_path / "there").basis.restored_id == 1


# -- what a driver that died left half written -------------------------------------------------------------------------


def half_written(driver: Driver, *names: str) -> list[Path]:
    files = [driver.store.directory / f"{name}.0a1b2c3d.part" for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half")
    return files


def test_what_an_attempt_left_half_written_goes_with_the_next(tmp_path):
    driver = Driver(tmp_path)
    complete(driver)
    left = half_written(driver, f"{driver.basis.storage.root}/chk-2/_metadata")
    driver.checkpointing.failed("on purpose")
    driver.begin()
    assert not any(file.exists() for file in left)


def test_what_a_driver_left_half_written_goes_with_the_next_driver(tmp_path):
    driver = Driver(tmp_path)
    complete(driver)
    root = driver.basis.storage.root
    left = half_written(driver, f"{root}/chk-2/_metadata", f"{root}/_begun", "shell/owners/00000001")
    assert resumed(tmp_path).basis.restored_id == 1
    assert not any(file.exists() for file in left)


def test_a_store_that_does_not_let_it_go_is_no_failure_of_the_job(tmp_path, caplog, monkeypatch):
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


# -- what `latest` does after each end ---------------------------------------------------------------------------------


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
def test_a_job_whose_checkpoints_went_with_its_end_is_not_begun_anew_by_latest(tmp_path, status):
    """Also when an older run has left some: their output since then is committed."""
    complete(Driver(tmp_path))
    driver = resumed(tmp_path) if status is JobStatus.CANCELED else Driver(tmp_path)
    complete(driver)
    end(driver, status)
    with pytest.raises(CheckpointNotFoundError, match=r"To begin anew on purpose, start the job without"):
        resumed(tmp_path)
    assert complete(Driver(tmp_path)) == 1, "on purpose"
    assert resumed(tmp_path).basis.restored_id == 1


def test_a_job_without_a_completed_checkpoint_begins_anew_by_itself_whatever_its_end_was(tmp_path):
    for status in (JobStatus.FAILED, JobStatus.CANCELED):
        driver = resumed(tmp_path)
        assert driver.basis.restored_id is None
        driver.cut()
        driver.checkpointing.job_ended(status)


def test_a_stopped_job_goes_on_from_its_savepoint_also_over_a_driver_that_came_to_nothing(tmp_path):
    settings = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    driver = Driver(tmp_path / "checkpoints", **settings)
    complete(driver)
    stopped(driver)
    for _ in range(2):
        assert resumed(tmp_path / "checkpoints", **settings).basis.restored_id == 2
    shutil.rmtree(tmp_path / "savepoints")
    with pytest.raises(CheckpointNotFoundError, match=r"last began from, file://.*, which is not there any more"):
        resumed(tmp_path / "checkpoints", **settings)


def test_a_directory_of_an_older_version_is_gone_on_with(tmp_path):
    """There are no notes in it."""
    driver = Driver(tmp_path)
    complete(driver)
    for note in Path(tmp_path).rglob("_[bc]*"):
        note.unlink()
    assert resumed(tmp_path).basis.restored_id == 1
