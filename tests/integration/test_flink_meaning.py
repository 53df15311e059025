"""Queries of tables mean what they mean in Flink, or are refused: operators, functions, casts, and the Table API."""

from __future__ import annotations

import datetime as dt
import logging.handlers
import math
import queue
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from rekindle.errors import GraphError
from rekindle.spark.flink_meaning import SETTINGS
from rekindle.table import DataTypes, StreamTableEnvironment, Table
from rekindle.table.expressions import call_sql, col, lit
from rekindle.table.flink_by_name import BY_NAME
from rekindle.table.flink_functions import ABSENT, BY_TYPE_NAMES, REFUSED, SAME
from rekindle.table.udf import udf
from tests.integration.flink_results import AGGREGATES, EXPRESSIONS, FOUR_ROWS, ONE_ROW
from tests.support.environments import environment

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "sql.md"


@pytest.fixture(scope="module")
def t_env(spark: SparkSession) -> StreamTableEnvironment:
    made = StreamTableEnvironment.create(environment(1, **{"table.local-time-zone": "UTC"}))
    made.execute_sql(f"CREATE VIEW one AS {ONE_ROW}")
    made.execute_sql(f"CREATE VIEW four AS {FOUR_ROWS}")
    return made


def rows(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as found:
        return sorted(map(tuple, found), key=repr)


def test_the_groups_of_flinks_documented_example(t_env: StreamTableEnvironment) -> None:
    ids = t_env.from_elements([(number, f"{number}") for number in range(1, 6)], ["id", "data"])
    t_env.create_temporary_view("ids", ids)
    by_sql = t_env.sql_query("SELECT id / 2 AS half, COUNT(*) AS n FROM ids GROUP BY id / 2")
    by_api = ids.group_by(col("id") / 2).select((col("id") / 2).alias("half"), lit(1).count.alias("n"))
    assert rows(by_sql) == rows(by_api) == [(0, 1), (1, 2), (2, 2)]
    assert str(by_sql.get_schema()) == str(by_api.get_schema()) == "(\n  `half` BIGINT,\n  `n` BIGINT\n)"
    nested = "WITH h AS (SELECT id / 2 AS x FROM ids) SELECT MAX(x / 2) FROM h WHERE x IN (SELECT id / 3 FROM ids)"
    assert rows(t_env.sql_query(nested)) == [(0,)]


@pytest.mark.parametrize(("view", "expected"), [("one", EXPRESSIONS), ("four", AGGREGATES)])
def test_expressions_have_flinks_values_and_types(
    t_env: StreamTableEnvironment, view: str, expected: list[tuple[str, Any, str]]
) -> None:
    columns = ", ".join(f"{text} AS c{place}" for place, (text, _, _) in enumerate(expected))
    table = t_env.sql_query(f"SELECT {columns} FROM {view}")
    types = [field.data_type.sql().replace(", ", ",") for field in table._row_type()]
    (row,) = rows(table)
    found = [(text, _plain(value), kind) for (text, _, _), value, kind in zip(expected, row, types, strict=True)]
    assert found == [(text, _plain(value), kind) for text, value, kind in expected]


@pytest.mark.parametrize(
    "sql", ["SELECT nothing FROM one", "SELECT i / 0 FROM one", "SELECT CAST('x' AS INT) FROM one"]
)
def test_a_query_that_fails_is_one_sentence_without_frames_of_java(t_env: StreamTableEnvironment, sql: str) -> None:
    logger, lines = PySparkLogger.getLogger("SQLQueryContextLogger"), queue.SimpleQueue[Any]()
    told = logging.handlers.QueueHandler(lines)
    logger.addHandler(told)
    try:
        with pytest.raises(GraphError, match=r"^Spark, which runs the queries of tables,"):
            rows(t_env.sql_query(sql))
        assert lines.empty()
    finally:
        logger.removeHandler(told)


def test_a_query_of_the_program_itself_is_told_as_spark_tells_it(
    t_env: StreamTableEnvironment, spark: SparkSession
) -> None:
    logger, lines = PySparkLogger.getLogger("SQLQueryContextLogger"), queue.SimpleQueue[Any]()
    told = logging.handlers.QueueHandler(lines)
    with pytest.raises(GraphError):
        rows(t_env.sql_query("SELECT nothing FROM one"))
    logger.addHandler(told)
    try:
        with pytest.raises(AnalysisException):
            spark.sql("SELECT nothing")
        assert not lines.empty()
    finally:
        logger.removeHandler(told)


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def test_windows_count_as_in_flink(t_env: StreamTableEnvironment) -> None:
    over = "OVER (ORDER BY k)"
    sql = f"SELECT k, AVG(i) {over}, SUM(i) {over}, ROW_NUMBER() {over}, RANK() OVER (ORDER BY i) FROM four"
    table = t_env.sql_query(sql)
    assert rows(table) == [(1, 1, 1, 1, 2), (2, 1, 3, 2, 3), (3, 1, 3, 3, 1), (4, 1, 5, 4, 3)]
    assert [field.data_type.sql() for field in table._row_type()] == ["INT", "INT", "INT", "BIGINT", "BIGINT"]


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("OVERLAY('abc' PLACING 'x' FROM 2)", "OVERLAY is refused, because Spark, which runs .*: use SUBSTRING"),
        ("LAST_VALUE(i)", "LAST_VALUE is refused, .* counts nulls"),
        ("JSON_VALUE('{}', '$.a')", "JSON_VALUE of Flink's SQL is not here: write a Python function"),
        ("VAR_POP(i)", "VAR_POP of INT is refused, .* cast the values to DOUBLE"),
        ("CAST(arr AS STRING)", "A cast of ARRAY<INT> to STRING is refused"),
        ("CAST(ts AS VARCHAR(20))", "A cast of TIMESTAMP to STRING is refused, .* use DATE_FORMAT"),
        ("bo = 'true'", "Equality of BOOLEAN and STRING is refused"),
        ("f <> 0.1", r"Equality of FLOAT and DECIMAL\(1,1\) is refused"),
        ("TIMESTAMPDIFF(MONTH, da, da)", r"TIMESTAMPDIFF\(MONTH, ...\) is refused, .*: use DAY"),
        ("da + INTERVAL '1' HOUR", "DATE with an INTERVAL of hours or less is refused, .* cast the DATE"),
        ("SPLIT(s, ',', 2)", "SPLIT has not 3 arguments in Flink's SQL"),
        ("TO_DATE()", "TO_DATE has not 0 arguments in Flink's SQL|refuses this one"),
        ("SPLIT(s, n)", "SPLIT at what is no plain string is refused"),
        ("REGEXP_EXTRACT(s, '(z)|(H)', 1)", "REGEXP_EXTRACT of a group that may be missing in a match is refused"),
        ("imax + 1", "could not run this one: .*ARITHMETIC_OVERFLOW"),
        ("i / z", "could not run this one: .*DIVIDE_BY_ZERO"),
    ],
)
def test_what_would_mean_something_else_is_refused(t_env: StreamTableEnvironment, sql: str, sentence: str) -> None:
    with pytest.raises(GraphError, match=sentence):
        rows(t_env.sql_query(f"SELECT {sql} FROM (SELECT *, 2147483647 AS imax FROM one)"))


def test_the_table_api_means_the_same(t_env: StreamTableEnvironment) -> None:
    one = t_env.from_path("one")
    columns = [
        (col("i") / 2, 3),
        (col("d").floor, -3.0),
        (lit(8).log(2), 3.0),
        (col("bo").cast(DataTypes.STRING()), "TRUE"),
        (col("s").cast(DataTypes.VARCHAR(3)), "Hel"),
        (col("s").try_cast(DataTypes.INT()), None),
        (col("ts").cast(DataTypes.TIMESTAMP(0)), dt.datetime(2024, 2, 29, 13, 4, 5)),
        ((col("ni") > 1).is_true, False),
        (col("arr").at(9), None),
        (lit('{"a": {"b": 1}, "c": "{x"}').json_value("$.a"), None),
        (lit('{"a": {"b": 1}, "c": "{x"}').json_value("lax $.c"), "{x"),
        (lit(r"a\_b").like(r"a\_b"), True),
        (call_sql(r"CHAR_LENGTH('\n')"), 2),
        (col("s").split("o"), ["Hell", " W", "rld"]),
    ]
    named = [expression.alias(f"c{place}") for place, (expression, _) in enumerate(columns)]
    assert rows(one.select(*named)) == [tuple(value for _, value in columns)]
    with pytest.raises(GraphError, match="takes a path that begins with"):
        col("s").json_value("strict $.a")


def test_a_function_of_the_user_keeps_its_name(t_env: StreamTableEnvironment) -> None:
    t_env.create_temporary_function("json_value", udf(lambda text: text[:1], result_type=DataTypes.STRING()))
    assert rows(t_env.sql_query("SELECT json_value(s), i / 2 FROM one")) == [("H", 3)]
    t_env.drop_temporary_function("json_value")


def test_every_function_of_flink_has_one_place_and_the_guide_names_it(spark: SparkSession) -> None:
    translated = BY_NAME.keys() - REFUSED.keys() - ABSENT
    places = [SAME, BY_TYPE_NAMES, ABSENT, REFUSED.keys(), translated]
    assert sum(map(len, places)) == len(frozenset().union(*places))
    known = {function.name for function in spark.catalog.listFunctions()}
    assert SAME - known <= {"position"}  # grammar of SQL
    written = GUIDE.read_text()
    for heading, names in [
        ("Same", SAME),
        ("Translated", translated | BY_TYPE_NAMES),
        ("Refused", REFUSED.keys()),
        ("Not here", ABSENT),
    ]:
        section = re.search(rf"## {heading}\n(.*?)(?=\n## |\Z)", written, re.DOTALL)
        assert section is not None, heading
        assert names - set(re.findall(r"[a-z0-9_]+", section[1].lower())) == set(), heading
    assert all(key in written for key in SETTINGS)
