"""PyFlink for comparisons: its wheel, from which the example programs come, and an environment with all it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

#: The version with which Rekindle is compared; it stands here only.
PYFLINK_VERSION = "2.3.0"
#: The last release before 2.0, whose names programs still use.
PYFLINK_1_VERSION = "1.20.1"
_ROOT = Path(__file__).resolve().parents[3]
#: The wheel and the environment are kept here, so that they are fetched once.
CACHE = _ROOT / ".cache" / "pyflink" / PYFLINK_VERSION
_WHEEL_PLATFORM = ("--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--only-binary=:all:")


class PyFlinkMissingError(Exception):
    """PyFlink cannot be had; the sentence says why."""


def example_programs() -> Path:
    """The folder `pyflink/examples` of the wheel, which is fetched without its dependencies if it is not there."""
    examples = CACHE / "wheel" / "pyflink" / "examples"
    if not examples.is_dir():
        with zipfile.ZipFile(wheel_of(PYFLINK_VERSION)) as archive:
            archive.extractall(CACHE / "wheel", [name for name in archive.namelist() if "pyflink/examples/" in name])
    return examples


def pyflink_python() -> Path:
    """The interpreter of an environment with PyFlink and its libraries: `PYFLINK_PYTHON`, or one that is made here."""
    given = os.environ.get("PYFLINK_PYTHON")
    if given:
        return Path(given)
    python = CACHE / "env" / "bin" / "python"
    if not (CACHE / "env" / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(CACHE / "env")], check=True)
        _pip("--python", str(python), "install", f"apache-flink=={PYFLINK_VERSION}")
        (CACHE / "env" / "ready").touch()
    return python


def wheel_of(version: str) -> Path:
    """The wheel of a release, fetched without its dependencies if it is not there."""
    folder = CACHE.parent / version
    if not list(folder.glob("apache_flink-*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        _pip("download", "--no-deps", *_WHEEL_PLATFORM, f"apache-flink=={version}", "-d", str(folder))
    return next(folder.glob("apache_flink-*.whl"))


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PyFlinkMissingError(
            f"PyFlink {PYFLINK_VERSION} could not be fetched from the package index: {done.stderr.strip()[-300:]}"
        )
