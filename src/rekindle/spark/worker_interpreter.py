"""Tries the interpreter that a borrowed session has for its Python workers, before a Spark task fails in it.

Spark would log each failed task with its Java stack, and a borrowed session's log is not ours to change.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from pyspark import SparkContext

from rekindle.errors import ClusterError
from rekindle.spark.shuffle import package_path
from rekindle.spark.slots import is_local_master, master_of

_DEADLINE_S = 60.0
#: The modules that a slot imports, from Spark's workers on.
_TRIAL = "import sys; print('%d.%d' % sys.version_info[:2], flush=True); import rekindle.runtime.slot"
#: The applications whose interpreter was tried.
_tried: set[str] = set()


def refuse_unusable_interpreter(sc: SparkContext) -> None:
    """ClusterError: the session's Python workers, if they run on this machine, cannot run Rekindle."""
    if sc.applicationId in _tried or not is_local_master(master_of(sc)):
        return
    if (why := complaint(sc.pythonExec)) is not None:
        raise ClusterError(
            f"The Python workers of the active Spark session run {why}: before the session is made, set PYSPARK_PYTHON "
            f"to this program's own interpreter, {sys.executable}."
        )
    _tried.add(sc.applicationId)


def complaint(python: str) -> str | None:
    """Why an interpreter cannot run Rekindle, for a sentence; None if it can.

    >>> complaint("no-such-python")
    "'no-such-python', which is not there"
    """
    path = shutil.which(python)
    if path is None:
        return f"'{python}', which is not there"
    if path == sys.executable:
        return None
    try:
        trial = subprocess.run(
            [path, "-c", _TRIAL], env=_environment(), capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"'{python}' ({path}), which does not start ({error})"
    version, own = trial.stdout.strip(), f"{sys.version_info[0]}.{sys.version_info[1]}"
    if version and version != own:
        return f"'{python}' ({path}), which is Python {version} where this program's is {own}"
    if trial.returncode != 0:
        said = trial.stderr.strip().splitlines() or [f"it exits with {trial.returncode}"]
        return f"'{python}' ({path}), which cannot import Rekindle ({said[-1]})"
    return None


def _environment() -> dict[str, str]:
    known = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in (package_path(), known) if path)}
