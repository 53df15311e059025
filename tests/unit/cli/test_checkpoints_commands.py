"""`rekindle checkpoints`: the catalogue at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.cli import printed
from tests.unit.checkpoint.made_directory import Directory
from tests.unit.cli.conftest import rekindle
from tests.unit.cli.made_checkpoints import Made, make_checkpoints


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """Two runs of a job: checkpoints 1 and 2 of the first, 3 of the second."""
    return Directory(tmp_path / "checkpoints")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_checkpoints(tmp_path_factory.mktemp("made"))


def test_the_list_has_every_checkpoint(directory):
    listed = rekindle("checkpoints", "list", directory.path)
    assert listed.code == 0
    assert [directory.at(number) in listed.out for number in (1, 2, 3)] == [True] * 3
    assert listed.out.count("latest") == 1
    document = rekindle("checkpoints", "list", directory.path, "--json").document
    assert [(each["id"], each["is-latest"], each["damage"]) for each in document["checkpoints"]] == [
        (1, False, None),
        (2, False, None),
        (3, True, None),
    ]
    assert rekindle("checkpoints", "list", directory.path, "--job", "other", "--json").document["checkpoints"] == []
    assert "There is no checkpoint below" in rekindle("checkpoints", "list", directory.path, "--job", "other").out


def test_the_list_is_a_table_where_its_paths_fit(directory, monkeypatch):
    monkeypatch.setattr(printed, "_WIDTH_ELSEWHERE", 1000)
    rows = [line for line in rekindle("checkpoints", "list", directory.path).out.splitlines() if "file://" in line]
    assert [f"file://{directory.at(number)}" in row for number, row in enumerate(rows, 1)] == [True] * 3
    assert all("checkpoint" in row.lower() and "timeline" not in row.lower() for row in rows)


@pytest.mark.parametrize("width", [60, 170])
def test_a_narrow_terminal_has_each_path_in_one_piece(directory, monkeypatch, width):
    monkeypatch.setattr(printed, "_WIDTH_ELSEWHERE", width)
    lines = [line.strip() for line in rekindle("checkpoints", "list", directory.path).out.splitlines()]
    paths = [line for line in lines if line.startswith("file://")]
    assert paths == [f"file://{directory.at(number)}" for number in (1, 2, 3)]


def test_a_directory_that_is_not_there(tmp_path):
    ended = rekindle("checkpoints", "list", tmp_path / "no", "--json")
    assert (ended.code, ended.out, ended.errors) == (3, "", f"There is no directory '{tmp_path}/no'.\n")


def test_a_checkpoint_is_shown(made):
    shown = rekindle("checkpoints", "show", made.second)
    assert shown.code == 0
    assert "totals" in shown.out
    document = rekindle("checkpoints", "show", made.second, "--json").document
    assert (document["kind"], document["checkpoint_id"], document["job_name"]) == ("checkpoint", 2, "test")
    (totals,) = [each for each in document["operators"] if each["name"] == "totals"]
    assert (totals["keyed"], totals["timers"], totals["max_parallelism"]) == (True, True, 8)
    assert rekindle("checkpoints", "show", made.directory / "nothing").code == 3


def test_a_whole_checkpoint_and_a_damaged_one(directory):
    whole = rekindle("checkpoints", "verify", directory.at(2))
    assert (whole.code, whole.out) == (0, f"{directory.at(2)} is whole.\n")
    file = directory.shared(1)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    damaged = rekindle("checkpoints", "verify", directory.at(2))
    assert (damaged.code, damaged.out) == (1, "")
    assert damaged.errors.startswith("Operator op, subtask 1: ")
    document = rekindle("checkpoints", "verify", directory.at(2), "--json").document
    assert not document["whole"]
    assert [(each["operator"], each["subtask"]) for each in document["damages"]] == [("op", 0)]
    assert rekindle("checkpoints", "verify", directory.path / "nothing").code == 3


def test_a_copy_is_a_savepoint_of_its_own(directory, tmp_path):
    target = tmp_path / "kept"
    copied = rekindle("checkpoints", "copy", directory.at(2), target)
    assert (copied.code, copied.out) == (0, f"file://{target}\n")
    assert rekindle("checkpoints", "show", target, "--json").document["kind"] == "savepoint"
    again = rekindle("checkpoints", "copy", directory.at(2), target, "--json")
    assert (again.code, again.out) == (1, "")
    assert "name a new folder" in again.errors


def test_only_what_no_job_needs_is_deleted(directory):
    latest = rekindle("checkpoints", "delete", directory.at(3), "--job-is-over")
    assert latest.code == 1
    assert "goes on from" in latest.errors
    deleted = rekindle("checkpoints", "delete", directory.at(1), "--json")
    assert deleted.code == 0
    assert [Path(file).name for file in deleted.document["files"]] == ["_metadata"]  # the second needs the others
    assert rekindle("checkpoints", "verify", directory.at(2)).code == 0
    assert rekindle("checkpoints", "delete", directory.at(1)).code == 3


def test_a_checkpoint_of_the_last_run_needs_a_word(directory):
    from tests.unit.checkpoint.samples import published

    published(directory.store, directory.second, 4, ((0, b"zero" * 5000),))
    refused = rekindle("checkpoints", "delete", directory.at(3))
    assert refused.code == 1
    assert "add --job-is-over if it does not run any more" in refused.errors
    assert rekindle("checkpoints", "delete", directory.at(3), "--job-is-over").out.startswith("Deleted ")
