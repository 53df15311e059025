"""A job goes on from checkpoints and savepoints that a release wrote: a changed format fails here.

`make_checkpoints.py` has written them. A folder has the name of the first release with its format. They are read as
tables in `tests/integration/test_state_tables.py`.
"""

from __future__ import annotations

from zipfile import ZipFile

import pytest

from rekindle.checkpoint.manifest import PartKind
from rekindle.testing import InProcessJob, ManualClock, StoredCheckpoint
from tests.compat.kept_checkpoints import ARCHIVES, BY_CLOCK, BY_SUBTASK, expected, unpacked, without
from tests.compat.make_checkpoints import PER_EPOCH, continued, interrupted, lines
from tests.compat.program import START_MS, job

BACKENDS = ("hashmap", "rocksdb")


def test_both_kinds_are_kept():
    assert {archive.stem for archive in ARCHIVES} == {"checkpoint", "savepoint"}


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: f"{archive.parent.name} {archive.stem}")
class TestKept:
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_a_job_goes_on_from_it_on_either_backend(self, archive, backend, tmp_path):
        output = tmp_path / "output"
        output.mkdir()
        kept = StoredCheckpoint.at(unpacked(archive, tmp_path))
        assert continued(kept, str(output), **{"state.backend.type": backend}) == expected(archive)

    @pytest.mark.parametrize(("parallelism", "backend"), [(2, "hashmap"), (3, "hashmap"), (3, "rocksdb")])
    def test_also_at_another_parallelism(self, archive, parallelism, backend, tmp_path):
        output = tmp_path / "output"
        output.mkdir()
        kept = StoredCheckpoint.at(unpacked(archive, tmp_path))
        found = continued(kept, str(output), parallelism, **{"state.backend.type": backend})
        assert without(found, *BY_SUBTASK) == without(expected(archive), *BY_SUBTASK)

    def test_it_holds_every_kind_of_state(self, archive, tmp_path):
        """Otherwise the tests above would not cover a missing kind of state."""
        manifest = StoredCheckpoint.at(unpacked(archive, tmp_path)).manifest
        subtasks = [subtask for operator in manifest.operators for subtask in operator.subtasks]
        kinds = {part.kind for subtask in subtasks for part in (*subtask.keyed, *subtask.timers)}
        assert kinds == ({PartKind.FULL} if archive.stem == "savepoint" else {PartKind.FULL, PartKind.DELTA})
        for field in ("keyed", "timers", "operator_state", "union", "source", "task", "committables"):
            assert any(getattr(subtask, field) for subtask in subtasks), f"nothing has {field}"
        layouts = {operator.layout for operator in manifest.operators}
        assert layouts >= {"a rolling aggregation", "an interval join", "async I/O", "count windows of elements"}
        assert layouts >= {"merging event-time windows of elements", "event-time windows of accumulators"}

    def test_nothing_of_the_machine_that_wrote_it_is_inside(self, archive):
        with ZipFile(archive) as kept:
            content = [*map(str.encode, kept.namelist()), *map(kept.read, kept.namelist())]
        for trace in (b"/tmp", b"/home", b"/work", b"/root", b"/Users"):
            assert not any(trace in part for part in content), trace


@pytest.mark.parametrize("savepoint", [False, True])
def test_what_is_written_today_gives_the_same(savepoint, tmp_path):
    """The script still works, and what it expects is right: before and after the cut together are a clean run."""
    folders = [tmp_path / name for name in ("before", "after", "clean")]
    for folder in folders:
        folder.mkdir()
    before, taken = interrupted(str(folders[0]), savepoint=savepoint)
    after = continued(taken, str(folders[1]))
    assert after == expected(ARCHIVES[-1])
    clean = lines(InProcessJob.of(job(str(folders[2])), ManualClock(START_MS), PER_EPOCH).run())
    cut = (*BY_CLOCK, "lists")  # the last one says what it was restored with
    assert sorted(without(lines(before) + after, *cut)) == without(clean, *cut)
