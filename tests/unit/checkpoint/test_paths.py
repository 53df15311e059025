"""The names of files and folders in a checkpoint directory."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from rekindle.checkpoint.paths import (
    CheckpointPath,
    StateFileName,
    checked_path,
    checkpoint_folder,
    escaped,
    is_timeline,
    metadata_path,
    new_timeline,
    owner_attempt,
    owner_path,
    root_of,
    shared_reference,
    timeline_folder,
    timeline_order,
)


@given(st.text(max_size=300), st.text(max_size=300))
@example("..", ".")
@example("", "\x00")
@example("a/b", "a=2Fb")
def test_names_are_single_safe_parts_and_stay_apart(one: str, two: str) -> None:
    folder = escaped(one)
    assert checked_path(folder) == folder
    assert "/" not in folder
    assert len(folder.encode()) < 200
    assert (folder == escaped(two)) == (one == two)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.text(min_size=1, max_size=150), st.integers(0, 1000))
def test_state_file_names_say_what_they_are(checkpoint_id: int, attempt: int, uid: str, subtask: int) -> None:
    name = StateFileName.of(checkpoint_id, attempt, uid, subtask)
    path = f"{timeline_folder('job', new_timeline(3))}/{shared_reference(name)}"
    assert StateFileName.parse(path) == name
    assert StateFileName.parse(path + ".0a1b2c3d.part") == name


@pytest.mark.parametrize("path", ["a/chk-1/_metadata", "shared/x.state", "1-2-3.state", "owners/00000001", ""])
def test_other_files_are_no_state_files(path: str) -> None:
    assert StateFileName.parse(path) is None


@given(st.text(min_size=1, max_size=50), st.integers(0, 10**9))
def test_checkpoints_are_found_by_their_path(job: str, checkpoint_id: int) -> None:
    timeline = new_timeline(12)
    folder = checkpoint_folder(job, timeline, checkpoint_id)
    found = CheckpointPath.parse(metadata_path(folder))
    assert found == CheckpointPath(escaped(job), timeline, checkpoint_id)
    assert str(found) == folder
    assert root_of(folder) == timeline_folder(job, timeline)


def test_timelines_are_ordered_and_never_the_same() -> None:
    attempts = [1, 2, 10, 99_999_999, 100_000_000]
    timelines = [new_timeline(attempt) for attempt in attempts]
    shuffled = [timelines[place] for place in (3, 0, 4, 2, 1)]
    assert sorted(shuffled, key=timeline_order) == timelines
    assert all(map(is_timeline, timelines))
    assert new_timeline(1) != new_timeline(1)


def test_claims_are_numbered() -> None:
    assert [owner_attempt(owner_path("a job", attempt)) for attempt in (1, 123_456_789)] == [1, 123_456_789]
    assert owner_attempt(owner_path("a job", 1) + ".0a1b2c3d.part") is None
