"""A job whose failure a restart cannot cure ends at once with that error; other failures go to the restart strategy."""

from __future__ import annotations

import threading

import pytest

from rekindle.checkpoint.load_checkpoint import load
from rekindle.checkpoint.store.open_store import open_store
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.checkpoints.driver import CheckpointDriver
from rekindle.coordinator.failure_messages import task_failed
from rekindle.coordinator.job import JobMaster
from rekindle.errors import (
    CheckpointNotFoundError,
    ClusterError,
    ClusterGoneError,
    CorruptCheckpointError,
    IncompatibleStateError,
    JobCancelledError,
    JobExecutionError,
    RekindleError,
    StoreError,
)
from rekindle.protocol import TaskFailed, Verdict
from tests.unit.coordinator.fakes import Nowhere, checkpointing_in, spec_of

RESTARTS = 3


def end_of(checkpointing: CheckpointDriver) -> BaseException | None:
    """The error with which a job ends that has restarts left."""
    return JobMaster(spec_of(checkpointing, RESTARTS), Nowhere()).start().result().exception(timeout=20)


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (StoreError("The bucket of s3://nowhere does not exist: make it, or name another one."), 1),
        (CheckpointNotFoundError("There is no checkpoint at chk-7."), 1),
        (CorruptCheckpointError("chk-7/_metadata was not written by Rekindle."), 1),
        (IncompatibleStateError("Operator 'count' cannot take its state."), 1),
        (StoreError("The disk is full.", retryable=True), 1 + RESTARTS),
    ],
    ids=lambda value: type(value).__name__ + str(getattr(value, "retryable", "")),
)
def test_a_job_ends_at_once_unless_a_restart_may_help(tmp_path, error, attempts):
    asked = []

    def recover():
        asked.append(None)
        raise error

    assert end_of(checkpointing_in(tmp_path, recover)) is error
    assert len(asked) == attempts
    assert bool(getattr(error, "__notes__", ())) == (attempts > 1), "only used-up restarts are worth a note"


def test_a_directory_that_cannot_be_written_ends_the_job_before_anything_starts(tmp_path):
    (tmp_path / "taken").write_text("a file where the directory should be")
    error = end_of(checkpointing_in(tmp_path / "taken" / "checkpoints"))
    assert isinstance(error, StoreError)
    assert not error.retryable
    assert str(tmp_path / "taken") in str(error)
    assert not hasattr(error, "__notes__")


def test_a_foreign_recovery_path_ends_the_job_before_anything_starts(tmp_path):
    folder = tmp_path / "elsewhere" / "chk-1"
    folder.mkdir(parents=True)
    (folder / "_metadata").write_bytes(b"PK an archive, not a checkpoint")
    store = open_store(str(tmp_path / "elsewhere"))

    def recover():
        return load(store, "chk-1")

    error = end_of(checkpointing_in(tmp_path / "own", recover))
    assert isinstance(error, CorruptCheckpointError)
    assert "was not written by Rekindle" in str(error)
    assert not hasattr(error, "__notes__")


def test_a_cluster_without_slots_is_tried_again(tmp_path):
    error = end_of(checkpointing_in(tmp_path))
    assert isinstance(error, ClusterError)
    assert f"used up the {RESTARTS} restarts" in error.__notes__[0]


class Waits(Nowhere):
    """A cluster that is being made ready until the job is cancelled."""

    def __init__(self):
        self.asked = threading.Event()

    def prepare(self, cancelled):
        self.asked.set()
        cancelled.wait()
        raise JobCancelledError("The job was cancelled while its cluster was made ready.")


def test_a_job_whose_cluster_is_made_ready_can_be_cancelled(tmp_path):
    cluster = Waits()
    job = JobMaster(spec_of(checkpointing_in(tmp_path), RESTARTS), cluster).start()
    assert cluster.asked.wait(20)
    job.cancel().result(timeout=20)
    assert job.status() is JobStatus.CANCELED


class Gone(Nowhere):
    """A cluster that will not come back."""

    def __init__(self):
        self.asked = 0

    def prepare(self, cancelled):
        self.asked += 1
        raise ClusterGoneError("Spark has ended for good.")


def test_a_cluster_that_is_gone_for_good_is_prepared_once(tmp_path):
    cluster = Gone()
    job = JobMaster(spec_of(checkpointing_in(tmp_path), RESTARTS), cluster).start()
    assert isinstance(job.result().exception(timeout=20), ClusterGoneError)
    assert cluster.asked == 1


class FailsWhenCancelled(Nowhere):
    """A cluster that fails because the job is cancelled, before the cancellation is noticed."""

    def __init__(self):
        self.started = threading.Event()
        self.cancelled = threading.Event()

    def start_slots(self, launches):
        self.started.set()
        self.cancelled.wait(20)
        raise ClusterError("The connection is closed.")

    def cancel_epoch(self):
        self.cancelled.set()


@pytest.mark.parametrize("restarts", [0, RESTARTS])
def test_a_cancelled_job_is_cancelled_even_if_it_fails_on_the_way(tmp_path, restarts):
    """As in Flink; also without restarts, where the failure would be the job's end."""
    cluster = FailsWhenCancelled()
    job = JobMaster(spec_of(checkpointing_in(tmp_path), restarts), cluster).start()
    assert cluster.started.wait(20)
    job.cancel().result(20)
    assert isinstance(job.result().exception(20), JobCancelledError)
    assert job.status() is JobStatus.CANCELED


@pytest.mark.parametrize(
    ("verdict", "kind", "message"),
    [
        (Verdict.DAMAGED, CorruptCheckpointError, "Sentence."),
        (Verdict.INCOMPATIBLE, IncompatibleStateError, "Operator 'count' of job 'orders' cannot take its state: Sent"),
        (Verdict.STORE, StoreError, "Sentence."),
        (None, JobExecutionError, "Traceback"),
    ],
)
def test_a_slots_verdict_becomes_the_same_error(verdict, kind: type[RekindleError], message):
    error = task_failed("orders", TaskFailed("task", "count", 0, "Traceback", "", None, verdict, "Sentence."))
    assert type(error) is kind
    assert str(error).startswith(message)
    assert not getattr(error, "retryable", False)


def test_a_failures_traceback_is_logged_once(tmp_path, caplog):
    error = task_failed("orders", TaskFailed("t", "count", 0, "Traceback …\nValueError: x", "ValueError: x", "7"))

    class Fails(Nowhere):
        def start_slots(self, launches):
            raise error

    job = JobMaster(spec_of(checkpointing_in(tmp_path), RESTARTS), Fails()).start()
    assert job.result().exception(20) is error
    told = [record.getMessage() for record in caplog.records if "restart in" in record.getMessage()]
    assert len(told) == RESTARTS
    assert all("ValueError: x (in operator 'count', subtask 1, at record 7)." in each for each in told)
    assert sum("Traceback" in each for each in told) == 1
