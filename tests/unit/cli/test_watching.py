"""`rekindle watch`: the screen shows what the job's document has, until the job ends."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from rekindle.cli import watch_command
from rekindle.cli.exit_codes import ExitCode
from rekindle.cli.watch_screen import Room, fitted, merged, screen
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import StatusEntered
from rekindle.monitor.job_view import JobView
from rekindle.web.live_answers import live
from tests.support.recorded_jobs import JOB_ID, RecordedJob
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
    Console(file=stream, width=width).print(screen(live(view), "http://driver:8081", Room(width)))
    return stream.getvalue()


def test_the_screen_has_throughput_tasks_checkpoints_and_slots():
    text = shown(job_with_epochs().recorder.view())
    lines = text.splitlines()
    assert "orders  RUNNING  for 3.0 s" in text
    assert any("in" in line and "80.0/s" in line and "▄█" in line for line in lines), text
    assert any(line.startswith("count") and "RUNNING" in line and "█" in line for line in lines), text
    assert "1 completed, 1 failed, 0 in progress; the last good one is 0 ms old" in text
    assert any("checkpoint" in line and "COMPLETED" in line and "30 ms" in line for line in lines), text
    assert any("10.0.0.1" in line and "50.0 MB" in line and "3 of 3 running" in line for line in lines), text


def test_a_job_without_anything_and_a_narrow_terminal():
    new = RecordedJob()
    assert "none yet" in shown(new.recorder.view())
    assert max(map(len, shown(job_with_epochs().recorder.view(), width=60).splitlines())) <= 60


def test_at_80_columns_only_names_are_cut():
    job = job_with_epochs()
    text = shown(job.recorder.view(), width=80)
    assert max(map(len, text.splitlines())) <= 80
    for heading in ("Status", "In/s", "Out/s", "Busy", "Waits", "Lag", "State", "Triggered", "CPU time", "Subtasks"):
        assert heading in text, heading
    assert "3 of 3 running" in text
    assert "90%" in text


def test_what_failed_is_told_with_its_record():
    job = job_with_epochs()
    job.fail()
    text = " ".join(shown(job.recorder.view(), width=80).split())
    assert "Checkpoint 2 failed: Checkpoint was declined." in text
    assert "ago: KeyError: 'id', in count, subtask 2, at record {'id': 7}" in text
    job.checkpoint(3)
    assert "Checkpoint 2 failed" not in shown(job.recorder.view())


@pytest.mark.parametrize("height", [60, 30, 24])
def test_a_low_terminal_gets_less_of_it_but_the_end_as_well(height):
    job = job_with_epochs()
    for number in range(3, 12):
        job.checkpoint(number)
    stream = io.StringIO()
    console = Console(file=stream, width=100, height=height, force_terminal=True, color_system=None)
    console.print(fitted(live(job.recorder.view()), "http://driver:8081", console))
    text = stream.getvalue()
    assert len(text.splitlines()) < height
    assert "Slots" in text
    assert ("10.0.0.1" in text) == (height == 60)


def test_the_charts_keep_what_events_leave_out():
    job = job_with_epochs()
    before = live(job.recorder.view())
    job.later(1)
    job.epoch(5)
    job.checkpoint(3)
    whole, event = live(job.recorder.view()), live(job.recorder.view(), 1)
    assert len(event["epochs"]) == 1
    both = merged(before, event)
    assert both["epochs"] == whole["epochs"]
    assert both["checkpoints"] == whole["checkpoints"]


def after_showing(monkeypatch, name, happens, times=1):
    """Let something happen once the command has shown the job so many times."""
    shows, shown_before = getattr(watch_command, name), []

    def showing(document):
        shows(document)
        shown_before.append(document)
        if len(shown_before) == times:
            happens()

    monkeypatch.setattr(watch_command, name, showing)


def test_once(served):
    ended = rekindle("watch", "orders", "--once")
    assert ended.code == 0
    assert JOB_ID in ended.out
    assert rekindle("watch", "orders", "--once", "--json").document["vertices"]


@pytest.mark.parametrize(("status", "code"), [(JobStatus.FINISHED, 0), (JobStatus.FAILED, 1)])
def test_it_ends_with_the_job_and_tells_how(served, monkeypatch, status, code):
    after_showing(monkeypatch, "print_json_line", lambda: served.job.recorder.on_event(StatusEntered(status)))
    ended = rekindle("watch", "orders", "--json")
    documents = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == code
    assert documents[0]["state"] == "RUNNING"
    assert documents[-1]["state"] == status.name


def test_a_driver_that_ends_is_told(tmp_path, announce, monkeypatch):
    found = serve(tmp_path)
    announce(found.server)
    after_showing(monkeypatch, "print_json_line", found.server.close)
    ended = rekindle("watch", "orders", "--json")
    assert ended.code == ExitCode.UNREACHABLE
    assert ended.errors == (
        "The driver of job 'orders' is gone, and has not told how the job ended: "
        f"rekindle history {tmp_path}/checkpoints shows what it has left.\n"
    )


@pytest.mark.parametrize(("status", "code"), [(JobStatus.FINISHED, 0), (JobStatus.FAILED, 1)])
def test_a_driver_that_ends_with_its_job_tells_how_first(tmp_path, announce, monkeypatch, status, code):
    found = serve(tmp_path)
    announce(found.server)

    def end():
        found.job.recorder.on_event(StatusEntered(status))
        found.server.close()

    after_showing(monkeypatch, "print_json_line", end, times=2)  # the second one is an event
    ended = rekindle("watch", "orders", "--json")
    assert (ended.code, ended.errors) == (code, "")
