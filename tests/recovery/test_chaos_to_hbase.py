"""Kafka → keyed state → HBase while slots, driver, broker, HBase and its Thrift server are killed."""

from __future__ import annotations

import pytest

from benchmarks.connector_chaos.kill_plan import Victim
from tests.recovery.chaos_command import run_short_form


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_every_cell_of_hbase_is_right_while_processes_are_killed() -> None:
    # 20 records per key: 20 rows of their own, 6 of them deleted again, and one that is overwritten; two cells each.
    run_short_form("hbase", [Victim.HBASE, Victim.THRIFT], "30000 entries under 15000 keys")
