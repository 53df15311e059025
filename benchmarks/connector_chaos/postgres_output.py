"""PostgreSQL as the job's output: a table without a unique key of the records, so that a row written twice shows."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.connector_chaos.blows import Server
from benchmarks.connector_chaos.kill_plan import Victim
from benchmarks.connector_chaos.outputs import Written
from tools.servers.postgres import PostgresServer

#: The variable of the job's environment with the database's password.
PASSWORD = "REKINDLE_CHAOS_PASSWORD"
_MORE_S = 2.0


class PostgresOutput:
    """Tables of a server of the run's own."""

    commits = True

    def __init__(self) -> None:
        self._server = PostgresServer()
        os.environ[PASSWORD] = self._server.password

    def __enter__(self) -> PostgresOutput:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.close()

    @property
    def servers(self) -> Mapping[Victim, Server]:
        """The database."""
        return {Victim.POSTGRES: self._server}

    def create(self, name: str) -> None:
        """Make the table."""
        with self._connect() as connection:
            connection.execute(
                f'CREATE TABLE "{name}" (place bigserial PRIMARY KEY, key bigint, number bigint, total bigint)'
            )

    def arguments(self, name: str) -> dict[str, Any]:
        """The database, its user and the table."""
        server = self._server
        return {"kind": "postgres", "url": server.jdbc_url, "user": server.user, "table": name}

    def read(self, name: str, records: int, deadline_s: float) -> Written:
        """Read the table in the order in which its rows were written."""
        until = time.monotonic() + deadline_s
        while self._count(name) < records and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(_MORE_S)
        steps: Written = {}
        with self._connect() as connection:
            for key, number, total in connection.execute(f'SELECT key, number, total FROM "{name}" ORDER BY place'):
                steps.setdefault(key, []).append((number, total))
        return steps

    def _count(self, name: str) -> int:
        with self._connect() as connection:
            (count,) = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()
        return int(count)

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self._server.conninfo)
