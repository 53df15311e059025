"""Runs one script in its environment and reads the JSON lines it prints."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.keyed_count.contenders import Contender, Failure, Run
from benchmarks.keyed_count.environments import CLONE, NotAvailable, python_of

TIME_LIMIT_SECONDS = 1200
LATENCY_MODULE = "benchmarks.keyed_count.epoch_latency"


def run_contender(contender: Contender, keys: int, scale: float) -> Run | Failure:
    """Run ``contender`` once; an error is a result too."""
    try:
        interpreter = interpreter_for(contender)
        records = contender.records(keys, scale)
        arguments = ["--keys", str(keys), "--records", str(records), *contender.arguments]
        line = json_lines(interpreter, contender.module, arguments)[-1]
    except NotAvailable as error:
        return Failure(contender, keys, str(error))
    return Run(contender, keys, line["records"], line["seconds"], line["records_per_second"], line.get("settings", {}))


def measure_epoch_latency() -> list[dict[str, Any]] | str:
    """Return the lines about empty epochs, or the reason why there are none."""
    try:
        require_module(LATENCY_MODULE)
        return json_lines(Path(sys.executable), LATENCY_MODULE, [])
    except NotAvailable as error:
        return str(error)


def interpreter_for(contender: Contender) -> Path:
    if contender.java and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise NotAvailable("it needs Java 17 or newer: install one, or set JAVA_HOME")
    if contender.family == "rekindle":
        require_module(contender.module)
        return Path(sys.executable)
    return python_of(contender.family)


def require_module(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        raise NotAvailable(f"not available: there is no {name.replace('.', '/')}.py")


def json_lines(
    interpreter: Path,
    module: str,
    arguments: list[str],
    limit_seconds: float = TIME_LIMIT_SECONDS,
    variables: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run ``python -m module`` from the clone's root and return the JSON objects it printed, one per line.

    ``variables`` are added to its environment.
    """
    process = subprocess.Popen(
        [str(interpreter), "-m", module, *arguments],
        cwd=CLONE,
        env={**environment(interpreter), **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=limit_seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise NotAvailable(f"gave up after {limit_seconds:g} s") from None
        raise
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        raise NotAvailable(f"it failed: {last_line(errors) or last_line(output) or 'without a message'}")
    return lines


def environment(interpreter: Path) -> dict[str, str]:
    """Return the variables of a run: its interpreter first on the PATH, the clone importable, none of other engines."""
    foreign = ("PYSPARK_", "SPARK_", "FLINK_", "PYTHON", "PATHWAY_", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    variables["PATH"] = f"{interpreter.parent}{os.pathsep}{variables.get('PATH', os.defpath)}"
    variables["PYTHONPATH"] = f"{CLONE}{os.pathsep}{CLONE / 'src'}"
    return variables


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
