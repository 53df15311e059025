"""Tables that are streams: steps of Python without SQL, and groups whose changes are written as Flink writes them."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Row, Types
from rekindle.common.data_types import DataTypes, RowType
from rekindle.common.job_client import JobClient
from rekindle.common.job_status import JobStatus
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import CheckpointError
from rekindle.table import Schema, StreamTableEnvironment, TableDescriptor
from rekindle.table.expressions import col, lit
from rekindle.table.finished_job import FinishedJob
from rekindle.table.flow import Flow
from rekindle.table.grouping import GroupChanges, GroupLayout, KeyValues
from rekindle.table.table import Table
from rekindle.table.udf import udf, udtf
from rekindle.table.views import is_endless
from rekindle.testing import InProcessJob, assert_survives

WORDS = ["to be", "or not", "to be"]


@udf(result_type="string")
def louder(text: str, mark: str) -> str:
    return text.upper() + mark


@udtf(result_types=[DataTypes.STRING()])
def split(line: Row) -> Any:
    for word in line.line.split():
        yield Row(word)


def texts(*names: str) -> RowType:
    return DataTypes.ROW([DataTypes.FIELD(name, DataTypes.STRING()) for name in names])


def lines(given: StreamExecutionEnvironment | None = None) -> Table:
    env = given or StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    return StreamTableEnvironment.create(env).from_data_stream(
        env.from_collection(WORDS, Types.STRING()), Schema.new_builder().column("line", "STRING").build()
    )


def flow_of(table: Table) -> Flow:
    assert table._flow is not None
    return table._flow


def test_columns_literals_and_python_functions_need_no_sql() -> None:
    selected = lines().select(louder(col("line"), lit("!")).alias("loud"), col("line"), lit(1).alias("one"))
    flow = flow_of(selected.select(col("loud"), col("line")))
    assert flow.names == ("loud", "line")
    rows = InProcessJob.of(flow.rows(texts("loud", "line"))).run()
    assert rows[:2] == [Row(loud="TO BE!", line="to be"), Row(loud="OR NOT!", line="or not")]
    words = flow_of(lines().flat_map(split)).rows(texts("word"))
    assert [row.word for row in InProcessJob.of(words).run()] == ["to", "be", "or", "not", "to", "be"]


@pytest.mark.parametrize(
    "step",
    [
        lambda table: table.select(col("line").upper_case),
        lambda table: table.select(louder(col("line").trim, lit("!"))),
        lambda table: table.select(col("other")),
        lambda table: table.filter(col("line") == "to be"),
        lambda table: table.distinct(),
        lambda table: table.select(col("*")),
    ],
)
def test_what_sql_computes_is_no_stream(step: Any) -> None:
    assert step(lines())._flow is None


def test_a_group_is_inserted_then_replaced() -> None:
    layout = GroupLayout(1, ("count", "sum", "min", "max"), (4, 0, 1, 2, 3))
    rows = [("a", 1, 5, 5, 5), ("b", 1, None, None, None), ("a", 1, 2, 2, 2), ("a", None, None, 9, 3)]
    assert [f"{kind}{values}" for kind, values in layout.all_changes(rows)] == [
        "+I[5, 'a', 1, 5, 5]",
        "+I[None, 'b', 1, None, None]",
        "-U[5, 'a', 1, 5, 5]",
        "+U[5, 'a', 2, 7, 2]",
    ]


def counts(env: StreamExecutionEnvironment) -> Any:
    flow = flow_of(lines(env).flat_map(split).select(col("f0").alias("c0"), lit(1).alias("c1")))
    prepared = DataTypes.ROW([DataTypes.FIELD("c0", DataTypes.STRING()), DataTypes.FIELD("c1", DataTypes.INT())])
    keyed = flow.rows(prepared).key_by(KeyValues(1), Types.TUPLE([Types.STRING()]))
    changes = GroupChanges(GroupLayout(1, ("count",), (0, 1)), Types.ROW([Types.LONG()]))
    return keyed.process(changes, Types.STRING()).uid("changes")


def test_the_changes_of_a_stream_survive_a_crash() -> None:
    once = ["+I[be, 1]", "+I[not, 1]", "+I[or, 1]", "+I[to, 1]", "+U[be, 2]", "+U[to, 2]", "-U[be, 1]", "-U[to, 1]"]
    assert sorted(assert_survives(counts, records_per_epoch=1)) == once


def test_which_expressions_are_groups_of_a_stream() -> None:
    grouped = lines().group_by(col("line"))
    known = grouped.select(lit(1).count.alias("n"), col("line"), col("line").max)._grouping
    assert known is not None
    assert known.layout == GroupLayout(1, ("count", "max"), (1, 0, 2))
    assert flow_of(known.prepared).names == ("c0", "c1", "c2")
    for field in (col("line").avg, col("line").distinct.count, col("line").count + 1, lit("x")):
        assert grouped.select(col("line"), field)._grouping is None


def test_a_query_knows_whether_it_ends() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    t_env = StreamTableEnvironment.create(env)
    schema = Schema.new_builder().column("n", "INT").build()
    endless = t_env.from_descriptor(TableDescriptor.for_connector("datagen").schema(schema).build())
    t_env.create_temporary_view("numbers", endless)
    assert is_endless(endless._query)
    assert is_endless(t_env.sql_query("SELECT n FROM numbers")._query)
    assert not is_endless(lines().select(col("line"))._query)


def test_an_insertion_that_spark_has_run_is_a_finished_job() -> None:
    client = JobClient(FinishedJob(run_time_ms=7))
    assert client.get_job_status().result() is JobStatus.FINISHED
    result = client.get_job_execution_result().result()
    assert (result.get_job_id(), result.get_net_runtime()) == (client.get_job_id(), 7)
    assert client.cancel().result() is None
    assert client.get_checkpoint_statistics().history == ()
    with pytest.raises(CheckpointError, match="Spark has run this insertion, and it is over"):
        client.trigger_savepoint("/data").result()
