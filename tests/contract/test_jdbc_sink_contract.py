"""The contract of exactly-once sinks, for the JDBC sink on SQLite and on real servers of PostgreSQL and MariaDB.

The tables have no keys, and the statement is a plain INSERT: a row that is written twice shows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.testing.sink_contract import SinkContract, SinkUnderTest
from tests.integration.jdbc.jdbc_jobs import PAIRS, MariaDbTable, PostgresTable, RowByRowTable, SqliteTable
from tools.servers.mariadb import MariaDbServer
from tools.servers.postgres import PostgresServer


class TestOnSqlite(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        table = SqliteTable(tmp_path / "pairs.db").create()
        return SinkUnderTest(table.exactly_once, table.rows, PAIRS)


class TestOnPostgres(SinkContract):
    @pytest.fixture(params=[PostgresTable, RowByRowTable])
    def sink(self, request: pytest.FixtureRequest, postgres: PostgresServer) -> SinkUnderTest:
        table = request.param(postgres).create()
        return SinkUnderTest(table.exactly_once, table.rows, PAIRS)


class TestOnMariaDb(SinkContract):
    @pytest.fixture
    def sink(self, mariadb: MariaDbServer) -> SinkUnderTest:
        table = MariaDbTable(mariadb).create()
        return SinkUnderTest(table.exactly_once, table.rows, PAIRS)
