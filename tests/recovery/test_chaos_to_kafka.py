"""Kafka → keyed state → Kafka while slots, driver and broker are killed."""

from __future__ import annotations

import pytest

from benchmarks.connector_chaos.kill_plan import Phase, Victim, plan_kills
from tests.recovery.chaos_command import run_short_form


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_in_kafka_while_processes_are_killed() -> None:
    run_short_form("kafka", [], "20000 entries under 1000 keys")


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_process_is_killed_in_every_phase(seed: int, commits: bool) -> None:
    plan = plan_kills(seed, 10, list(Victim), commits=commits)
    assert {(kill.victim, kill.phase) for kill in plan} == {(victim, phase) for victim in Victim for phase in Phase}
    assert all(sum(kill.victim is victim for kill in plan) == 10 for victim in Victim)
