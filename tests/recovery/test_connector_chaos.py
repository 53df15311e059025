"""Kafka → keyed state → Kafka while slots, driver and broker are killed: the short form of `make chaos`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.connector_chaos.kill_plan import Phase, Victim, plan_kills
from tests.running_program import REPOSITORY

KILLS = 2


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_a_job_from_kafka_to_kafka_loses_and_doubles_nothing_while_its_processes_are_killed():
    command = [sys.executable, "-m", "benchmarks.connector_chaos", "--seed", "5", "--records", "20000"]
    done = subprocess.run(
        [*command, "--kills", str(KILLS)], cwd=REPOSITORY, capture_output=True, text=True, timeout=850, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Equal: 20000 records of 1000 keys, each once and in order." in done.stdout
    kills = [line for line in done.stdout.splitlines() if "records sent" in line and " triggered; " in line]
    assert len(kills) == KILLS * len(Victim), done.stdout


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_process_is_killed_in_every_phase(seed: int):
    plan = plan_kills(seed, kills_each=10)
    assert {(kill.victim, kill.phase) for kill in plan} == {(victim, phase) for victim in Victim for phase in Phase}
    assert all(sum(kill.victim is victim for kill in plan) == 10 for victim in Victim)
