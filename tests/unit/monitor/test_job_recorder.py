"""The read model of a job: what it hears becomes states, figures and lists that are bounded."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import AttemptEntered, AttemptFailed
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.monitor.job_view import JobView, SubtaskView
from tests.support.recorded_jobs import START_MS, RecordedJob, plan_of_three_tasks


def subtask(view: JobView, task: str, index: int = 0) -> SubtaskView:
    vertex = next(each for each in view.vertices if each.name.startswith(task))
    return vertex.subtasks[index]


def test_ids_of_tasks_are_32_digits_and_stay_the_same():
    first, second = RecordedJob().recorder.view(), RecordedJob().recorder.view()
    ids = [vertex.id for vertex in first.vertices]
    assert ids == [vertex.id for vertex in second.vertices]
    assert all(len(each) == 32 and int(each, 16) for each in ids)
    assert [(edge.source, edge.target, edge.ship_strategy) for edge in first.edges] == [
        (ids[0], ids[1], "HASH"),
        (ids[1], ids[2], "REBALANCE"),
    ]


def test_states_have_the_time_at_which_they_were_entered():
    job = RecordedJob()
    assert job.recorder.view().status == "CREATED"
    job.later(2)
    job.run()
    job.later(3)
    job.end(JobStatus.FINISHED)
    view = job.recorder.view()
    assert view.entered_ms == {
        "INITIALIZING": START_MS,
        "CREATED": START_MS,
        "RUNNING": START_MS + 2000,
        "FINISHED": START_MS + 5000,
    }
    assert (view.started_ms, view.ended_ms, view.spent_ms["RUNNING"]) == (START_MS, START_MS + 5000, 3000)
    assert subtask(view, "count").entered_ms["RUNNING"] == START_MS + 2000


def test_records_are_counted_by_task_operator_and_exchange():
    job = RecordedJob().run()
    for _ in range(2):
        job.later(2)
        job.epoch(records=10)
    view = job.recorder.view()
    source, slow = subtask(view, "Source: numbers"), subtask(view, "slow")
    assert (source.figures.records_in, source.figures.records_out, source.figures.records_sunk) == (20, 20, 0)
    assert (slow.figures.records_in, slow.figures.records_out, slow.figures.records_sunk) == (20, 0, 20)
    assert [(each.records_in, each.records_out) for each in slow.operators] == [(20, 20), (20, 20), (20, 0)]
    assert [edge.records for edge in view.edges] == [40, 40], "two subtasks send over each"
    assert source.figures.in_per_s == pytest.approx(5.0)
    assert view.edges[0].per_s == pytest.approx(10.0)
    assert (view.records_in, view.records_out) == (40, 40)


def test_rates_fade_when_nothing_comes_and_totals_stay():
    job = RecordedJob().run()
    job.later(1)
    job.epoch(records=60)
    job.later(59)
    assert subtask(job.recorder.view(), "count").figures.in_per_s == pytest.approx(1.0)
    job.later(120)
    figures = subtask(job.recorder.view(), "count").figures
    assert (figures.in_per_s, figures.records_in) == (0.0, 60)


def test_tasks_before_a_slow_one_are_back_pressured_those_after_it_are_idle():
    """With a backlog, each second: the source works 10 ms, the next task 600 ms, the last one 100 ms."""
    job = RecordedJob().run()
    for _ in range(10):
        job.later(1)
        job.epoch(busy_ms=(10.0, 600.0, 100.0), more=True)
    view = job.recorder.view()
    source, count, slow = (subtask(view, name).figures for name in ("Source", "count", "slow"))
    assert (source.busy_ms_per_s, source.back_pressured_ms_per_s) == pytest.approx((10, 700))
    assert (count.busy_ms_per_s, count.back_pressured_ms_per_s) == pytest.approx((600, 100))
    assert (slow.busy_ms_per_s, slow.back_pressured_ms_per_s, slow.idle_ms_per_s) == pytest.approx((100, 0, 900))


def test_without_a_backlog_nothing_is_back_pressured():
    job = RecordedJob().run()
    for _ in range(10):
        job.later(1)
        job.epoch(busy_ms=(10.0, 600.0, 100.0), more=False)
    assert subtask(job.recorder.view(), "Source").figures.back_pressured_ms == 0


def test_a_failure_has_its_place_and_record_and_the_next_attempt_counts_anew():
    job = RecordedJob().run()
    job.epoch()
    job.fail(record="{'id': 7}", restart_in_ms=50)
    failed = job.recorder.view()
    (failure,) = failed.failures
    assert (failure.name, failure.operator, failure.subtask, failure.record) == ("KeyError", "count", 1, "{'id': 7}")
    assert failure.message.startswith("Traceback")
    assert failure.vertex == next(each.id for each in failed.vertices if each.name == "count")
    assert failure.slot == failed.slots[1].id
    assert [each.status for each in failed.vertices[1].subtasks] == ["CANCELED", "FAILED"]
    job.run(attempt=2)
    again = job.recorder.view()
    assert (again.restarts, again.attempt, again.status) == (1, 2, "RUNNING")
    assert subtask(again, "count").figures.records_in == 0
    assert {each.status for vertex in again.vertices for each in vertex.subtasks} == {"RUNNING"}


def test_everything_is_bounded():
    job = RecordedJob().run()
    for number in range(1, 700):
        job.later(1)
        job.epoch()
        job.log(0, f"line {number} " + "x" * 10_000)
        job.checkpoint(number)
        job.fail()
    view = job.recorder.view(log_lines=1000)
    assert (len(view.epochs), view.epochs[-1].epoch) == (300, 699)
    assert len(view.slots[0].log) == 500
    assert view.slots[0].log[-1].text.startswith("line 699")
    assert max(len(line.text) for line in view.slots[0].log) < 3000
    assert (len(view.failures), view.failure_count) == (16, 699)
    assert len(view.checkpoint_trend) == 300
    assert len(view.checkpoints.history) == 10
    job.recorder.on_event(AttemptFailed(ValueError("x" * 1_000_000), None))
    assert len(job.recorder.view().failures[0].message) <= 20_000


def test_the_age_of_the_last_good_checkpoint_counts_from_its_trigger():
    job = RecordedJob().run()
    assert job.recorder.view().last_good_checkpoint_ms() is None
    job.checkpoint(1)
    job.later(5)
    job.checkpoint(2, failure="Checkpoint was declined. The disk is full.")
    assert job.recorder.view().last_good_checkpoint_ms() == START_MS


def test_the_version_changes_with_what_a_page_shows():
    job = RecordedJob()
    versions = [job.recorder.version]
    for change in (job.run, job.epoch, lambda: job.checkpoint(1), job.fail):
        change()
        versions.append(job.recorder.version)
    assert versions == sorted(set(versions))
    job.log(0, "a line")
    assert job.recorder.version == versions[-1]


def test_secret_parameters_are_hidden():
    parameters = {"pipeline.global-job-parameters": "shop:north,db.password:hunter2"}
    view = RecordedJob(plan_of_three_tasks(**parameters)).recorder.view()
    assert view.parameters == {"shop": "north", "db.password": "******"}


def test_an_attempt_that_ended_stands_still():
    job = RecordedJob().run()
    job.later(10)
    job.recorder.on_event(AttemptEntered(1, AttemptState.CLOSING))
    job.recorder.on_event(AttemptEntered(1, AttemptState.FINISHED))
    idle_ms = subtask(job.recorder.view(), "count").figures.idle_ms
    job.later(100)
    assert subtask(job.recorder.view(), "count").figures.idle_ms == idle_ms == pytest.approx(10_000)


@pytest.mark.parametrize("directory", ["s3://bucket/checkpoints", "file:///data/checkpoints", "/data/checkpoints"])
def test_directories_are_those_that_others_see(directory, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def shown(path: str) -> str | None:
        places: dict[str, Any] = {"execution.checkpointing.dir": path}
        job = RecordedJob(plan_of_three_tasks(**places))
        return job.recorder.view().checkpoint_config.directory

    assert shown(directory) == directory
    assert shown("checkpoints") == f"{tmp_path}/checkpoints"
