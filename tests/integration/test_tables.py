"""Tables on Spark: queries over streams, values, files and functions; the way from and to streams."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from rekindle.common import Configuration, Row, Types
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import GraphError
from rekindle.table import (
    DataTypes,
    EnvironmentSettings,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from rekindle.table.expressions import col, lit
from rekindle.table.udf import udf, udtf
from tests.support.environments import environment

# Spark's workers cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
WORDS = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.LONG()])


@pytest.fixture(scope="module")
def envs(spark: SparkSession) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    env = environment(1)
    return env, StreamTableEnvironment.create(env)


def rows(result: Any) -> list[tuple[Any, ...]]:
    with result.collect() as found:
        return sorted(map(tuple, found))


def test_sql_over_a_bounded_stream_and_back_to_a_stream(
    envs: tuple[StreamExecutionEnvironment, StreamTableEnvironment],
) -> None:
    env, t_env = envs
    words = env.from_collection([Row("to", 1), Row("be", 2), Row("to", 3)], WORDS)
    t_env.create_temporary_view("words", words.map(lambda row: Row(row.word.upper(), row.n), WORDS))
    t_env.execute_sql("CREATE VIEW large AS SELECT word, n FROM words WHERE n > 1")
    counted = t_env.sql_query("SELECT word, SUM(n) AS total FROM words GROUP BY word")
    assert str(counted.get_schema()) == "(\n  `word` STRING,\n  `total` BIGINT\n)"
    assert rows(counted.execute()) == [("BE", 2), ("TO", 4)]
    frame = t_env._engine().frame(counted._query)
    assert frame.sparkSession.conf.get("spark.sql.shuffle.partitions") == "2"  # the cores, not Spark's 200
    assert rows(t_env.execute_sql("SELECT * FROM large")) == [("BE", 2), ("TO", 3)]
    stream = t_env.to_data_stream(counted).map(lambda row: f"{row.word}={row.total}", Types.STRING())
    with stream.execute_and_collect() as texts:
        assert sorted(texts) == ["BE=2", "TO=4"]
    fields = t_env.to_append_stream(counted, Types.ROW([Types.STRING(), Types.LONG()]))
    with fields.map(lambda row: row[1], Types.LONG()).execute_and_collect() as totals:
        assert sorted(totals) == [2, 4]
    with pytest.raises(GraphError, match="The table has 2 columns, but the type has 1"):
        t_env.to_append_stream(counted, Types.ROW([Types.STRING()]))
    with pytest.raises(GraphError, match=r"Spark, which runs the queries of tables, refuses this one: .*nothing"):
        t_env.sql_query("SELECT nothing FROM words").execute()
    assert env._transformations == [] or all(each.kind.name != "COLLECT" for each in env._transformations)


def test_the_table_api_with_python_functions(envs: tuple[StreamExecutionEnvironment, StreamTableEnvironment]) -> None:
    _, t_env = envs
    lines = t_env.from_elements([("to be or",), ("to",)], DataTypes.ROW([DataTypes.FIELD("line", DataTypes.STRING())]))

    @udtf(result_types=[DataTypes.STRING()])
    def split(line: Row) -> Any:
        for word in line[0].split():
            yield Row(word)

    @udf(result_type=DataTypes.BIGINT())
    def length(text: str) -> int:
        return len(text)

    words = lines.flat_map(split).alias("word")
    counts = words.group_by(col("word")).select(col("word"), lit(1).count)
    assert counts.get_schema().get_column_names() == ["word", "EXPR$0"]
    assert rows(counts.execute()) == [("be", 1), ("or", 1), ("to", 2)]
    lengths = words.select(col("word"), length(col("word"))).distinct().filter(col("_c1") == 2)
    assert rows(lengths.order_by(col("word").desc).limit(2).execute()) == [("or", 2), ("to", 2)]
    t_env.create_temporary_function("len_of", length)
    assert rows(t_env.sql_query(f"SELECT len_of(line) FROM {lines}").execute()) == [(2,), (8,)]
    renamed = words.rename_columns(col("word").alias("w")).add_or_replace_columns(length(col("w")).alias("w"))
    assert rows(renamed.distinct().execute()) == [(2,)]
    other = t_env.from_elements([("to", 7)], ["w", "n"])
    assert rows(words.distinct().join(other, col("word") == col("w")).select(col("n")).execute()) == [(7,)]


def test_tables_of_datagen_print_and_files(
    envs: tuple[StreamExecutionEnvironment, StreamTableEnvironment], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env, t_env = envs
    source = Schema.new_builder().column("id", DataTypes.BIGINT()).column("data", DataTypes.STRING()).build()
    sink = Schema.new_builder().column("a", DataTypes.BIGINT()).build()
    generated = TableDescriptor.for_connector("datagen").schema(source).option("number-of-rows", "10").build()
    t_env.create_temporary_table("source", generated)
    t_env.create_temporary_table("sink", TableDescriptor.for_connector("print").schema(sink).build())
    found = rows(t_env.from_path("source").execute())
    assert len(found) == 10
    assert {(type(number), len(text)) for number, text in found} == {(int, 100)}
    t_env.from_elements([(1,), (2,)], ["x"]).execute_insert("sink").wait()
    assert capsys.readouterr().out.splitlines() == ["+I[1]", "+I[2]"]
    files = {"connector": "filesystem", "path": str(tmp_path / "out"), "format": "csv"}
    options = ", ".join(f"'{key}' = '{value}'" for key, value in files.items())
    t_env.execute_sql(f"CREATE TABLE files (word STRING, n INT) WITH ({options})")
    t_env.execute_sql("INSERT INTO files VALUES ('to, be', 1), ('or', 2)").wait()
    assert rows(t_env.execute_sql("SELECT * FROM files")) == [("or", 2), ("to, be", 1)]
    # A table that is a stream goes on as a stream: from_data_stream, then print, without Spark's SQL between them.
    numbers = env.from_collection([3, 4], Types.LONG())
    t_env.from_data_stream(numbers, sink).execute_insert("sink").wait()
    assert sorted(capsys.readouterr().out.splitlines()) == ["+I[3]", "+I[4]"]


def test_a_function_finds_added_files_and_groups_print_their_changes(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "added_shout.py").write_text("def shout(word):\n    return word.upper()\n")
    settings = Configuration.from_dict({"rekindle.progress": "off"})

    @udf(result_type=DataTypes.STRING())
    def loud(word: str) -> str:
        from added_shout import shout  # type: ignore[import-not-found]

        return str(shout(word))

    printed = {}
    for name, mode in (("streaming", EnvironmentSettings.in_streaming_mode()), ("batch", EnvironmentSettings(False))):
        mode.get_configuration().add_all(settings)
        t_env = TableEnvironment.create(mode)
        t_env.get_config().set("python.files", str(tmp_path / "added_shout.py"))
        schema = Schema.new_builder().column("word", DataTypes.STRING()).column("n", DataTypes.BIGINT()).build()
        t_env.create_temporary_table("sink", TableDescriptor.for_connector("print").schema(schema).build())
        words = t_env.from_elements([("to",), ("be",), ("to",)], ["word"]).select(loud(col("word"))).alias("word")
        result = words.group_by(col("word")).select(col("word"), lit(1).count).execute_insert("sink")
        client = result.get_job_client()
        assert client is not None
        assert client.get_job_execution_result().result().get_all_accumulator_results() == {}
        printed[name] = capsys.readouterr().out.splitlines()
    assert printed["streaming"] == ["+I[TO, 1]", "+I[BE, 1]", "-U[TO, 1]", "+U[TO, 2]"]
    assert sorted(printed["batch"]) == ["+I[BE, 1]", "+I[TO, 2]"]


def test_what_an_endless_table_cannot_is_refused_with_the_name_of_its_stream(spark: SparkSession) -> None:
    t_env = StreamTableEnvironment.create(environment(1))
    schema = Schema.new_builder().column("n", DataTypes.INT()).build()
    t_env.create_temporary_table("endless", TableDescriptor.for_connector("datagen").schema(schema).build())
    t_env.create_temporary_table("numbers", TableDescriptor.for_connector("print").schema(schema).build())
    endless = t_env.from_path("endless")
    for step in (
        endless.filter(col("n") > 1),
        endless.group_by(col("n")).select(col("n").avg.cast(DataTypes.INT())),
        endless.select(col("n") + 1),
    ):
        with pytest.raises(GraphError, match="A query reads the stream of 'endless', which may never end"):
            step.execute_insert("numbers")
    with pytest.raises(GraphError, match="The query has ROW<`word` STRING>, but the table 'numbers' has ROW<`n` INT>"):
        endless.select(as_text(col("n")).alias("word")).execute_insert("numbers")
    stream = t_env.to_data_stream(endless.select(as_text(col("n")).alias("word")))
    assert stream.get_type() == Types.ROW_NAMED(["word"], [Types.STRING()])


@udf(result_type=DataTypes.STRING())
def as_text(number: int) -> str:
    return str(number)
