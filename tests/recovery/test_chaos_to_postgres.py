"""Kafka → keyed state → PostgreSQL, exactly once, while slots, driver, broker and database are killed."""

from __future__ import annotations

import pytest

from benchmarks.connector_chaos.kill_plan import Victim
from tests.recovery.chaos_command import run_short_form


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_in_postgres_while_processes_are_killed() -> None:
    run_short_form("postgres", [Victim.POSTGRES], "20000 entries under 1000 keys")
