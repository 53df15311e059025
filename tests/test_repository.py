"""What the clone promises about itself."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
TARGETS = ("help", "demo", "test", "check", "bench", "servers", "clean")


def locked_versions() -> dict[str, str]:
    text = (REPOSITORY / "requirements.lock").read_text()
    return dict(re.findall(r"^([\w-]+)==(\S+)", text, re.MULTILINE))


def test_the_lock_file_names_no_registry_and_no_path() -> None:
    text = (REPOSITORY / "requirements.lock").read_text()
    assert not re.search(r"://|--\w+|@|\.whl", text)


def test_the_lock_file_has_everything_that_the_project_asks_for() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    asked = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["java"],
        *project["project"]["optional-dependencies"]["pandas"],
        *project["dependency-groups"]["dev"],
        *project["build-system"]["requires"],
    ]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in asked}  # type: ignore[index]
    assert names <= locked_versions().keys()


def test_the_lock_file_has_no_pandas_that_pyspark_cannot_use() -> None:
    assert int(locked_versions()["pandas"].split(".")[0]) < 3


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    # These tests themselves run below make, whose flags are not meant for this one.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=REPOSITORY, env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_the_target_and_lists_it(target: str) -> None:
    plan = make("-n", target)
    assert plan.returncode == 0, plan.stderr
    assert re.search(rf"^  {target}\b", make().stdout, re.MULTILINE)
