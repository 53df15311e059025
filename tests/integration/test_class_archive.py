"""An archive of Spark's classes is made once, by hand, and mapped by every JVM after that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

SESSION = """if True:
    import psutil
    from rekindle.common import Configuration
    from rekindle.spark.session import start_context, stop_context
    context = start_context(Configuration().set_string("master", "local[1]"))
    jvm = next(each for each in psutil.Process().children(recursive=True) if each.name() == "java")
    print(sorted({each.path for each in jvm.memory_maps() if "spark-classes-" in each.path}))
    stop_context(context)
"""


def run(cache: Path, *words: str) -> str:
    environment = os.environ | {"XDG_CACHE_HOME": os.fspath(cache), "PYTHONPATH": os.pathsep.join(sys.path[1:])}
    command = [sys.executable, *words]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.long
def test_an_archive_is_made_and_then_used(tmp_path: Path) -> None:
    assert run(tmp_path, "-c", SESSION).strip() == "[]"
    said = run(tmp_path, "-m", "rekindle.spark.class_archive")
    (archive,) = (tmp_path / "rekindle").iterdir()
    assert said.startswith(os.fspath(archive))
    assert run(tmp_path, "-c", SESSION).strip() == str([os.fspath(archive)])
