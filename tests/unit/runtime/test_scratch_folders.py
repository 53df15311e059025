"""RocksDB's folders in directories that the user chose: nobody else reads them, and each end of a slot removes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rekindle.errors import StateBackendError
from rekindle.graph.settings import StateBackendSettings
from rekindle.runtime.scratch_folders import (
    make_scratch_folder,
    remove_abandoned_folders,
    remove_scratch_folders,
)
from rekindle.runtime.state.keyed_backends import KeyedBackends

MAKES_ONE = """
import sys, time
from rekindle.runtime.scratch_folders import make_scratch_folder
print(make_scratch_folder(sys.argv[1], [sys.argv[2]]).path, flush=True)
time.sleep(600)
"""


@pytest.fixture
def slot(tmp_path: Path) -> str:
    (tmp_path / "slot").mkdir()
    return str(tmp_path / "slot")


@pytest.fixture
def chosen(tmp_path: Path) -> Path:
    return tmp_path / "chosen"


def abandoned(slot: str, chosen: Path) -> Path:
    """The folder of a slot that was killed with its guardian."""
    with subprocess.Popen([sys.executable, "-c", MAKES_ONE, slot, chosen], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        folder = Path(killed.stdout.readline().strip())
        killed.send_signal(signal.SIGKILL)
    assert folder.is_dir()
    return folder


@pytest.mark.parametrize("elsewhere", [True, False])
def test_only_the_owner_reads_the_files(slot: str, chosen: Path, elsewhere: bool) -> None:
    before = os.umask(0o022)
    try:
        settings = StateBackendSettings("rocksdb", 8 << 20, (str(chosen),) if elsewhere else ())
        backends = KeyedBackends(settings, slot)
        database, _ = backends._database_and_number()
        database.write([(b"a", b"1")])
        database.ingest([(b"b", b"x" * (1 << 20))])
        database._database.flush()
    finally:
        os.umask(before)
    top = next(chosen.iterdir()) if elsewhere else database.folder
    made = [top, *top.rglob("*")]
    assert {oct(each.stat().st_mode & 0o777) for each in made if each.is_dir()} == {"0o700"}
    assert {oct(each.stat().st_mode & 0o777) for each in made if each.is_file()} == {"0o600"}
    assert any(each.suffix == ".sst" for each in made)
    backends.close()
    assert not elsewhere or list(chosen.iterdir()) == []


def test_an_ended_slots_folder_goes_and_one_in_use_stays(slot: str, chosen: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    used = make_scratch_folder(str(tmp_path / "other"), [str(chosen)])
    gone = abandoned(slot, chosen)
    remove_scratch_folders(slot)  # as its guardian does
    assert not gone.exists()
    assert [str(each) for each in chosen.iterdir()] == [used.path]
    used.release_lock()


def test_a_slot_that_ends_removes_what_others_of_its_host_have_left(slot: str, chosen: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    left = abandoned(str(tmp_path / "other"), chosen)
    assert abandoned(slot, chosen).exists()
    assert not left.exists(), "the next slot removes it"
    left = abandoned(str(tmp_path / "other"), chosen)
    remove_scratch_folders(slot)
    assert not left.exists()


def test_the_end_of_the_job_removes_what_is_left(slot: str, chosen: Path) -> None:
    left = abandoned(slot, chosen)
    remove_abandoned_folders([str(chosen), str(chosen / "missing")])
    assert not left.exists()


def test_the_cluster_of_a_job_removes_it_when_it_is_closed(
    slot: str, chosen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rekindle.common import Configuration
    from rekindle.spark.spark_cluster import SparkCluster

    class Lease:
        def close(self) -> None:
            pass

    left = abandoned(slot, chosen)
    cluster: Any = object.__new__(SparkCluster)
    cluster._thread, cluster._placements, cluster._feeds, cluster._lease = Lease(), [], {}, Lease()
    cluster._configuration = Configuration.from_dict({"io.tmp.dirs": str(chosen)})
    cluster.close()
    assert not left.exists()


def test_a_directory_that_cannot_be_used_is_one_sentence(slot: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    backends = KeyedBackends(StateBackendSettings("rocksdb", 8 << 20, (str(tmp_path / "file"),)), slot)
    with pytest.raises(StateBackendError, match=r"cannot be made in .*/file: .*state\.backend\.rocksdb\.localdir"):
        backends._database_and_number()
