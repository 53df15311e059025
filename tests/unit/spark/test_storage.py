"""The checkpoint or savepoint from which a job starts."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.paths import stopped_path
from rekindle.checkpoint.store.local import LocalStore
from rekindle.common import Configuration
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    ConfigurationError,
    CorruptCheckpointError,
    StoreError,
)
from rekindle.spark import launcher
from rekindle.spark.storage import JobStorage
from tests.unit.coordinator.checkpoints.driver_harness import Driver, plan_of, stopped


class StoppedDriver(Driver):
    savepoint: str


@pytest.fixture
def driver(tmp_path: Path) -> StoppedDriver:
    """A job that has made a checkpoint and was stopped with a savepoint after it."""
    driver = StoppedDriver(
        tmp_path / "checkpoints",
        **{
            "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
            "execution.state-recovery.path": "latest",
        },
    )
    driver.checkpointing.on_message(driver.snapshot(driver.cut()))
    driver.savepoint = stopped(driver)
    return driver


def recovered(tmp_path: Path) -> LoadedCheckpoint | None:
    keys = {
        "execution.state-recovery.path": "latest",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    return JobStorage.of(plan_of(**keys), Configuration.from_dict(keys)).recover()


def test_latest_goes_on_from_where_the_job_was_stopped(driver: StoppedDriver, tmp_path: Path) -> None:
    found = recovered(tmp_path)
    assert found is not None
    assert (found.manifest.checkpoint_id, found.path) == (2, driver.savepoint.rpartition("/")[2])


def test_a_savepoint_that_is_not_there_any_more_is_asked_for(driver: StoppedDriver, tmp_path: Path) -> None:
    """Starting from the older checkpoint instead would commit the later output twice."""
    shutil.rmtree(tmp_path / "savepoints")
    with pytest.raises(
        CheckpointNotFoundError, match=f"was stopped with, or last began from, {driver.savepoint}, which is not"
    ):
        recovered(tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"?", "is damaged"), (b"\x82\xa7version\x02\xa9savepoint\xa1x", "has format 2")]
)
def test_a_note_that_cannot_be_read_is_no_reason_to_begin_elsewhere(
    driver: Driver, tmp_path: Path, content: bytes, sentence: str
) -> None:
    (tmp_path / "checkpoints" / stopped_path(f"{driver.basis.storage.root}/chk-2")).write_bytes(content)
    with pytest.raises(CorruptCheckpointError, match=sentence):
        recovered(tmp_path)


def read_only(*_: Any, **__: Any) -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_directory_that_cannot_be_written_ends_the_job_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(_: Any) -> NoReturn:
        raise AssertionError("Spark was started")

    keys = {"execution.checkpointing.dir": str(tmp_path / "checkpoints")}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(keys))
    env.enable_checkpointing(100)
    env.from_collection([1]).print()
    monkeypatch.setattr(launcher, "lease_session", started)
    monkeypatch.setattr(os, "mkdir", read_only)
    with pytest.raises(StoreError) as refused:
        env.execute("read-only")
    assert str(refused.value) == (
        f"The checkpoint directory {tmp_path}/checkpoints cannot be written (read-only file system): make it writable "
        "for this user, or name another one."
    )


def test_a_directory_that_becomes_read_only_fails_checkpoints_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error ends the job: a restart cannot heal it."""
    several = {
        "execution.checkpointing.tolerable-failed-checkpoints": "1",
        "execution.checkpointing.max-concurrent-checkpoints": "2",
    }
    driver = Driver(tmp_path, **several)
    taken = [driver.snapshot(driver.cut()) for _ in range(2)]
    monkeypatch.setattr(LocalStore, "_create", read_only)
    driver.checkpointing.on_message(taken[0])
    sentence = f"The checkpoint directory {tmp_path} cannot be written (read-only file system): make it writable"
    failed = driver.checkpointing.tracker.overview().latest_failed
    assert failed is not None
    assert sentence in str(failed.failure_message)
    with pytest.raises(CheckpointError) as failure:
        driver.checkpointing.on_message(taken[1])
    assert sentence in str(failure.value)
    assert "Traceback" not in str(failure.value)
    driver.checkpointing.failed(str(failure.value))
    with pytest.raises(StoreError) as final:
        driver.checkpointing.begin_attempt()
    assert str(final.value).startswith(sentence)
    assert not final.value.retryable


def test_latest_without_a_directory_is_refused_before_anything_begins_anew() -> None:
    keys = {"execution.state-recovery.path": "latest"}
    with pytest.raises(ConfigurationError, match=r"set execution\.checkpointing\.dir"):
        JobStorage.of(plan_of(**keys), Configuration.from_dict(keys))
