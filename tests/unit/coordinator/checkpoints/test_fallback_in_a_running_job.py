"""I16 in a running job: if a slot finds damage, the job restores an older checkpoint, or fails and names one."""

from __future__ import annotations

import pytest

from rekindle.checkpoint import load_checkpoint
from rekindle.checkpoint.latest_checkpoint import latest
from rekindle.coordinator.failure_messages import task_failed
from rekindle.errors import CorruptCheckpointError, JobExecutionError, StoreError
from rekindle.protocol import TaskFailed, Verdict
from tests.support.listed_checkpoints import list_checkpoints
from tests.unit.coordinator.checkpoints.driver_harness import Driver

ALLOWED = {"rekindle.state-recovery.allow-older-checkpoint": "true", "execution.checkpointing.num-retained": "3"}
RETAIN = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
DAMAGE = CorruptCheckpointError("The state file x is damaged.")


def complete(driver):
    order = driver.cut()
    driver.checkpointing.on_message(driver.snapshot(order, b"x" * 10_000))
    return order.id


def flip(store, folder):
    loaded = load_checkpoint.load(store, folder)
    path = f"{loaded.root}/{max(loaded.manifest.files())}"
    data = bytearray(store.read(path))
    data[7] ^= 1
    store.put(path, bytes(data))


def test_the_next_attempt_restores_the_older_checkpoint(tmp_path):
    driver = Driver(tmp_path, **ALLOWED)
    checkpointing = driver.checkpointing
    ids = [complete(driver) for _ in range(3)]
    checkpointing.failed("a slot died")
    assert checkpointing.begin_attempt().restored_id == ids[2]
    checkpointing.failed(str(DAMAGE))
    checkpointing.go_back(DAMAGE)
    driver.begin()
    assert driver.basis.restored_id == ids[1]
    assert complete(driver) > ids[2], "an id was used again"
    checkpointing.failed("a slot died")
    assert checkpointing.begin_attempt().restored_id == ids[2] + 1


def test_latest_is_not_the_damaged_checkpoint(tmp_path):
    """I16: its files are deleted; the next driver must find the older checkpoint, and a whole one."""
    driver = Driver(tmp_path, **ALLOWED)
    ids = [complete(driver) for _ in range(3)]
    driver.checkpointing.failed("a slot died")
    driver.checkpointing.begin_attempt()
    driver.checkpointing.failed(str(DAMAGE))
    driver.checkpointing.go_back(DAMAGE)
    driver.begin()
    assert load_checkpoint.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == ids[1]


def test_an_older_checkpoint_that_could_not_be_deleted_is_restored(tmp_path, monkeypatch):
    """The store could not delete it after it was given up; now its files must stay."""
    driver = Driver(tmp_path, **ALLOWED | {"execution.checkpointing.num-retained": "1"})
    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "delete", lambda *paths: refuse())
        ids = [complete(driver) for _ in range(2)]
        driver.checkpointing.failed("a slot died")
    driver.checkpointing.go_back(DAMAGE)
    driver.begin()
    assert driver.basis.restored_id == ids[0]
    assert load_checkpoint.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == ids[0]
    newest = complete(driver)
    names = [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")]
    assert names == [f"chk-{newest}"]


def refuse():
    raise StoreError("the network is gone for a moment")


def test_an_older_checkpoint_that_is_damaged_too_is_skipped(tmp_path):
    driver = Driver(tmp_path, **ALLOWED)
    checkpointing = driver.checkpointing
    ids = [complete(driver) for _ in range(3)]
    checkpointing.failed("a slot died")
    folders = list_checkpoints(driver.store, "shell")
    flip(driver.store, folders[1])
    checkpointing.begin_attempt()
    checkpointing.failed(str(DAMAGE))
    checkpointing.go_back(DAMAGE)
    assert checkpointing.begin_attempt().restored_id == ids[0]


def test_results_that_were_given_out_are_not_given_out_again(tmp_path):
    """`execute_and_collect` has given out the records that the damaged checkpoint contains."""
    driver = Driver(tmp_path, **{"execution.checkpointing.num-retained": "3"})
    for _ in range(2):
        complete(driver)
    driver.checkpointing.failed("a slot died")
    driver.checkpointing.begin_attempt()
    with pytest.raises(CorruptCheckpointError, match=r"The state file x is damaged.*is not taken unasked"):
        driver.checkpointing.go_back(DAMAGE)


def test_a_run_that_was_started_from_a_damaged_checkpoint_goes_back_in_the_older_timeline(tmp_path):
    """This run has given out nothing: it restores the older checkpoint of the older timeline, in a new timeline."""
    first = Driver(tmp_path, **RETAIN, **{"execution.checkpointing.num-retained": "2"})
    ids = [complete(first) for _ in range(2)]
    loaded = load_checkpoint.load(first.store, latest(first.store, "shell"))
    second = Driver(tmp_path, recover=lambda: loaded)
    assert second.basis.restored_id == ids[1]
    second.checkpointing.failed(str(DAMAGE))
    second.checkpointing.go_back(DAMAGE)
    second.begin()
    assert second.basis.restored_id == ids[0]
    assert second.basis.storage.root != first.basis.storage.root
    complete(second)
    second.checkpointing.failed("a slot died")
    assert second.checkpointing.begin_attempt().restored_id not in ids, "the own newer one was forgotten"


def test_damage_without_a_restored_checkpoint_is_raised(tmp_path):
    driver = Driver(tmp_path)
    with pytest.raises(CorruptCheckpointError) as caught:
        driver.checkpointing.go_back(DAMAGE)
    assert caught.value is DAMAGE


def test_a_slots_message_about_damage_is_no_failure_of_user_code():
    damage = Verdict.DAMAGED, "The state file x is damaged."
    failed = TaskFailed("task", "operator", 0, "traceback", "summary", None, *damage)
    error = task_failed("orders", failed)
    assert isinstance(error, CorruptCheckpointError)
    assert str(error) == "The state file x is damaged."
    other = task_failed("orders", TaskFailed("task", "operator", 0, "traceback", "summary", None))
    assert isinstance(other, JobExecutionError)
