"""Kafka → keyed state → Kafka, PostgreSQL or HBase while everything is killed: the short form of `make chaos`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.connector_chaos.kill_plan import Phase, Victim, plan_kills
from tests.running_program import REPOSITORY

KILLS = 2
OWN = [Victim.SLOT, Victim.DRIVER, Victim.BROKER]
#: What each output has: its servers that are killed, and what the command says about its content.
OUTPUTS = {
    "kafka": ([], "20000 entries under 1000 keys"),
    "postgres": ([Victim.POSTGRES], "20000 entries under 1000 keys"),
    "hbase": ([Victim.HBASE, Victim.THRIFT], "30000 entries under 15000 keys"),
}


@pytest.mark.integration
@pytest.mark.timeout(900)
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_job_loses_and_doubles_nothing_while_its_processes_and_servers_are_killed(output: str):
    servers, content = OUTPUTS[output]
    command = [sys.executable, "-m", "benchmarks.connector_chaos", "--seed", "5", "--records", "20000"]
    command += ["--kills", str(KILLS), "--output", output]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=850, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Equal: {content} in {output}, each once and in order." in done.stdout
    kills = [line for line in done.stdout.splitlines() if "records sent" in line and " triggered; " in line]
    assert len(kills) == KILLS * len(OWN + servers), done.stdout


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_process_is_killed_in_every_phase(seed: int, commits: bool):
    plan = plan_kills(seed, 10, list(Victim), commits=commits)
    assert {(kill.victim, kill.phase) for kill in plan} == {(victim, phase) for victim in Victim for phase in Phase}
    assert all(sum(kill.victim is victim for kill in plan) == 10 for victim in Victim)
