"""Archives and packages of a job reach the functions in every slot, on every form of a cluster."""

from __future__ import annotations

import os
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rekindle.common import Types
from rekindle.errors import ConfigurationError
from tests.support.environments import environment
from tests.support.local_cluster import launch_locally
from tests.support.running_program import RunningProgram
from tests.support.standalone_cluster import standalone_cluster
from tests.support.tiny_wheel import tiny_wheel

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A directory with an archive, a requirements file, and the wheel that it asks for."""
    tiny_wheel(tmp_path / "wheels")
    (tmp_path / "requirements.txt").write_text("tinydep\n")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("words.txt", "to be\n")
    return tmp_path


def found(number: int) -> str:
    import tinydep  # type: ignore[import-not-found]

    with open("data/words.txt", encoding="utf-8") as file:
        return f"{file.read().strip()} {tinydep.answer()}"


def test_every_slot_has_the_archives_and_the_packages(prepared: Path) -> None:
    env = environment(2)
    env.add_python_archive(str(prepared / "data.zip"), "data")
    env.set_python_requirements(str(prepared / "requirements.txt"), str(prepared / "wheels"))
    stream = env.from_sequence(1, 20).map(found, Types.STRING())
    job = launch_locally(env._program("dependencies", stream._collect()))
    texts = [text for batch in job.results() for text in batch]
    job.result().result()
    assert texts == ["to be 42"] * 20
    assert "tinydep" not in sys.modules


def test_a_package_that_cannot_be_had_fails_before_anything_starts(prepared: Path) -> None:
    (prepared / "requirements.txt").write_text("tinydep==9\n")
    env = environment(1)
    env.set_python_requirements(str(prepared / "requirements.txt"), str(prepared / "wheels"))
    env.from_sequence(1, 2).print()
    with pytest.raises(ConfigurationError, match="No matching distribution found for tinydep==9"):
        env.execute()


def run_on(master: str, prepared: Path) -> None:
    arguments = [str(prepared / name) for name in ("data.zip", "requirements.txt", "wheels")]
    with RunningProgram("dependencies/answers.py", master, *arguments) as program:
        assert program.wait(deadline_s=400.0) == 0, "\n".join(program.errors)
        assert program.out == ["to be 42 archives"] * 20
        left = os.listdir(program.temporary)
    assert left == []


@pytest.mark.cluster
@pytest.mark.long
def test_on_a_local_cluster(prepared: Path) -> None:
    run_on("local-cluster[2,1,1024]", prepared)


@pytest.fixture
def workers_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="rk-test-") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        yield
        assert os.listdir(temporary) == []


@pytest.mark.cluster
@pytest.mark.long
def test_on_a_standalone_cluster(prepared: Path, workers_folder: None) -> None:
    with standalone_cluster(workers=2, cores=1, memory="1g") as running:
        run_on(running.master, prepared)


@pytest.mark.long
def test_slots_run_in_an_interpreter_of_an_archive(spark: SparkSession, tmp_path: Path) -> None:
    """The interpreter is that of an environment of its own, which finds the packages of this one."""
    venv.create(tmp_path / "env", symlinks=False, with_pip=False)
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (packages / "here.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        for path in (tmp_path / "env").rglob("*"):
            if path.is_file() and not path.is_symlink():
                archive.add(path, path.relative_to(tmp_path))
    env = environment(1)
    env.add_python_archive(str(tmp_path / "env.tar.gz"), "python")
    env.set_python_executable("python/env/bin/python")
    with env.from_sequence(1, 2).map(lambda _: sys.executable, Types.STRING()).execute_and_collect() as texts:
        assert {Path(text).parts[-4:] for text in texts} == {("python", "env", "bin", "python")}
