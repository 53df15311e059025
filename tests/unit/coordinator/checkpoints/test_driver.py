"""The checkpoint driver: claims, publishes, deletes, answers and notifies; without Spark or slots."""

from __future__ import annotations

import re

import pytest

from rekindle.checkpoint import load_checkpoint
from rekindle.checkpoint.latest_checkpoint import latest
from rekindle.checkpoint.paths import StateFileName, recording_path
from rekindle.common import JobStatus
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.checkpoints.types import CheckpointKind
from rekindle.errors import CheckpointError, CheckpointNotFoundError, OwnershipLostError, StoreError
from rekindle.protocol import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointDeclined,
)
from rekindle.testing import ManualClock
from tests.support.listed_checkpoints import list_checkpoints
from tests.unit.coordinator.checkpoints.driver_harness import Driver, finish, resumed


@pytest.fixture
def driver(tmp_path) -> Driver:
    return Driver(tmp_path / "checkpoints", **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})


def raised(error):
    raise error


def test_a_checkpoint_is_complete_when_published_and_notified_afterwards(driver):
    order = driver.cut()
    assert not driver.sent
    driver.checkpointing.on_message(driver.snapshot(order))
    assert driver.sent == [CheckpointCompleted(1, False)]
    loaded = load_checkpoint.load(driver.store, latest(driver.store, "shell"))
    assert loaded.manifest.checkpoint_id == 1
    overview = driver.checkpointing.tracker.overview()
    assert overview.latest_completed is not None
    (acknowledged,) = overview.latest_completed.acknowledged
    assert [each.checkpointed_size for each in acknowledged.snapshot.operators] == [5] * 3
    assert overview.latest_completed.state_size == 15


def test_a_recovery_takes_the_paths_in_the_statistics(tmp_path):
    """The paths of a checkpoint, of a savepoint, and of the checkpoint that an attempt restored."""
    driver = Driver(tmp_path / "checkpoints", **{"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")})
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    overview = driver.checkpointing.tracker.overview()
    for statistics, checkpoint_id in ((overview.latest_completed, 1), (overview.latest_savepoint, 2)):
        path = statistics.external_path
        again = Driver(tmp_path / "again", **{"execution.state-recovery.path": path})
        assert again.basis.restored_id == checkpoint_id
        assert again.checkpointing.tracker.overview().latest_restored.external_path == path


def test_a_checkpoint_in_memory_has_no_path(tmp_path):
    driver = Driver(tmp_path)
    driver.checkpointing.catalogue.in_memory = True
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.checkpointing.tracker.overview().latest_completed.external_path is None


def test_the_log_names_triggered_and_completed_checkpoints(driver, caplog):
    """With the sentences of the texts (S1)."""
    caplog.set_level("INFO", "rekindle.checkpoint")
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.requests.ask(CheckpointKind.SAVEPOINT)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    said = [re.sub(r"in \d+ ms", "in 46 ms", record.getMessage()) for record in caplog.records]
    assert said[:3] == [
        f"Triggering checkpoint 1 (type=CHECKPOINT) @ 11 for job {'0' * 32}.",
        f"Completed checkpoint 1 for job {'0' * 32} (15 bytes in 46 ms).",
        f"Triggering checkpoint 2 (type=SAVEPOINT) @ 11 for job {'0' * 32}.",
    ]
    assert said[3] == f"Completed checkpoint 2 for job {'0' * 32} (15 bytes in 46 ms)."
    assert re.fullmatch(r"Savepoint 2 is at file://.*/savepoints/savepoint-000000-\w+\.", said[4])


def test_a_checkpoint_that_is_to_be_full_is_based_on_none(tmp_path):
    driver = Driver(tmp_path / "checkpoints")
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.requests.ask(CheckpointKind.CHECKPOINT, full=True)
    assert driver.cut().base_id is None


@pytest.mark.parametrize("incremental", [True, False])
def test_a_checkpoint_is_based_on_the_last_one_only_if_incremental(tmp_path, incremental):
    """I12: otherwise each one is written whole."""
    driver = Driver(tmp_path / "checkpoints", **{"execution.checkpointing.incremental": str(incremental)})
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.cut().base_id == (1 if incremental else None)


def test_slots_know_how_large_state_in_the_drivers_memory_may_be(tmp_path):
    driver = Driver(tmp_path / "checkpoints", **{"rekindle.checkpointing.max-memory-state-size": "100b"})
    assert driver.basis.storage.max_inline_bytes == 100


def test_the_files_of_an_aborted_checkpoint_are_deleted_also_when_they_come_late(driver):
    """An abort leaves no file, whether before or after the acknowledgement (I19)."""
    order = driver.cut()
    late = driver.snapshot(order)
    declined = CheckpointDeclined(order.id, late.chain, 0, "on purpose", False)
    with pytest.raises(CheckpointError, match="tolerable"):
        driver.checkpointing.on_message(declined)
    assert driver.sent == [CheckpointAborted(1)]
    driver.checkpointing.on_message(late)
    assert driver.files() == []
    assert driver.checkpointing.tracker.overview().counts.failed == 1


TRACEBACK = 'Traceback (most recent call last):\n  File "orders.py", line 7, in snapshot_state\nValueError: no'


@pytest.mark.parametrize("tolerable", ["0", "1"])
def test_a_snapshot_that_fails_in_user_code_shows_the_users_traceback(tmp_path, caplog, tolerable):
    """It comes first in the job's error; in the log if the job goes on; once for each checkpoint."""
    driver = Driver(tmp_path, **{"execution.checkpointing.tolerable-failed-checkpoints": tolerable})
    order = driver.cut()
    (chain,) = driver.plan.chains
    declined = CheckpointDeclined(order.id, chain.id, 0, "Could not complete snapshot 1.", False, TRACEBACK)
    if tolerable == "0":
        with pytest.raises(CheckpointError) as failure:
            driver.checkpointing.on_message(declined)
        assert str(failure.value).startswith(f"{TRACEBACK}\n\nExceeded checkpoint tolerable failure threshold (0).")
        assert TRACEBACK not in caplog.text
    else:
        driver.checkpointing.on_message(declined)
        driver.checkpointing.on_message(declined)  # late: it is over
        assert caplog.text.count(TRACEBACK) == 1


def test_a_finished_job_leaves_nothing_though_its_last_two_checkpoints_overlapped(driver):
    """Both are based on the same one, which stays until both are complete (I12, I19)."""
    large = b"x" * 5000
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    second = driver.cut()
    driver.checkpointing.input_ended()
    final = driver.cut()
    assert (second.base_id, final.base_id) == (1, 1)
    driver.checkpointing.on_message(driver.snapshot(second, large))
    assert len(list_checkpoints(driver.store, "shell")) == 2, "the final one still stands on the first"
    finish(driver, final)
    assert driver.files() == []


@pytest.mark.parametrize(
    ("status", "left"), [(JobStatus.FINISHED, []), (JobStatus.CANCELED, []), (JobStatus.FAILED, ["chk-1", "chk-2"])]
)
def test_recordings_go_with_a_job_that_keeps_no_checkpoint(driver, status, left):
    """`latest` must not go on from a checkpoint that only a recording needed; a job that failed keeps both."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    path = recording_path("shell", 100, 1, 0, 0)
    driver.store.put(path, b"")
    driver.checkpointing.catalogue.keep_recordings(3)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.job_ended(status)
    assert [each.rpartition("/")[2] for each in list_checkpoints(driver.store, "shell")] == left
    assert [each.path for each in driver.store.list("shell/_replay")] == ([path] if left else [])


@pytest.mark.parametrize("status", [JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED])
def test_a_job_that_fails_before_its_first_checkpoint_keeps_its_recordings(driver, status):
    """The message of the failure names the command that replays one."""
    path = recording_path("shell", 100, 1, 0, 0)
    driver.store.put(path, b"")
    driver.checkpointing.catalogue.keep_recordings(3)
    driver.checkpointing.job_ended(status)
    assert [each.path for each in driver.store.list("shell/_replay")] == ([path] if status is JobStatus.FAILED else [])


def test_a_base_is_deleted_at_the_end_when_the_checkpoint_based_on_it_failed(tmp_path):
    """Only the retained checkpoint stays."""
    retain = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    driver = Driver(tmp_path, **retain, **{"execution.checkpointing.max-concurrent-checkpoints": "2"})
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    second, _third = driver.cut(), driver.cut()
    driver.checkpointing.on_message(driver.snapshot(second))
    driver.checkpointing.job_ended(JobStatus.FAILED)
    assert [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")] == ["chk-2"]


def test_checkpoints_that_cannot_be_deleted_do_not_fail_the_job(driver, monkeypatch, caplog):
    """The next deletion deletes them too (I19)."""
    large = b"x" * 5000
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))

    def refuse(*paths):
        raise StoreError("the network is gone for a moment")

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "delete", refuse)
        driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    assert driver.sent[-1] == CheckpointCompleted(2, False)
    assert "[1] could not be deleted: the network is gone" in caplog.text
    assert len(list_checkpoints(driver.store, "shell")) == 2
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    assert [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")] == ["chk-3"]
    assert {StateFileName.parse(path).checkpoint_id for path in driver.files() if path.endswith(".state")} == {3}


def test_unacknowledged_files_are_deleted_when_the_job_ends(driver, tmp_path):
    """A subtask has written a file, and its acknowledgement never came; retained checkpoints stay whole."""
    large = bytes(100_000)  # small state is in the manifest
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), large))
    kept = set(driver.files())
    driver.snapshot(driver.cut(), large)
    assert set(driver.files()) > kept
    driver.checkpointing.job_ended(JobStatus.SUSPENDED)
    assert set(driver.files()) == kept


def test_a_request_after_the_end_fails(driver):
    waiting = driver.checkpointing.requests.ask(CheckpointKind.CHECKPOINT)
    driver.checkpointing.job_ended(JobStatus.CANCELED)
    with pytest.raises(CheckpointError, match="has ended"):
        waiting.result(0)
    with pytest.raises(CheckpointError, match="has ended"):
        driver.checkpointing.requests.ask(CheckpointKind.CHECKPOINT).result(0)


def test_a_cancelled_request_does_no_harm(driver):
    asked = driver.checkpointing.requests.ask(CheckpointKind.CHECKPOINT)
    assert asked.cancel()
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    assert driver.sent == [CheckpointCompleted(1, False)]


def test_the_checkpoint_to_restore_is_looked_for_after_the_claim(tmp_path):
    """I14: a checkpoint that the older driver published before it saw the claim is found; else its output would be
    committed twice.
    """
    directory = tmp_path / "checkpoints"
    older = Driver(directory)
    order = older.cut()
    found = []

    def recover():
        # The claim stands: from here on the older driver can publish, but not complete.
        with pytest.raises(OwnershipLostError):
            older.checkpointing.on_message(older.snapshot(order))
        found.append(older.sent)
        path = latest(older.store, "shell")
        return None if path is None else load_checkpoint.load(older.store, path)

    newer = Driver(directory, recover)
    assert found == [[]], "the older driver notified a task"
    assert newer.basis.attempt == 2
    assert newer.basis.restored_id is None


def test_a_store_that_fails_after_it_has_published_leaves_no_damaged_checkpoint(driver, monkeypatch):
    """I16: the checkpoint has failed and its files are deleted, so its `_metadata` must not stay as the latest."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    taken = driver.snapshot(driver.cut())
    listed, published = driver.store.list, driver.store.put_if_absent
    faults = []

    def put_then_fail(path, data):
        done = published(path, data)
        faults.append(StoreError("the network is gone for a moment"))
        return done

    monkeypatch.setattr(driver.store, "put_if_absent", put_then_fail)
    monkeypatch.setattr(driver.store, "list", lambda *prefix: listed(*prefix) if not faults else raised(faults.pop()))
    with pytest.raises(CheckpointError, match="tolerable"):
        driver.checkpointing.on_message(taken)
    assert driver.sent[-1] == CheckpointAborted(2)
    assert load_checkpoint.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == 1


def test_the_leftover_metadata_of_a_failed_publication_is_deleted_by_the_next_attempt(driver, monkeypatch):
    """I16: the store writes `_metadata`, and answers neither the write nor the deletion: no damage is left."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut(), b"x" * 5000))
    taken = driver.snapshot(driver.cut(), b"x" * 5000)
    published = driver.store.put_if_absent

    def put_then_fall_silent(path, data):
        done = published(path, data)
        patched.setattr(driver.store, "list", lambda *prefix: raised(StoreError("the network is gone")))
        return done

    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "put_if_absent", put_then_fall_silent)
        with pytest.raises(CheckpointError, match="tolerable"):
            driver.checkpointing.on_message(taken)
        driver.checkpointing.failed("the store failed")
    assert len(list_checkpoints(driver.store, "shell")) == 2
    driver.begin()
    assert driver.basis.restored_id == 1
    assert [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")] == ["chk-1"]
    assert load_checkpoint.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == 1


def test_a_restart_looks_again_for_the_checkpoint_after_a_failure_of_the_store(driver, tmp_path):
    """A job with `latest` never begins anew because the store failed for a moment."""
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    answers = [StoreError("the network is gone for a moment")]

    def recover():
        if answers:
            raise answers.pop()
        return load_checkpoint.load(driver.store, latest(driver.store, "shell"))

    checkpointing = CheckpointDriver(
        driver.plan, "1" * 32, driver.store, ManualClock(1), in_memory=False, recover=recover
    )
    with pytest.raises(StoreError):
        checkpointing.begin_attempt()
    checkpointing.failed("the store failed")
    assert checkpointing.begin_attempt().restored_id == 1


def test_ids_grow_over_drivers_also_above_checkpoints_that_never_completed(tmp_path):
    driver = Driver(tmp_path)
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.snapshot(driver.cut(), b"x" * 1_000_000)  # the driver dies before it completes checkpoint 2
    again = resumed(tmp_path)
    assert again.basis.restored_id == 1
    assert again.cut().id == 3


@pytest.mark.parametrize("path", ["latest", None])
def test_a_job_that_is_started_with_latest_keeps_its_final_checkpoint(tmp_path, path):
    """I9: a program that starts with `latest` each time must find that the job had ended. Other jobs delete their
    checkpoints at the end, as in Flink, and `latest` is refused then (I21).
    """
    driver = Driver(tmp_path, **({"execution.state-recovery.path": path} if path else {}))
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.checkpointing.input_ended()
    order = driver.cut()
    finish(driver, order)
    if path:
        assert latest(driver.store, "shell") == f"{driver.basis.storage.root}/chk-{order.id}"
    else:
        with pytest.raises(CheckpointNotFoundError, match="To begin anew on purpose, start the job without"):
            latest(driver.store, "shell")
