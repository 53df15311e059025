"""A directory of checkpoints without a job: list, verify, copy, delete. What a job may need is never deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.checkpoint import (
    checkpoint_copy,
    copy_checkpoint,
    delete_checkpoint,
    delete_unneeded,
    list_checkpoints,
    unneeded_files,
    verify_checkpoint,
)
from rekindle.checkpoint.load_checkpoint import load, locate
from rekindle.checkpoint.manifest import ManifestKind
from rekindle.checkpoint.statefile import read_blobs
from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.timeline_notes import note_stop
from rekindle.errors import CheckpointError, CheckpointNotFoundError, StoreError
from tests.unit.checkpoint.made_directory import GROUPS, Directory
from tests.unit.checkpoint.samples import contents, published


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "checkpoints")


def state_of(path: str) -> list[bytes]:
    place = locate(path)
    found = load(place.store, place.path, deep=True)
    return list(read_blobs(found.store, found.root, list(found.manifest.blobs())))


class TestList:
    def test_every_checkpoint_with_what_it_needs_and_what_needs_it(self, directory):
        one, two, three = list_checkpoints(str(directory.path))
        assert [each.checkpoint_id for each in (one, two, three)] == [1, 2, 3]
        assert (one.job_name, one.kind, one.timeline) == ("orders", ManifestKind.CHECKPOINT, directory.first.timeline)
        assert (one.needs, two.needs, three.needs) == ((), (1,), ())
        assert (one.shared_with, two.shared_with, three.shared_with) == ((two.folder,), (one.folder,), ())
        assert two.full_bytes == 20000 + 15000 + 15000
        assert two.new_bytes == 15000
        assert two.operators == ("op",)
        assert [each.is_latest for each in (one, two, three)] == [False, False, True]
        assert [each.of_last_run for each in (one, two, three)] == [False, False, True]
        assert all(each.whole for each in (one, two, three))
        assert three.url == "file://" + directory.at(3)

    def test_a_missing_file_and_a_damaged_manifest_are_told(self, directory):
        directory.shared(1).unlink()
        (Path(directory.at(3)) / "_metadata").write_bytes(b"REKINDLE and nothing else")
        one, two, three = sorted(list_checkpoints(str(directory.path)), key=lambda each: each.checkpoint_id)
        assert "is missing" in one.damage
        assert "is missing" in two.damage
        assert not three.whole
        assert (three.job_name, three.checkpoint_id) == ("orders", 3), "the path tells so much"

    def test_savepoints_are_listed_too(self, directory):
        copy_checkpoint(directory.at(2), str(directory.path / "kept"))
        entries = list_checkpoints(str(directory.path))
        kept = next(each for each in entries if each.kind is ManifestKind.SAVEPOINT)
        assert (kept.folder, kept.checkpoint_id, kept.shared_with, kept.of_last_run) == ("kept", 2, (), False)

    def test_the_savepoint_that_a_job_was_stopped_with_is_its_latest(self, directory):
        url = copy_checkpoint(directory.at(3), str(directory.path / "kept"))
        note_stop(directory.store, directory.second, 4, url)
        latest = [each.folder for each in list_checkpoints(str(directory.path)) if each.is_latest]
        assert latest == ["kept"]

    def test_an_empty_directory_has_none(self, tmp_path):
        assert list_checkpoints(str(tmp_path)) == []


class TestVerify:
    def test_a_whole_one_has_no_damage(self, directory):
        assert verify_checkpoint(directory.at(2)) == []

    def test_every_damaged_subtask_is_named(self, directory):
        file = directory.shared(1)
        data = bytearray(file.read_bytes())
        data[3] ^= 1
        file.write_bytes(data)
        (damage,) = verify_checkpoint(directory.at(2))
        assert (damage.operator, damage.subtask) == ("op", 0)
        assert "checksum" in damage.problem
        assert all(each.whole for each in list_checkpoints(str(directory.path))), "a list reads no state"

    def test_a_damaged_manifest_is_a_damage(self, directory):
        (Path(directory.at(2)) / "_metadata").write_bytes(b"REKINDLE and nothing else")
        (damage,) = verify_checkpoint(directory.at(2))
        assert damage.operator == ""

    def test_nothing_there_is_an_error(self, tmp_path):
        with pytest.raises(CheckpointNotFoundError, match="There is no checkpoint or savepoint at"):
            verify_checkpoint(str(tmp_path / "nothing"))


class TestCopy:
    def test_the_copy_needs_no_other_file(self, directory, tmp_path):
        before = state_of(directory.at(2))
        url = copy_checkpoint(directory.at(2), str(tmp_path / "elsewhere" / "kept"))
        for file in directory.path.rglob("*.state"):
            file.unlink()
        moved = tmp_path / "moved"
        (tmp_path / "elsewhere" / "kept").rename(moved)
        assert url.endswith("/elsewhere/kept")
        assert state_of(str(moved)) == before
        assert load(open_store(str(tmp_path)), "moved").manifest.kind is ManifestKind.SAVEPOINT

    def test_a_damaged_one_is_not_copied_and_leaves_nothing(self, directory, tmp_path):
        file = directory.shared(1)
        file.write_bytes(b"x" * len(file.read_bytes()))
        with pytest.raises(CheckpointError, match="checksum"):
            copy_checkpoint(directory.at(2), str(tmp_path / "kept"))
        assert list(tmp_path.rglob("kept/*")) == []

    def test_a_copy_that_cannot_be_completed_leaves_nothing(self, directory, tmp_path, monkeypatch):
        def fail(*_):
            assert list((tmp_path / "kept").glob("*.state")), "the files are there before the manifest"
            raise StoreError("no space left")

        monkeypatch.setattr(checkpoint_copy, "put_metadata", fail)
        with pytest.raises(StoreError, match="no space left"):
            copy_checkpoint(directory.at(2), str(tmp_path / "kept"))
        assert not (tmp_path / "kept").exists()

    def test_a_folder_with_files_is_refused(self, directory, tmp_path):
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "mine.txt").write_text("mine")
        with pytest.raises(CheckpointError, match="name a new folder"):
            copy_checkpoint(directory.at(2), str(tmp_path / "kept"))
        assert (tmp_path / "kept" / "mine.txt").exists()

    def test_the_name_of_a_checkpoint_is_refused(self, directory, tmp_path):
        with pytest.raises(CheckpointError, match="another one"):
            copy_checkpoint(directory.at(2), str(tmp_path / "chk-2"))


class TestDelete:
    def test_files_that_another_checkpoint_needs_stay(self, directory):
        before = state_of(directory.at(2))
        deleted = delete_checkpoint(directory.at(1))
        assert len(deleted.paths) == 1, "its only file is needed by the second one"
        assert state_of(directory.at(2)) == before
        gone = delete_checkpoint(directory.at(2))
        assert gone.size_bytes > 35000
        assert not list(Path(directory.at(2)).parent.rglob("*.state"))

    def test_the_one_that_the_job_goes_on_from_is_refused_even_if_it_does_not_run(self, directory):
        before = contents(directory.store)
        with pytest.raises(CheckpointError, match="goes on from"):
            delete_checkpoint(directory.at(3), job_runs=False)
        assert contents(directory.store) == before

    def test_one_of_the_last_run_is_refused_unless_the_job_does_not_run(self, directory):
        published(directory.store, directory.second, 4, GROUPS)
        with pytest.raises(CheckpointError, match="last run"):
            delete_checkpoint(directory.at(3))
        assert delete_checkpoint(directory.at(3), job_runs=False).paths

    def test_beside_a_damaged_one_nobody_knows_which_files_are_needed(self, directory):
        (Path(directory.at(2)) / "_metadata").write_bytes(b"REKINDLE and nothing else")
        with pytest.raises(CheckpointError, match="delete that one first"):
            delete_checkpoint(directory.at(1))
        delete_checkpoint(directory.at(2))
        assert delete_checkpoint(directory.at(1)).paths

    def test_a_savepoint_goes_with_its_files_unless_a_job_elsewhere_goes_on_from_it(self, directory, tmp_path):
        url = copy_checkpoint(directory.at(3), str(tmp_path / "savepoints" / "kept"))
        note_stop(directory.store, directory.second, 4, url)
        with pytest.raises(CheckpointError, match="goes on from"):
            delete_checkpoint(url, directory=str(directory.path))
        published(directory.store, directory.second, 5, GROUPS)
        delete_checkpoint(url, directory=str(directory.path))
        assert not (tmp_path / "savepoints" / "kept").exists()

    def test_nothing_there_is_an_error(self, directory):
        with pytest.raises(CheckpointNotFoundError):
            delete_checkpoint(str(directory.path / "nothing"))


class TestUnneeded:
    def test_files_that_no_checkpoint_needs_are_found_and_deleted(self, directory):
        orphan = Path(directory.at(1)).parent / "shared" / "9-1-op-0.state"
        orphan.write_bytes(b"of an aborted checkpoint")
        before = contents(directory.store)
        found = unneeded_files(str(directory.path))
        assert contents(directory.store) == before, "looking deletes nothing"
        assert found.paths == (orphan.relative_to(directory.path).as_posix(),)
        assert delete_unneeded(str(directory.path)) == found
        assert not orphan.exists()
        assert all(verify_checkpoint(directory.at(n)) == [] for n in (1, 2, 3))

    def test_files_of_the_last_run_may_belong_to_a_checkpoint_that_is_being_written(self, directory):
        fresh = Path(directory.at(3)).parent / "shared" / "4-2-op-0.state"
        fresh.write_bytes(b"of a checkpoint under way")
        assert unneeded_files(str(directory.path)).paths == ()
        assert len(unneeded_files(str(directory.path), job_runs=False).paths) == 1

    def test_beside_a_damaged_manifest_everything_stays(self, directory):
        (Path(directory.at(2)) / "_metadata").write_bytes(b"REKINDLE and nothing else")
        (Path(directory.at(1)).parent / "shared" / "9-1-op-0.state").write_bytes(b"who knows")
        assert unneeded_files(str(directory.path)).paths == ()
