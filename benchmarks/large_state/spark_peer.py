"""Runs the Spark peer in its own environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.keyed_count.environments import CLONE, NotAvailable


def run_spark(python: Path, keys: int, minutes: float) -> dict[str, float]:
    """How far Spark's state store gets."""
    command = [str(python), "-m", "benchmarks.large_state.spark_store", "--keys", str(keys), "--minutes", str(minutes)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CLONE, check=False)
    if done.returncode:
        raise NotAvailable((done.stderr.strip().splitlines() or ["no message"])[-1])
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
