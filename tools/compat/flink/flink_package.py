"""Flink's own client and dashboard, from the package index, in an environment of its own below `.cache`."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

VERSION = "2.3.0"
_CACHE = Path(__file__).resolve().parents[3] / ".cache" / "compat" / f"flink-{VERSION}"


def flink_home() -> Path:
    """The folder of Flink's scripts and libraries; installs `apache-flink` and its libraries first if needed."""
    environment = _CACHE / "environment"
    stamp = _CACHE / "installed"
    if not stamp.exists():
        print(f"Installing apache-flink {VERSION} and its libraries (some 350 MB) into {environment}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "setuptools", "wheel"], check=True)
        # The client is Java: the packages that PyFlink needs beside it (Beam, pandas) are left out.
        wanted = [f"apache-flink-libraries=={VERSION}", f"apache-flink=={VERSION}"]
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", *wanted], check=True)
        stamp.touch()
    (home,) = environment.glob("lib/python*/site-packages/pyflink")
    return home


def dashboard() -> Path:
    """The folder with the files of Flink's dashboard, taken out of its libraries."""
    folder = _CACHE / "dashboard"
    if not (folder / "web" / "index.html").exists():
        jar = next(jar for jar in sorted((flink_home() / "lib").glob("flink-dist*.jar")) if _has_dashboard(jar))
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.startswith("web/")])
    return folder / "web"


def _has_dashboard(jar: Path) -> bool:
    with zipfile.ZipFile(jar) as archive:
        return "web/index.html" in archive.namelist()
