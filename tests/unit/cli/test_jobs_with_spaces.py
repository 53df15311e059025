"""State of a job whose name is no folder's: found by its name, by its folder, and by addresses of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.clock import SystemClock
from rekindle.coordinator.replay_hint import replay_command
from rekindle.monitor.job_history import read_histories
from rekindle.replay import find_recording
from rekindle.snapshots.find_snapshot import find_snapshot
from tests.unit.cli.conftest import rekindle
from tests.unit.cli.made_checkpoints import make_checkpoints

FORMS = ["{}/failing totals", "{}/failing=20totals", "file:{}/failing=20totals", "file://{}/failing%3D20totals"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_checkpoints(tmp_path_factory.mktemp("made"))
    (made.directory / "test").rename(made.directory / "failing=20totals")
    return made.directory


@pytest.fixture(params=[*FORMS, "file://{}/failing%20totals"])
def job(directory: Path, request: pytest.FixtureRequest) -> str:
    return request.param.format(directory)


def test_its_checkpoints_are_listed(job: str) -> None:
    listed = rekindle("checkpoints", "list", job, "--json").document["checkpoints"]
    assert [each["id"] for each in listed] == [1, 2]
    assert rekindle("checkpoints", "verify", listed[-1]["path"]).code == 0


def test_its_state_is_read(directory: Path, job: str) -> None:
    assert rekindle("state", "show", job).code == 0
    rows = rekindle("state", "query", job, "totals", "--json").document["rows"]
    assert {row["key"]: row["total"] for row in rows}["ada"] == 10
    assert find_snapshot(job).manifest.checkpoint_id == find_snapshot(job, 2).manifest.checkpoint_id == 2
    (timeline,) = (each.parent.name for each in directory.glob("*/*/chk-2"))
    for command in ("show", "verify"):
        assert rekindle("checkpoints", command, f"{job}/{timeline}/chk-2").code == 0


def test_its_recordings_are_found(directory: Path, job: str) -> None:
    with pytest.raises(Exception, match="There is no recorded input at or below"):
        find_recording(job)
    assert read_histories(job, SystemClock().wall_ms()) == []


def test_the_command_that_replays_has_its_folder_as_it_is(directory: Path) -> None:
    recording = f"{LocalStore(directory / 'failing=20totals').url}/_replay/7.recording"
    assert replay_command(recording, None, [])[2] == f"{directory}/failing=20totals/_replay/7.recording"
    assert "failing=20totals" in recording


def test_no_such_job(directory: Path) -> None:
    missing = rekindle("checkpoints", "list", directory / "other totals")
    assert (missing.code, missing.errors) == (3, f"There is no directory '{directory / 'other totals'}'.\n")


@pytest.mark.parametrize("form", ["{}/totals v1/EU", "file:{}/totals v1/EU", "file://{}/totals%20v1%2FEU"])
def test_a_job_whose_name_has_a_slash_is_found_by_it(tmp_path: Path, form: str) -> None:
    made = make_checkpoints(tmp_path)
    (made.directory / "test").rename(made.directory / "totals=20v1=2FEU")
    job = form.format(made.directory)
    listed = rekindle("checkpoints", "list", job, "--json").document["checkpoints"]
    assert [each["id"] for each in listed] == [1, 2]
    assert find_snapshot(job).manifest.checkpoint_id == 2
    (timeline,) = (each.parent.name for each in made.directory.glob("*/*/chk-2"))
    assert rekindle("checkpoints", "verify", f"{job}/{timeline}/chk-2").code == 0


def test_folders_go_before_the_name_of_a_job(tmp_path: Path) -> None:
    made = make_checkpoints(tmp_path)
    (made.directory / "totals=2FEU").mkdir()
    (made.directory / "totals").mkdir()
    (made.directory / "test").rename(made.directory / "totals" / "EU")
    assert find_snapshot(f"{made.directory}/totals/EU").manifest.checkpoint_id == 2
