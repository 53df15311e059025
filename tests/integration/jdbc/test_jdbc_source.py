"""The JDBC source on PostgreSQL and SQLite: every row once, whatever is killed, at any parallelism."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Row, Types, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.base import SourceReaderContext
from rekindle.datastream.connectors.jdbc import JdbcSource, JdbcSourceBuilder
from rekindle.errors import ConnectorError, GraphError
from rekindle.testing.survival import assert_survives
from tests.integration.jdbc.jdbc_jobs import PAIR, PAIRS, PostgresTable, Table, table_on
from tests.support.environments import environment
from tests.support.polled import polled_list
from tools.servers.postgres import PostgresServer


@pytest.fixture(params=["postgres", "sqlite", "mariadb"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return table_on(request.param, request, tmp_path).create()


def builder(table: Table, sql: str | None = None) -> JdbcSourceBuilder:
    made = JdbcSource.builder().set_db_url(table._url).set_sql(sql or f"SELECT n, text FROM {table.name};")
    if table._user is not None:
        assert table._password is not None
        made.set_username(table._user).set_password(table._password)
    return made.set_type_information(PAIR).set_result_set_fetch_size(2)


def fill(table: Table, rows: list[tuple[Any, ...]]) -> None:
    shown = ", ".join(f"({'NULL' if n is None else n}, '{text}')" for n, text in rows)
    table.query(f"INSERT INTO {table.name} VALUES {shown}")


def read_all(source: JdbcSource, parallelism: int = 2) -> list[Any]:
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(parallelism))
    rows: list[Any] = []
    while piece := polled_list(reader, 3):
        rows += piece
    reader.close()
    return rows


TIES = [(None, "x"), (None, "y"), *((n // 5, f"v{n}") for n in range(20)), (1, "v5"), (100, "far")]


@pytest.mark.parametrize("column", ["n", None])
def test_rows_come_once_whatever_is_killed(table: Table, column: str | None) -> None:
    """Rows with equal values and rows without one are read once, too, although polls end between them."""
    fill(table, TIES)

    def build(env: StreamExecutionEnvironment) -> Any:
        made = builder(table)
        if column is not None:
            made.set_partition_column(column).set_num_partitions(3)
        return env.from_source(made.build(), WatermarkStrategy.no_watermarks(), "rows")

    assert sorted(map(repr, assert_survives(build))) == sorted(map(repr, TIES))


def test_rows_that_come_and_go_before_the_position_do_no_harm(table: Table) -> None:
    fill(table, PAIRS)
    source = builder(table).set_partition_column("n").set_num_partitions(1).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    first = [*polled_list(reader, 10), *polled_list(reader, 10)]
    splits = reader.snapshot_state(1)
    reader.close()
    table.query(f"DELETE FROM {table.name} WHERE n = 0")
    fill(table, [(-1, "new"), (-2, "new"), (-3, "new")])
    restored = source.create_reader(SourceReaderContext(0, 1), splits)
    rest: list[Any] = []
    while piece := polled_list(restored, 10):
        rest += piece
    restored.close()
    assert first + rest == PAIRS


@pytest.mark.parametrize("bounds", [None, (5, 10), (0, 1000)])
def test_bounds_share_and_leave_out_nothing(table: Table, bounds: tuple[int, int] | None) -> None:
    fill(table, PAIRS)
    made = builder(table).set_partition_column("n").set_num_partitions(4)
    if bounds is not None:
        made.set_lower_bound(bounds[0]).set_upper_bound(bounds[1])
    source = made.build()
    assert len(source.create_splits(2)) == 4
    assert sorted(read_all(source)) == PAIRS


def test_an_empty_table_has_no_rows(table: Table) -> None:
    assert read_all(builder(table).set_partition_column("n").build()) == []


def test_rows_have_names_and_an_extractor_makes_anything(table: Table) -> None:
    fill(table, PAIRS[:2])
    named = builder(table).set_type_information(Types.ROW_NAMED(["number", "word"], [Types.LONG(), Types.STRING()]))
    assert read_all(named.build())[1] == Row(number=1, word="v1")
    extracted = (
        builder(table).set_type_information(Types.STRING()).set_result_extractor(lambda row: f"{row[0]}={row[1]}")
    )
    assert read_all(extracted.build()) == ["0=v0", "1=v1"]


def test_dates_are_shared(postgres: PostgresServer) -> None:
    table = PostgresTable(postgres)
    table.create("day DATE, text VARCHAR(40)")
    table.query(f"INSERT INTO {table.name} SELECT DATE '2026-01-01' + n, 'v' || n FROM generate_series(0, 99) n")
    kind = Types.TUPLE([Types.SQL_DATE(), Types.STRING()])
    source = (
        builder(table, f"SELECT * FROM {table.name}").set_type_information(kind).set_partition_column("day").build()
    )
    assert len(source.create_splits(3)) == 3
    assert [day for day, _ in read_all(source, 3)] == [date(2026, 1, 1) + timedelta(n) for n in range(100)]


def test_a_server_that_is_killed_is_waited_for(own_postgres: PostgresServer) -> None:
    table = PostgresTable(own_postgres).create()
    fill(table, PAIRS)
    source = builder(table).set_partition_column("n").set_num_partitions(2).build()
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    rows = polled_list(reader, 5)
    own_postgres.kill()
    own_postgres.restart()
    while piece := polled_list(reader, 5):
        rows += piece
    reader.close()
    assert rows == PAIRS


@pytest.mark.parametrize(
    ("sql", "column", "words"),
    [
        ("SELECT a FROM no_such_table", None, "table 'no_such_table'"),
        ("SELECT n, text FROM {table}", "nowhere", "find the bounds of column 'nowhere'"),
        ("SELECT n, text FROM {table}", "text", "numbers, dates or timestamps"),
        ("SELECT n FROM {table}", "n", "returns 1 columns"),
    ],
)
def test_what_is_wrong_is_told(table: Table, sql: str, column: str | None, words: str) -> None:
    fill(table, PAIRS)
    made = builder(table, sql.format(table=table.name))
    if column is not None:
        made.set_partition_column(column)
    with pytest.raises(ConnectorError, match=words):
        read_all(made.build())


def test_a_builder_refuses_what_cannot_be() -> None:
    made = JdbcSource.builder().set_db_url("jdbc:sqlite:x.db")
    for call, words in [
        (lambda: made.set_sql("SELECT ?"), "without placeholders"),
        (lambda: made.set_partition_column("a; DROP TABLE b"), "name of a column"),
        (lambda: made.build(), "needs a query"),
        (lambda: made.set_sql("SELECT 1").build(), "needs a type"),
        (lambda: made.set_type_information(PAIR).set_num_partitions(2).build(), r"set_partition_column\(\)"),
    ]:
        with pytest.raises(GraphError, match=words):
            call()


def test_a_table_is_read_by_a_job_on_spark(spark: Any, postgres: PostgresServer) -> None:
    table = PostgresTable(postgres).create()
    fill(table, PAIRS)
    env = environment(2)
    source = builder(table).set_partition_column("n").build()
    with env.from_source(source, WatermarkStrategy.no_watermarks(), "table").execute_and_collect() as rows:
        assert sorted(rows) == PAIRS
