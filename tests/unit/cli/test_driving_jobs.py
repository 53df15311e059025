"""Savepoint, stop and cancel: what reaches the job, what comes back, and how failures end a command."""

from __future__ import annotations

import os

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import StatusEntered
from rekindle.errors import CheckpointError
from tests.support.recorded_jobs import JOB_ID
from tests.unit.cli.conftest import rekindle
from tests.unit.web.conftest import serve

WHERE = "file:///savepoints/savepoint-0a1b2c-1"


def test_a_savepoint_is_waited_for_and_its_place_is_printed(served):
    served.handle.outcome.set_result(WHERE)
    directory = served.directory / "savepoints"
    ended = rekindle("savepoint", "orders", directory)
    assert (ended.code, ended.out, ended.errors) == (0, f"{WHERE}\n", "")
    assert served.handle.asked == [("savepoint", os.fspath(directory), "CANONICAL")]
    document = rekindle("savepoint", "orders", directory, "--json").document
    assert document == {"job-id": JOB_ID, "name": "orders", "savepoint": WHERE}


def test_a_relative_directory_is_that_of_the_command_not_of_the_driver(served, monkeypatch):
    served.handle.outcome.set_result(WHERE)
    monkeypatch.chdir(served.directory)
    assert rekindle("savepoint", "orders", "savepoints").code == 0
    assert served.handle.asked == [("savepoint", f"{served.directory}/savepoints", "CANONICAL")]


def test_a_savepoint_that_fails_says_why(served):
    served.handle.outcome.set_exception(CheckpointError("The disk is full: make room."))
    ended = rekindle("savepoint", "orders", served.directory / "savepoints", "--json")
    assert (ended.code, ended.out) == (1, "")
    assert ended.errors == "The savepoint of job 'orders' failed: The disk is full: make room.\n"


def test_a_savepoint_that_takes_too_long_is_not_waited_for(served):
    ended = rekindle("savepoint", "orders", served.directory / "savepoints", "--timeout", 0)
    assert ended.code == 1
    assert "was not complete within 0 s, and is still being made" in ended.errors


def test_a_directory_that_the_job_does_not_allow_is_refused(served):
    ended = rekindle("savepoint", "orders", "/somewhere/else")
    assert ended.code == 2
    assert "allow it with rekindle.rest.directories" in ended.errors
    assert served.handle.asked == []


def test_stop_with_drain_and_a_path(served):
    served.handle.outcome.set_result(WHERE)
    directory = f"{served.directory}/savepoints"
    ended = rekindle("stop", "orders", "--drain", "--savepoint-path", directory)
    assert (ended.code, ended.out) == (0, f"{WHERE}\n")
    assert rekindle("stop", "-p", directory, "--json").document["savepoint"] == WHERE
    assert served.handle.asked == [("stop", True, directory, "CANONICAL"), ("stop", False, directory, "CANONICAL")]


def test_cancel_waits_for_the_end(served):
    cancel = served.handle.cancel

    def cancelled():
        served.job.recorder.on_event(StatusEntered(JobStatus.CANCELED))
        return cancel()

    served.handle.cancel = cancelled
    ended = rekindle("cancel", "orders")
    assert (ended.code, ended.out) == (0, "Job 'orders' is cancelled.\n")
    assert served.handle.asked == [("cancel",)]


def test_a_job_that_does_not_end_in_time(served):
    ended = rekindle("cancel", "orders", "--timeout", 0, "--json")
    assert (ended.code, ended.out) == (1, "")
    assert "has not ended within 0 s: it is RUNNING." in ended.errors


def test_requests_that_may_not_cancel(tmp_path, announce):
    found = serve(tmp_path, **{"web.cancel.enable": "false"})
    announce(found.server)
    try:
        for command in ("cancel", "stop"):
            ended = rekindle(command, "orders")
            assert ended.code == 4
            assert "web.cancel.enable is false" in ended.errors
    finally:
        found.server.close()
