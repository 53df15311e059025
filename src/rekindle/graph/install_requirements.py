"""Installs the packages that a job needs, on the driver, before the job starts. The slots get them with the job.

So a package that cannot be had is one sentence before anything runs, and hosts without an index have the packages too.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import zipfile

from rekindle.datastream.python_dependencies import PythonRequirements
from rekindle.errors import ConfigurationError

#: The limit for the packages of a job, which travel to each slot with it.
LARGEST_BYTES = 1 << 30
_DEADLINE_S = 900.0


def installed_packages(requirements: PythonRequirements, python: str | None = None) -> bytes:
    """Install the requirements with pip into a directory of their own; return it as a zip archive."""
    interpreter = python if python is not None and os.access(python, os.X_OK) else sys.executable
    with tempfile.TemporaryDirectory(prefix="rekindle-requirements-") as directory:
        _install(requirements, interpreter, os.path.join(directory, "packages"))
        return _zipped(requirements, os.path.join(directory, "packages"))


def _install(requirements: PythonRequirements, python: str, target: str) -> None:
    source = ["--no-index", "--find-links", requirements.cache] if requirements.cache is not None else []
    command = [python, "-m", "pip", "install", "--target", target, "--no-input", "--disable-pip-version-check"]
    command += ["--no-warn-script-location", "--no-warn-conflicts", "--no-compile", *source, "-r", requirements.file]
    os.makedirs(target)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_S,
            check=False,
            cwd=os.path.dirname(requirements.file),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise _unavailable(requirements, f"pip has not ended after {_DEADLINE_S:.0f} s") from None
    except OSError as error:
        raise _unavailable(requirements, f"{python} cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        raise _unavailable(requirements, _reason(done.stderr or done.stdout))


def _reason(output: str) -> str:
    """Return pip's own sentence, which says most."""
    errors = [line.removeprefix("ERROR:").strip() for line in output.splitlines() if line.startswith("ERROR:")]
    if "No module named pip" in output:
        return "the interpreter has no pip: install it with `python -m ensurepip`"
    last = [line for line in output.splitlines() if line.strip()][-1:]
    return (errors[-1:] or last or ["pip gave no reason"])[0].rstrip(".")


def _unavailable(requirements: PythonRequirements, reason: str) -> ConfigurationError:
    where = "the index" if requirements.cache is None else requirements.cache
    return ConfigurationError(
        f"The packages of {requirements.file} could not be installed from {where}: {reason}. Correct the file, or give "
        "a directory that has the packages with set_python_requirements(file, directory)."
    )


def _zipped(requirements: PythonRequirements, directory: str) -> bytes:
    packed = io.BytesIO()
    total = 0
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for folder, folders, names in os.walk(directory):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                path = os.path.join(folder, name)
                total += os.path.getsize(path)
                if total > LARGEST_BYTES:
                    raise ConfigurationError(
                        f"The packages of {requirements.file} have more than {LARGEST_BYTES >> 20} MiB, too many to "
                        "ship with the job: install them where the executors run."
                    )
                archive.write(path, os.path.relpath(path, directory))
    return packed.getvalue()
