"""`rekindle watch`: the screen shows what the job's document has, until the job ends."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from rekindle.cli import watch_command
from rekindle.cli.watch_screen import screen
from rekindle.common.job_status import JobStatus
from rekindle.monitor.job_view import JobView
from rekindle.web.live_answers import live
from tests.recorded_jobs import JOB_ID, RecordedJob
from tests.unit.cli.conftest import rekindle
from tests.unit.web.conftest import serve


def job_with_epochs() -> RecordedJob:
    job = RecordedJob().run()
    for records in (10, 20, 40):
        job.later(1)
        job.epoch(records, busy_ms=(1.0, 900.0, 1.0))
    job.checkpoint(1)
    job.checkpoint(2, failure="Checkpoint was declined.")
    return job


def shown(view: JobView, width: int = 150) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(screen(live(view), "http://driver:8081", width))
    return stream.getvalue()


def test_the_screen_has_throughput_tasks_checkpoints_and_slots():
    text = shown(job_with_epochs().recorder.view())
    lines = text.splitlines()
    assert "orders  RUNNING  for 3.0 s" in text
    assert any("in" in line and "80.0/s" in line and "▄█" in line for line in lines), text
    assert any(line.startswith("count") and "RUNNING" in line and "█" in line for line in lines), text
    assert "1 completed, 1 failed, 0 in progress; the last good one is 0 ms old" in text
    assert any("checkpoint" in line and "COMPLETED" in line and "30 ms" in line for line in lines), text
    assert any("10.0.0.1" in line and "47.7 MiB" in line and "3 of 3 running" in line for line in lines), text


def test_a_job_without_anything_and_a_narrow_terminal():
    new = RecordedJob()
    assert "none yet" in shown(new.recorder.view())
    assert max(map(len, shown(job_with_epochs().recorder.view(), width=60).splitlines())) <= 60


def after_the_first(monkeypatch, name, happens):
    """Let something happen once the command has shown the job for the first time."""
    shows, shown_before = getattr(watch_command, name), []

    def showing(document):
        shows(document)
        if not shown_before:
            shown_before.append(document)
            happens()

    monkeypatch.setattr(watch_command, name, showing)


def test_once(served):
    ended = rekindle("watch", "orders", "--once")
    assert ended.code == 0
    assert JOB_ID in ended.out
    assert rekindle("watch", "orders", "--once", "--json").document["vertices"]


@pytest.mark.parametrize(("status", "code"), [(JobStatus.FINISHED, 0), (JobStatus.FAILED, 1)])
def test_it_ends_with_the_job_and_tells_how(served, monkeypatch, status, code):
    after_the_first(monkeypatch, "print_json_line", lambda: served.job.recorder.on_status(status))
    ended = rekindle("watch", "orders", "--json")
    documents = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == code
    assert documents[0]["state"] == "RUNNING"
    assert documents[-1]["state"] == status.name


def test_a_driver_that_ends_is_told(tmp_path, announce, monkeypatch):
    found = serve(tmp_path)
    announce(found.server)
    after_the_first(monkeypatch, "print_json_line", found.server.close)
    ended = rekindle("watch", "orders", "--json")
    assert ended.code == 0
    assert ended.errors == "The driver of job 'orders' has ended.\n"
