"""`rekindle doctor` says what is wrong and what to do; `rekindle history` serves what jobs have left."""

from __future__ import annotations

import socket
import sys
import tomllib
from pathlib import Path

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.cli import health_checks, history_command
from rekindle.cli.health_checks import EXTRAS
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import JobOver, StatusEntered
from rekindle.monitor.job_history import HistoryWriter
from tests.support.recorded_jobs import JOB_ID, RecordedJob
from tests.support.rest_client import RestClient
from tests.unit.cli.conftest import rekindle

REPOSITORY = Path(__file__).resolve().parents[3]


def findings(*arguments):
    ended = rekindle("doctor", "--json", *arguments)
    by_subject = {}
    for each in ended.document["findings"]:
        by_subject.setdefault(each["subject"], each)
    return ended, by_subject


def test_this_machine_is_healthy(tmp_path):
    ended, found = findings("--directory", tmp_path, "-D", "rest.port=0")
    assert (ended.code, ended.document["healthy"]) == (0, True), ended.out
    assert found["Python"]["found"].endswith(sys.executable)
    assert found["Storage"]["verdict"] == "good"
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "run"])
    assert {"Java", "Spark", "Ports", "Temporary files", "Finding jobs"} <= found.keys()


def test_a_storage_that_cannot_be_written_and_a_port_that_is_taken(tmp_path):
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended, found = findings("--directory", tmp_path / "file", "-D", f"rest.port={port}")
    assert (ended.code, ended.document["healthy"]) == (1, False)
    assert found["Storage"]["verdict"] == found["Ports"]["verdict"] == "failed"
    assert "execution.checkpointing.dir" in found["Storage"]["advice"]
    assert "rest.bind-port" in found["Ports"]["advice"]


def test_a_missing_java_and_a_missing_extra(monkeypatch):
    monkeypatch.setattr("rekindle.spark.java._candidates", lambda environ: [])
    monkeypatch.setitem(EXTRAS, "kafka", ("no_such_package_at_all",))
    ended, found = findings()
    assert ended.code == 1
    assert found["Java"]["verdict"] == "failed"
    assert "pip install 'rekindle[java]'" in found["Java"]["advice"]
    assert found["Extra kafka"]["verdict"] == "note"
    assert found["Extra kafka"]["advice"] == "Where it is needed: pip install 'rekindle[kafka]'"
    assert "What to do" in rekindle("doctor").out


def test_every_extra_is_checked():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert EXTRAS.keys() == project["optional-dependencies"].keys()
    assert "pyspark>=4.1,<4.4" in project["dependencies"]
    assert (health_checks._OLDEST_SPARK, health_checks._TOO_NEW_SPARK) == ((4, 1), (4, 4))


def test_the_history_is_served_until_ctrl_c(tmp_path, monkeypatch):
    job = RecordedJob().run()
    job.recorder.on_event(StatusEntered(JobStatus.FINISHED))
    HistoryWriter(job.recorder, LocalStore(tmp_path), "orders", 20).on_event(JobOver())
    answers = []

    def asked_and_interrupted():
        answers.extend(RestClient(served.server.url).get("/jobs")["jobs"])

    from rekindle.web import history_server

    class Noted(history_server.HistoryServer):
        def __enter__(self):
            nonlocal served
            served = self
            return self

    served = None
    monkeypatch.setattr(history_server, "HistoryServer", Noted)
    monkeypatch.setattr(history_command, "_until_interrupted", asked_and_interrupted)
    ended = rekindle("history", tmp_path, "--port", 0, "--json")
    assert ended.code == 0
    assert ended.document["address"] == served.server.link
    assert answers == [{"id": JOB_ID, "status": "FINISHED"}]


@pytest.mark.parametrize("path", ["no/such/directory"])
def test_a_history_that_is_not_there(path):
    ended = rekindle("history", path, "--json")
    assert (ended.code, ended.out, ended.errors) == (3, "", f"There is no directory '{path}'.\n")
