"""Random histories of the fenced HBase sink on a real HBase: replays, late and doubled calls change nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from rekindle.clock import SystemClock
from tests.support import hbase_histories
from tests.support.hbase_histories import HBaseModel, expected_rows, play, random_mutations
from tools.servers.hbase_access import HBaseAccess

HISTORIES = 40


def test_readers_see_what_an_undisturbed_run_writes(hbase: HBaseAccess, table: Callable[..., str]) -> None:
    """The model of the unit tests agrees with the server."""
    connection, name = hbase.connection(), table("f", "g")
    expected: dict[bytes, Any] = {}
    modelled: dict[bytes, Any] = {}

    class Renamed:
        """The real connection, with the test's table in the place of the histories' own."""

        def table(self, _: str) -> object:
            return connection.table(name)

    for seed in range(HISTORIES):
        mutations = random_mutations(random.Random(seed), b"%03d-" % seed)
        now_ms, model = SystemClock().wall_ms(), HBaseModel()
        play(mutations, Renamed(), random.Random(-seed), now_ms)
        play(mutations, model, random.Random(-seed), now_ms)
        expected |= expected_rows(mutations)
        modelled |= model.rows()
    assert name != hbase_histories.TABLE
    assert hbase.rows(name) == expected == modelled
