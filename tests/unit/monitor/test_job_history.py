"""The history of a run: written beside the checkpoints while the job runs, read when it is over or dead."""

from __future__ import annotations

import json
import pickle
import threading
from pathlib import Path

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import AttemptFailed, JobOver, StatusEntered
from rekindle.errors import CheckpointError, StoreError
from rekindle.monitor.job_history import DEAD_AFTER_MS, HistoryWriter, read_histories
from rekindle.monitor.view_codec import decode_view, encode_view
from tests.support.recorded_jobs import START_MS, RecordedJob
from tests.support.waiting import wait_until


def eventful() -> RecordedJob:
    job = RecordedJob().run()
    job.later(1)
    job.epoch()
    job.checkpoint(1)
    job.checkpoint(2, failure="Checkpoint was declined.")
    job.log(0, "a line")
    job.fail()
    return job


def test_a_view_comes_back_as_it_was():
    view = eventful().recorder.view()
    again = decode_view(encode_view(view), "here")
    assert repr(again) == repr(view), "compared as text: NaN is not equal to itself"
    assert encode_view(again) == encode_view(view)


def test_the_file_is_plain_json_without_nan():
    document = json.loads(encode_view(eventful().recorder.view()), parse_constant=pytest.fail)
    assert document["job"]["name"] == "orders"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"format": 1}', pickle.dumps({"job": 1})])
def test_a_damaged_file_is_refused_by_name(data):
    with pytest.raises(CheckpointError, match=r"_history/1\.json is no history"):
        decode_view(data, "orders/_history/1.json")


def test_a_history_of_another_format_is_refused_by_name():
    document = json.loads(encode_view(eventful().recorder.view()))
    with pytest.raises(CheckpointError, match=r"_history/1\.json is a history of a job in format 2"):
        decode_view(json.dumps(document | {"format": 2}).encode(), "orders/_history/1.json")


def written(directory: Path, job: RecordedJob, runs: int = 20) -> HistoryWriter:
    writer = HistoryWriter(job.recorder, LocalStore(directory), "orders", runs)
    writer.on_event(StatusEntered(JobStatus.RUNNING))
    return writer


def test_the_end_of_a_job_is_in_its_history(tmp_path):
    job = eventful()
    writer = written(tmp_path, job)
    job.end(JobStatus.FAILED)
    writer.on_event(JobOver())
    (view,) = read_histories(str(tmp_path), job.clock.wall_ms())
    assert (view.status, view.name, len(view.failures)) == ("FAILED", "orders", 1)
    assert view.failures[0].record == "{'id': 7}"


def test_a_failure_is_written_at_once(tmp_path):
    job = eventful()
    writer = written(tmp_path, job)
    writer.on_event(AttemptFailed(ValueError(), 50))
    wait_until(lambda: read_histories(str(tmp_path), job.clock.wall_ms()), "the history", 20)
    writer.on_event(JobOver())


def test_a_run_whose_driver_died_is_suspended_since_its_last_word(tmp_path):
    job = eventful()
    written(tmp_path, job).on_event(JobOver())
    (alive,) = read_histories(str(tmp_path), job.clock.wall_ms() + DEAD_AFTER_MS)
    assert alive.status == "RESTARTING"
    (dead,) = read_histories(str(tmp_path), job.clock.wall_ms() + DEAD_AFTER_MS + 1)
    assert (dead.status, dead.ended_ms) == ("SUSPENDED", job.clock.wall_ms())


def test_old_runs_are_deleted(tmp_path):
    for number in range(5):
        job = RecordedJob()
        job.recorder._started_ms = START_MS + number
        written(tmp_path, job, runs=3).on_event(JobOver())
    assert [view.started_ms for view in read_histories(str(tmp_path), START_MS)] == [START_MS + n for n in (4, 3, 2)]


def test_a_damaged_history_does_not_hide_the_others(tmp_path):
    written(tmp_path, eventful()).on_event(JobOver())
    (tmp_path / "orders" / "_history" / "0-broken.json").write_text("{")
    told: list[str] = []
    assert len(read_histories(str(tmp_path), START_MS, on_damage=told.append)) == 1
    assert "0-broken.json" in told[0]


class Stuck(LocalStore):
    """A store that does not answer until the test says so."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.asked, self.released = threading.Event(), threading.Event()

    def put(self, path, data):
        self.asked.set()
        self.released.wait(60)
        raise StoreError("The bucket is gone.")


def test_a_store_that_hangs_or_fails_does_not_hold_the_job(tmp_path, caplog):
    store = Stuck(tmp_path)
    writer = HistoryWriter(eventful().recorder, store, "orders", 20)
    writer.on_event(StatusEntered(JobStatus.RUNNING))
    writer.on_event(AttemptFailed(ValueError(), 50))
    assert store.asked.wait(20)
    writer.on_event(AttemptFailed(ValueError(), 50))  # returns at once although the store hangs
    store.released.set()
    writer.on_event(JobOver())
    assert "The history of job 'orders' cannot be written: The bucket is gone." in caplog.text
