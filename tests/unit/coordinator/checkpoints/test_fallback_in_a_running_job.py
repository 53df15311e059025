"""I16 in a running job: damage that a slot finds while it restores leads to an older checkpoint, or to its refusal."""

from __future__ import annotations

import pytest

from rekindle.checkpoint import resolve
from rekindle.checkpoint.latest import latest
from rekindle.coordinator.failure_messages import task_failed
from rekindle.errors import CorruptCheckpointError, JobExecutionError, StoreError
from rekindle.protocol import TaskFailed, Verdict
from tests.listed_checkpoints import list_checkpoints
from tests.unit.coordinator.checkpoints.test_driver import Driver

ALLOWED = {"rekindle.state-recovery.allow-older-checkpoint": "true", "execution.checkpointing.num-retained": "3"}
RETAIN = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
DAMAGE = CorruptCheckpointError("The state file x is damaged.")


def complete(driver):
    order = driver.cut()
    driver.checkpointing.on_message(driver.snapshot(order, b"x" * 10_000))
    return order.id


def flip(store, folder):
    loaded = resolve.load(store, folder)
    path = f"{loaded.root}/{max(loaded.manifest.files())}"
    data = bytearray(store.read(path))
    data[7] ^= 1
    store.put(path, bytes(data))


def test_the_next_attempt_begins_from_the_older_one(tmp_path):
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


def test_the_damaged_one_does_not_stay_as_the_latest(tmp_path):
    """I16: its files go, as those of nobody; a driver that comes now must find the older one, and a whole one."""
    driver = Driver(tmp_path, **ALLOWED)
    ids = [complete(driver) for _ in range(3)]
    driver.checkpointing.failed("a slot died")
    driver.checkpointing.begin_attempt()
    driver.checkpointing.failed(str(DAMAGE))
    driver.checkpointing.go_back(DAMAGE)
    driver.begin()
    assert resolve.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == ids[1]


def test_an_older_one_that_the_store_did_not_delete_is_as_good(tmp_path, monkeypatch):
    """It was given up and could not be deleted; now it is all there is, and its files must not be swept away."""
    driver = Driver(tmp_path, **ALLOWED | {"execution.checkpointing.num-retained": "1"})
    with monkeypatch.context() as patched:
        patched.setattr(driver.store, "delete", lambda *paths: refuse())
        ids = [complete(driver) for _ in range(2)]
        driver.checkpointing.failed("a slot died")
    driver.checkpointing.go_back(DAMAGE)
    driver.begin()
    assert driver.basis.restored_id == ids[0]
    assert resolve.load(driver.store, latest(driver.store, "shell"), deep=True).manifest.checkpoint_id == ids[0]
    newest = complete(driver)
    names = [path.rpartition("/")[2] for path in list_checkpoints(driver.store, "shell")]
    assert names == [f"chk-{newest}"]


def refuse():
    raise StoreError("the network is gone for a moment")


def test_damage_that_reaches_further_is_passed_over(tmp_path):
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


def test_handed_out_results_are_not_handed_out_again(tmp_path):
    """`execute_and_collect` has given out what the damaged checkpoint covers."""
    driver = Driver(tmp_path, **{"execution.checkpointing.num-retained": "3"})
    for _ in range(2):
        complete(driver)
    driver.checkpointing.failed("a slot died")
    driver.checkpointing.begin_attempt()
    with pytest.raises(CorruptCheckpointError, match=r"The state file x is damaged.*is not taken unasked"):
        driver.checkpointing.go_back(DAMAGE)


def test_a_start_by_hand_from_a_damaged_one(tmp_path):
    """Nothing was handed out by this run: the older one of the older timeline is taken, and a new timeline begun."""
    first = Driver(tmp_path, **RETAIN, **{"execution.checkpointing.num-retained": "2"})
    ids = [complete(first) for _ in range(2)]
    loaded = resolve.load(first.store, latest(first.store, "shell"))
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


def test_without_a_checkpoint_the_damage_is_somebody_elses(tmp_path):
    driver = Driver(tmp_path)
    with pytest.raises(CorruptCheckpointError) as caught:
        driver.checkpointing.go_back(DAMAGE)
    assert caught.value is DAMAGE


def test_what_a_slot_says_about_damage_is_not_taken_for_a_failure_of_user_code():
    damage = Verdict.DAMAGED, "The state file x is damaged."
    told = TaskFailed("task", "operator", 0, "traceback", "summary", None, *damage)
    error = task_failed("orders", told)
    assert isinstance(error, CorruptCheckpointError)
    assert str(error) == "The state file x is damaged."
    other = task_failed("orders", TaskFailed("task", "operator", 0, "traceback", "summary", None))
    assert isinstance(other, JobExecutionError)
