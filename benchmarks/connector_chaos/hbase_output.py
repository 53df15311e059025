"""HBase as the job's output: rows that are put once, rows that are overwritten, and rows that are deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.connector_chaos.blows import Server
from benchmarks.connector_chaos.kill_plan import Victim
from benchmarks.connector_chaos.outputs import Written
from tools.servers.hbase import HBaseServer

_MORE_S = 2.0


@dataclass(frozen=True)
class _Process:
    """One of HBase's two processes."""

    pid_of: Callable[[], int]
    kill: Callable[[], None]
    restart: Callable[[], object]

    @property
    def pid(self) -> int:
        return self.pid_of()


class HBaseOutput:
    """Tables of a server of the run's own."""

    commits = False

    def __init__(self) -> None:
        self._server = HBaseServer()

    def __enter__(self) -> HBaseOutput:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.close()

    @property
    def servers(self) -> Mapping[Victim, Server]:
        """HBase itself, and its Thrift server."""
        server = self._server
        return {
            Victim.HBASE: _Process(lambda: server.pid, server.kill_hbase, server.restart_hbase),
            Victim.THRIFT: _Process(lambda: server.thrift_pid, server.kill_thrift, server.restart_thrift),
        }

    def create(self, name: str) -> None:
        """Make the table."""
        self._server.create_table(name, "f")

    def arguments(self, name: str) -> dict[str, Any]:
        """The Thrift server and the table."""
        return {"kind": "hbase", "thrift": self._server.address, "table": name}

    def read(self, name: str, records: int, deadline_s: float) -> Written:
        """Read all cells of the table, row by row."""
        until = time.monotonic() + deadline_s
        while self._count(name) < records and time.monotonic() < until:
            time.sleep(0.5)
        time.sleep(_MORE_S)
        return {row: sorted(cells.items()) for row, cells in self._server.rows(name).items()}

    def _count(self, name: str) -> int:
        """The sum of the latest counts of all keys: how many records the table holds the output of."""
        connection = self._server.connection()
        try:
            rows = connection.table(name).scan(row_prefix=b"latest-", columns=[b"f:number"])
            return sum(int(cells[b"f:number"]) for _, cells in rows)
        finally:
            connection.close()
