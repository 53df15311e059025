"""The PostgreSQL half: bare loops, Rekindle at least once and exactly once, Spark's writer, each on a new table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.sinks import postgres_loops as loops
from benchmarks.sinks.workload import PASSWORD, Run, expected
from tools.servers.fetch import JarList, fetch_jars
from tools.servers.postgres import PostgresServer
from tools.servers.server_error import ServerError

DRIVER = JarList("PostgreSQL-driver", Path(__file__).with_name("postgres_driver") / "pom.xml", megabytes=1)
#: A server with room, as a real one has; what is committed is on disk (fsync is on).
SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "2GB", "checkpoint_timeout": "30min"}
LEAST = 0.7
BARE = ("psycopg, executemany", "psycopg, COPY and INSERT", "psycopg, COPY, INSERT per interval")
OWN = ("Rekindle, at-least-once", "Rekindle, exactly-once")


@dataclass
class PostgresSession:
    """Runs the contenders one after the other on one server."""

    server: PostgresServer
    records: int
    keys: int
    checkpoint_ms: int
    _tables: int = 0

    def runs(self, only: list[str]) -> Iterator[Run]:
        """Yield a run of each contender whose name has one of the words."""
        for name, run in self._contenders().items():
            if not only or any(word.lower() in name.lower() for word in only):
                self._tables += 1
                table = f"sink_{self._tables}"
                self._query(f"CREATE TABLE {table} ({loops.COLUMNS})")
                try:
                    yield run(name, table)
                except ServerError as error:
                    print(f"{name}: {error}", file=sys.stderr)
                self._query(f"DROP TABLE {table}")

    def _contenders(self) -> dict[str, Callable[[str, str], Run]]:
        return {
            BARE[0]: lambda name, table: self._bare(name, loops.executemany, table),
            OWN[0]: lambda name, table: self._rekindle("at-least-once", table),
            BARE[1]: lambda name, table: self._bare(name, loops.copy_and_insert, table),
            BARE[2]: lambda name, table: self._bare(name, loops.copy_and_insert_rarely, table),
            OWN[1]: lambda name, table: self._rekindle("exactly-once", table),
            "Spark's JDBC writer (appends)": lambda name, table: self._spark(table),
        }

    def _bare(self, name: str, form: Callable[..., object], table: str) -> Run:
        run = loops.run(name, form, self.server.conninfo, table, self.records, self.keys)
        return self._checked(run, table, self.keys)

    def _rekindle(self, guarantee: str, table: str) -> Run:
        sizes = ["--keys", str(self.keys), "--checkpoint-ms", str(self.checkpoint_ms), "--guarantee", guarantee]
        return self._checked(self._process("benchmarks.sinks.rekindle_job", table, *sizes), table, self.keys)

    def _spark(self, table: str) -> Run:
        jar = next(fetch_jars(DRIVER).glob("postgresql-*.jar"))
        return self._checked(
            self._process("benchmarks.sinks.spark_writer", table, "--jar", str(jar)), table, self.records
        )

    def _process(self, module: str, table: str, *arguments: str) -> Run:
        server = self.server
        login = ["--url", server.jdbc_url, "--user", server.user]
        command = [sys.executable, "-m", module, *login, "--table", table, "--records", str(self.records), *arguments]
        # Not on the command line, which everybody can read.
        environment = {**os.environ, PASSWORD: server.password}
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if answer.returncode != 0:
            raise ServerError(f"{module} failed: {answer.stderr[-2000:]}")
        return Run(**json.loads(answer.stdout.splitlines()[-1]))

    def _checked(self, run: Run, table: str, keys: int) -> Run:
        """A run counts only if every row is there, as it was last written."""
        found = self._query(f"SELECT count(*), sum(updated)::bigint FROM {table}")
        assert found == [expected(self.records, keys)], f"{run.contender} wrote {found}"
        return run

    def _query(self, sql: str) -> list[tuple[int, int]]:
        with psycopg.connect(self.server.conninfo) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


def ratios(runs: list[Run]) -> list[str]:
    """One line per form of Rekindle and bare loop, from the best run of each."""
    best = {run.contender: run for run in sorted(runs, key=lambda run: run.records_per_second)}
    lines = []
    for own in OWN:
        for bare in BARE if own == OWN[1] else BARE[:2]:
            if own in best and bare in best:
                ratio = best[own].records_per_second / best[bare].records_per_second
                reached = "reached" if ratio >= LEAST else "missed"
                lines.append(f"{own} is {ratio:.0%} of {bare} (target ≥ {LEAST:.0%}: {reached})")
    return lines
