"""The short form of `make chaos`, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.connector_chaos.kill_plan import Victim
from tests.running_program import REPOSITORY

KILLS = 2
OWN = [Victim.SLOT, Victim.DRIVER, Victim.BROKER]


def run_short_form(output: str, servers: list[Victim], content: str) -> None:
    """Kill every kind of process twice; assert that the output has this content, and that every kill happened."""
    command = [sys.executable, "-m", "benchmarks.connector_chaos", "--seed", "5", "--records", "20000"]
    command += ["--kills", str(KILLS), "--output", output]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=850, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Equal: {content} in {output}, each once and in order." in done.stdout
    kills = [line for line in done.stdout.splitlines() if "records sent" in line and " triggered; " in line]
    assert len(kills) == KILLS * len(OWN + servers), done.stdout
