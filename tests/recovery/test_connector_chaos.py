"""Kafka → keyed state → Kafka, HBase and PostgreSQL while every process is killed: short forms of `make chaos`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.connector_chaos.kill_plan import Phase, Victim, plan_kills
from tests.support.running_program import REPOSITORY

# HBase has of 20 records per key 20 rows of their own, 6 of them deleted again, and one that is overwritten: two cells
# each.
CONTENTS = {
    "kafka": "20000 entries under 1000 keys",
    "postgres": "20000 entries under 1000 keys",
    "hbase": "30000 entries under 15000 keys",
}


@pytest.mark.integration
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [2, pytest.param(4, marks=pytest.mark.long)])
def test_nothing_is_lost_or_doubled_while_processes_are_killed(kills: int) -> None:
    command = [sys.executable, "-m", "benchmarks.connector_chaos", "--seed", "5", "--records", "20000"]
    command += ["--kills", str(kills), "--output", *CONTENTS]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=850, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for output, content in CONTENTS.items():
        assert f"Equal: {content} in {output}, each once and in order." in done.stdout
    reports = [line for line in done.stdout.splitlines() if "records sent" in line and " triggered; " in line]
    assert len(reports) == kills * len(Victim), done.stdout


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_process_is_killed_in_every_phase(seed: int, commits: bool) -> None:
    plan = plan_kills(seed, 10, list(Victim), commits=commits)
    assert {(kill.victim, kill.phase) for kill in plan} == {(victim, phase) for victim in Victim for phase in Phase}
    assert all(sum(kill.victim is victim for kill in plan) == 10 for victim in Victim)
