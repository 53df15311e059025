"""Fast start of Spark: compiled code in its Python workers, options of its JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from rekindle.spark.java import JavaHome
from rekindle.spark.jvm_options import archive_name, archive_of, archive_options, start_environment
from rekindle.spark.slots import slot_environment
from rekindle.spark.worker_daemon import superfluous_zips

PACKAGE = Path(pyspark.__file__).resolve().parent
ZIPS = {os.fspath(each) for each in (PACKAGE / "python" / "lib").glob("*.zip")}


def test_the_zips_of_an_installed_pyspark_are_superfluous(tmp_path: Path) -> None:
    path = ["", *ZIPS, os.fspath(PACKAGE.parent), os.fspath(tmp_path / "mine.zip")]
    assert ZIPS
    assert superfluous_zips(path) == ZIPS


def test_the_links_of_a_spark_home_lead_to_the_installed_one(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(PACKAGE / "python")
    linked = {os.fspath(tmp_path / "python" / "lib" / os.path.basename(each)) for each in ZIPS}
    assert superfluous_zips([*linked, os.fspath(PACKAGE.parent)]) == linked


def test_a_pyspark_that_is_not_installed_is_needed_as_a_zip(tmp_path: Path) -> None:
    """As in a Spark distribution, whose pyspark is in no other place."""
    library = tmp_path / "spark" / "python" / "lib"
    library.mkdir(parents=True)
    (library / "pyspark.zip").touch()
    assert superfluous_zips([os.fspath(library / "pyspark.zip"), os.fspath(tmp_path)]) == set()


def test_a_slot_does_not_look_into_zips_for_its_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*ZIPS, "/theirs"]))
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_SECRET", "secret")
    environment = slot_environment("/ours")
    assert environment["PYTHONPATH"] == os.pathsep.join(["/ours", "/theirs"])
    assert "PYTHON_WORKER_FACTORY_SECRET" not in environment


def test_the_daemon_imports_nothing_that_starts_threads() -> None:
    """Workers are forks of the daemon: a thread would be missing in them, and a lock that it held would stay locked."""
    code = """if True:
        import os, sys
        import pyspark.daemon
        from rekindle.spark import worker_daemon
        pyspark.daemon.manager = lambda: print(
            len(os.listdir("/proc/self/task")),
            "rekindle.spark.pump" in sys.modules,
            {"pyarrow", "pandas", "numpy"} & set(sys.modules),
        )
        worker_daemon.main()
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.split(maxsplit=2) == ["1", "True", "set()\n"]


def test_the_users_options_of_the_jvm_come_last() -> None:
    environment = start_environment({"SPARK_SUBMIT_OPTS": "-XX:Tier4InvocationThreshold=1", "OTHER": "x"})
    options = environment["SPARK_SUBMIT_OPTS"].split()
    assert options[-1] == "-XX:Tier4InvocationThreshold=1"
    assert "-XX:+IgnoreUnrecognizedVMOptions" in options
    assert environment.keys() == {"SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"}


# -- the archive of Java classes --------------------------------------------------------------------------------------

JAVA = JavaHome(Path("/java"), 17, "JAVA_HOME")


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose cache directory has an archive for this Java."""
    folder = tmp_path / "rekindle"
    folder.mkdir(mode=0o700)
    environ = {"XDG_CACHE_HOME": os.fspath(tmp_path)}
    archive = archive_of(JAVA, environ, folder)
    archive.touch(mode=0o600)
    return environ


def test_an_archive_that_is_there_is_used(cache: dict[str, str]) -> None:
    option, *_ = archive_options(JAVA, cache)
    assert option.startswith("-XX:SharedArchiveFile=")
    assert option.endswith(archive_of(JAVA, cache, Path(cache["XDG_CACHE_HOME"], "rekindle")).name)
    assert option in start_environment({}, archive_options(JAVA, cache))["SPARK_SUBMIT_OPTS"].split()


def test_an_archive_for_another_java_is_not(cache: dict[str, str]) -> None:
    assert archive_options(JavaHome(Path("/other"), 17, "PATH"), cache) == ()


@pytest.mark.parametrize("writable", ["folder", "file"])
def test_an_archive_that_others_could_have_written_is_not(cache: dict[str, str], writable: str) -> None:
    """The JVM runs the code in the archive."""
    folder = Path(cache["XDG_CACHE_HOME"], "rekindle")
    (folder if writable == "folder" else archive_of(JAVA, cache, folder)).chmod(0o777)
    assert archive_options(JAVA, cache) == ()


def test_other_jars_have_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "spark.jar"
    jar.write_bytes(b"1")
    before = archive_name(JAVA, [jar])
    assert archive_name(JAVA, [jar]) == before
    jar.write_bytes(b"22")
    assert archive_name(JAVA, [jar]) != before
