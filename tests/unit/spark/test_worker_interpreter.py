"""An interpreter that cannot run Rekindle is found before Spark starts a task in it."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from rekindle.spark.worker_interpreter import complaint


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return os.fspath(path)


def test_this_programs_own_interpreter_is_fine() -> None:
    assert complaint(sys.executable) is None


def test_another_one_with_the_same_packages_is_fine(tmp_path: Path) -> None:
    assert complaint(script(tmp_path / "python", f'exec {sys.executable} "$@"')) is None


def test_one_without_rekindles_packages_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path, with_pip=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    said = complaint("python3")
    assert said is not None
    assert said.startswith(f"'python3' ({tmp_path}/bin/python3), which cannot import Rekindle (ModuleNotFoundError: ")


def test_one_of_another_version_is_named(tmp_path: Path) -> None:
    python = script(tmp_path / "python", "echo 3.1; exit 1")
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert complaint(python) == f"'{python}' ({python}), which is Python 3.1 where this program's is {own}"


def test_one_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("no program")
    python.chmod(0o700)
    said = complaint(os.fspath(python))
    assert said is not None
    assert "which does not start (" in said
