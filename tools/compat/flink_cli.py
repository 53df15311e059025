"""Flink's own `flink list`, `savepoint`, `stop` and `cancel`, against running jobs of ours."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rekindle.spark.java import ensure_java
from tools.compat.flink.flink_package import flink_home
from tools.compat.flink.running_job import RunningJob, Tally, running_job


def main(arguments: Sequence[str]) -> int:
    """Run every command once."""
    tally = Tally()
    with running_job() as job:
        listed = _flink(job, "list")
        tally.check("flink list", f"{job.id} : endless (RUNNING)" in listed, listed)
        told = _flink(job, "savepoint", job.id, f"{job.directory}/savepoints")
        tally.check("flink savepoint", _is_savepoint(told), told)
        told = _flink(job, "stop", "--savepointPath", f"{job.directory}/savepoints", job.id)
        tally.check("flink stop", _is_savepoint(told) and job.ends(), told)
    with running_job() as job:
        told = _flink(job, "cancel", job.id)
        tally.check("flink cancel", "Cancelled job" in told and job.ends(), told)
    return tally.result()


def _flink(job: RunningJob, command: str, *words: str) -> str:
    """What Flink's command prints."""
    home = flink_home()
    line = ["bash", str(home / "bin" / "flink"), command, "-m", f"127.0.0.1:{job.port}", *words]
    java = ensure_java()
    place = {"FLINK_HOME": str(home), "JAVA_HOME": str(java.path), "FLINK_CONF_DIR": str(home / "conf")}
    done = subprocess.run(line, env=os.environ | place, capture_output=True, text=True, timeout=600, check=False)
    return done.stdout + done.stderr


def _is_savepoint(told: str) -> bool:
    found = re.search(r"Path: (\S+)", told)
    return found is not None and (Path(found[1].removeprefix("file:")) / "_metadata").exists()
