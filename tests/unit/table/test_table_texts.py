"""Tables without an engine: SQL of expressions, statements, types, descriptors, texts of rows, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rekindle.clock import SystemClock
from rekindle.common import Duration, Row, Types, WatermarkStrategy
from rekindle.common.data_types import data_type_of
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.file_system import FileSource, StreamFormat
from rekindle.errors import GraphError
from rekindle.table import (
    DataTypes,
    EnvironmentSettings,
    FormatDescriptor,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from rekindle.table.connectors import files_of
from rekindle.table.elements import rows_and_type
from rekindle.table.expressions import and_, col, concat, if_then_else, lit
from rekindle.table.row_text import row_text, table_text
from rekindle.table.rows_by_chance import RowsByChance
from rekindle.table.sql_types import parse_type
from rekindle.table.statements import CreateTable, CreateView, Drop, InsertInto, Select, parse_statement
from rekindle.table.udf import udaf, udf, udtf
from rekindle.table.views import StreamView, check_bounded
from rekindle.testing import InProcessJob


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (col("a") + 1, "(`a` + 1)"),
        (2 - col("a"), "(2 - `a`)"),
        ((col("a") == "it's") & ~(col("b") > 1.5), "((`a` = 'it\\'s') AND (NOT (`b` > 1.5D)))"),
        (and_(col("a").is_null, col("b").is_not_null, True), "(((`a` IS NULL) AND (`b` IS NOT NULL)) AND TRUE)"),
        (col("a").cast(DataTypes.BIGINT()).max, "max(CAST(`a` AS BIGINT))"),
        (lit(1).count, "count(1)"),
        (col("a").distinct.count, "count(DISTINCT `a`)"),
        (if_then_else(col("a") > 0, "x", "y"), "if((`a` > 0), 'x', 'y')"),
        (concat(col("a"), "_", col("b")), "concat(`a`, '_', `b`)"),
        (col("a").upper_case.substring(1, 2), "substring(upper(`a`), 1, 2)"),
        (col("a").try_cast(DataTypes.VARCHAR(3)), "TRY_CAST(`a` AS VARCHAR(3))"),
        (col("a").cast(DataTypes.TIMESTAMP(3)), "CAST(`a` AS TIMESTAMP_NTZ/*(3)*/)"),
        (col("a").is_true, "(`a` IS TRUE)"),
        (col("a").log(2), "log(2, `a`)"),
        (col("a").in_(1, 2), "(`a` IN (1, 2))"),
        (lit(Decimal("1.50")), "1.50BD"),
        (lit(dt.date(2024, 1, 2)), "DATE'2024-01-02'"),
        (lit("a\\b{}"), "'a\\\\b{}'"),
    ],
)
def test_expressions_are_sql(expression: Any, sql: str) -> None:
    assert expression.sql == sql


def test_expressions_say_what_they_cannot() -> None:
    with pytest.raises(ValueError, match="write & for and"):
        bool(col("a") == 1)
    with pytest.raises(GraphError, match="Expressions have no 'proctime' here"):
        _ = col("a").proctime
    with pytest.raises(GraphError, match="is no literal of SQL"):
        lit(object())


@pytest.mark.parametrize(
    "text",
    [
        "BIGINT",
        "DECIMAL(10, 2) NOT NULL",
        "ARRAY<ROW<`a` INT, `b c` STRING>>",
        "MAP<STRING, ARRAY<DOUBLE>>",
        "TIMESTAMP_LTZ(3)",
        "VARCHAR(10)",
        "MULTISET<INT>",
    ],
)
def test_types_are_read_as_they_are_written(text: str) -> None:
    assert parse_type(text.lower() if "`" not in text else text).sql() == text


def test_types_of_streams_are_types_of_columns() -> None:
    stream_type = Types.ROW_NAMED(
        ["a", "b", "c", "d"],
        [
            Types.INT(),
            Types.LIST(Types.SQL_DATE()),
            Types.MAP(Types.STRING(), Types.DOUBLE()),
            Types.TUPLE([Types.CHAR()]),
        ],
    )
    column = data_type_of(stream_type)
    assert column.sql() == "ROW<`a` INT, `b` ARRAY<DATE>, `c` MAP<STRING, DOUBLE>, `d` ROW<`f0` STRING>>"
    assert (
        column.spark_name() == "STRUCT<`a`: INT, `b`: ARRAY<DATE>, `c`: MAP<STRING, DOUBLE>, `d`: STRUCT<`f0`: STRING>>"
    )


def test_statements() -> None:
    created = parse_statement(
        """CREATE TABLE words ( -- a table
            `word` STRING COMMENT 'the word', amount DECIMAL(10, 2) NOT NULL
        ) WITH ('connector' = 'filesystem', 'path' = '/data/it''s', 'format' = 'csv');"""
    )
    assert isinstance(created, CreateTable)
    assert created.name == "words"
    assert created.descriptor.get_options() == {"connector": "filesystem", "path": "/data/it's", "format": "csv"}
    assert str(created.descriptor.get_schema()) == "(\n  `word` STRING,\n  `amount` DECIMAL(10, 2) NOT NULL\n)"
    assert parse_statement("create temporary view v (a, b) as select 1, 2") == CreateView(
        "v", "select 1, 2", ("a", "b")
    )
    assert parse_statement("INSERT INTO `s` SELECT * FROM t") == InsertInto("s", "SELECT * FROM t")
    assert parse_statement("DROP VIEW IF EXISTS v") == Drop("v", True)
    assert parse_statement(" with x as (select 1) select * from x ;") == Select("with x as (select 1) select * from x")
    for refused in ("SET 'a' = 'b'", "CREATE CATALOG c", "ALTER TABLE t RENAME TO u", "DELETE FROM t"):
        with pytest.raises(GraphError, match=f"The statement '{refused.split()[0]} "):
            parse_statement(refused)
    with pytest.raises(GraphError, match="'WATERMARK FOR ts AS ts' is not here"):
        parse_statement("CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')")


def test_rows_are_printed_as_flink_prints_them() -> None:
    values = ["to", 1, 2.0, None, True, [1, 2], {"a": None}, Row(x=1), dt.datetime(2024, 1, 2, 3, 4, 5), b"\x01\xff"]
    assert row_text(values) == "+I[to, 1, 2.0, null, true, [1, 2], {a=null}, +I[1], 2024-01-02T03:04:05, [1, -1]]"
    assert table_text(["a", "long"], [[None, "x" * 40], [12, "y"]]).splitlines()[3:5] == [
        "| +I | <NULL> | xxxxxxxxxxxxxxxxxxxxxxxxxxx... |",
        "| +I |     12 |                              y |",
    ]


def test_elements_have_the_types_of_their_values() -> None:
    rows, row_type = rows_and_type(((word, len(word), [1.5]) for word in ("to", "be")), ["word", "n", "x"])
    assert rows == [("to", 2, [1.5]), ("be", 2, [1.5])]
    assert row_type.sql() == "ROW<`word` STRING, `n` BIGINT, `x` ARRAY<DOUBLE>>"
    with pytest.raises(GraphError, match="the column 'a' has no value"):
        rows_and_type([(None,)], ["a"])


def test_datagen_makes_the_same_rows_again() -> None:
    types = ["BIGINT", "STRING", "DECIMAL(4, 2)", "DOUBLE", "BOOLEAN", "BYTES", "TIMESTAMP(3)", "VARCHAR(7)"]
    fields = [DataTypes.FIELD(f"c{place}", parse_type(text)) for place, text in enumerate(types)]
    options = {"fields.c0.min": "3", "fields.c0.max": "5", "fields.c3.null-rate": "0.5", "fields.c1.length": "9"}
    rows = RowsByChance("t", DataTypes.ROW(fields), options)
    made = [rows(number) for number in range(50)]
    assert [list(rows(number))[:3] for number in range(50)] == [list(row)[:3] for row in made]
    assert {row.c0 for row in made} == {3, 4, 5}
    assert {(len(row.c1), len(row.c5), len(row.c7)) for row in made} == {(9, 100, 7)}
    assert {row.c3 is None for row in made} == {True, False}
    assert all(0 <= row.c2 < 100 and row.c2.as_tuple().exponent == -2 for row in made)


def test_datagen_ends_when_its_options_say_so() -> None:
    schema = Schema.new_builder().column("id", "BIGINT").column("text", "STRING").build()
    endless = TableDescriptor.for_connector("datagen").schema(schema)
    env = StreamExecutionEnvironment.get_execution_environment()
    t_env = StreamTableEnvironment.create(env)
    never = t_env.from_descriptor(endless.build())
    (view,) = never._query.views.values()
    assert isinstance(view, StreamView)
    with pytest.raises(GraphError, match="which may never end"):
        check_bounded(view.program)
    endless.option("fields.id.kind", "sequence").option("fields.id.start", 3).option("fields.id.end", 7)
    stream = t_env.to_data_stream(t_env.from_descriptor(endless.option("rows-per-second", 1_000_000).build()))
    assert sorted(row.id for row in InProcessJob.of(stream, SystemClock()).run()) == [3, 4, 5, 6, 7]
    with pytest.raises(GraphError, match="needs the option 'start'"):
        t_env.from_descriptor(TableDescriptor({**endless.build().options, "fields.text.kind": "sequence"}, schema))


def test_what_is_beyond_is_refused_by_name() -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.new_instance().in_batch_mode().build())
    words = t_env.from_elements([("to", 1)], ["word", "n"])
    for name in ("window", "over_window", "aggregate", "flat_aggregate", "join_lateral"):
        with pytest.raises(GraphError, match=rf"Table\.{name}\(\) is not here"):
            getattr(words, name)
    with pytest.raises(GraphError, match=r"udaf\(\) is not here"):
        udaf(lambda: None)
    with pytest.raises(GraphError, match="only 'general' ones"):
        udf(lambda x: x, result_type=DataTypes.INT(), func_type="pandas")
    with pytest.raises(GraphError, match="is a table function"):
        udtf(lambda x: [x], result_types=[DataTypes.INT()])(col("a"))
    t_env.create_temporary_view("words", words)
    with pytest.raises(GraphError, match="There is no table 'nothing'; there are: words"):
        t_env.from_path("nothing")
    kafka = TableDescriptor.for_connector("kafka").schema(Schema.new_builder().column("a", "INT").build()).build()
    t_env.create_temporary_table("k", kafka)
    with pytest.raises(GraphError, match="the connector 'kafka', which reads nothing here"):
        t_env.from_path("k")
    with pytest.raises(GraphError, match="the connector 'kafka', which writes nothing here"):
        words.execute_insert("k")
    canal = TableDescriptor.for_connector("filesystem").schema(kafka.get_schema()).option("path", "/data")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="the format 'canal-json', which is not here"):
        words.execute_insert(canal.format(FormatDescriptor.for_format("canal-json").build()).build())
    with pytest.raises(GraphError, match=r"watermark\(\) of a schema is not here"):
        Schema.new_builder().watermark("ts", "ts")
    with pytest.raises(GraphError, match="use execute_sql"):
        t_env.sql_query("DROP TABLE words")


def test_a_stream_that_never_ends_is_refused_in_queries_only(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    watching = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    source = watching.monitor_continuously(Duration.of_seconds(1)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "endless")
    before = list(env._transformations)
    t_env = StreamTableEnvironment.create(env)
    endless = t_env.from_data_stream(stream)
    assert t_env.to_data_stream(endless).get_type() == Types.ROW_NAMED(["f0"], [Types.STRING()])
    assert env._transformations == before
    (view,) = endless._query.views.values()
    assert isinstance(view, StreamView)
    with pytest.raises(GraphError, match="reads the stream of 'endless', which may never end"):
        check_bounded(view.program)


@pytest.mark.parametrize("path", ["/data/x", "//data/x", "file:/data/x", "file:///data/x", "file:////data/x"])
def test_the_path_of_a_table_has_one_slash_however_many_were_written(path: str) -> None:
    """Spark's files take the first name after two slashes for a host."""
    descriptor = TableDescriptor.for_connector("filesystem").option("path", path).option("format", "csv").build()
    assert files_of("t", descriptor) == ("/data/x", "csv")
