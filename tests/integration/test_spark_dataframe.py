"""DataFrames enter by whole partitions, once persisted, and come out with the columns of their type."""

from __future__ import annotations

import datetime as dt
import enum
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from pyspark import cloudpickle
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as f
from pyspark.sql import types as st

from rekindle.common import Instant, Row, Types
from rekindle.errors import ClusterError, TypeMismatchError
from rekindle.protocol import TO_DRIVER, PumpHello
from rekindle.spark.epoch import EpochRunner
from rekindle.spark.from_dataframe import DataFrameInput, dataframe_type, rows_of
from rekindle.spark.internals import arrow_batches, collect_bytes
from rekindle.spark.to_dataframe import chunks_to_dataframe
from tests.integration.epoch_runs import SECRET, Chunks, epoch_run
from tests.support.fake_slot import fake_slots

# Spark's workers cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

EVERY_TYPE = st.StructType(
    [
        st.StructField("flag", st.BooleanType()),
        st.StructField("tiny", st.ByteType()),
        st.StructField("small", st.ShortType()),
        st.StructField("number", st.IntegerType()),
        st.StructField("large", st.LongType()),
        st.StructField("single", st.FloatType()),
        st.StructField("double", st.DoubleType()),
        st.StructField("text", st.StringType()),
        st.StructField("data", st.BinaryType()),
        st.StructField("price", st.DecimalType(10, 2)),
        st.StructField("day", st.DateType()),
        st.StructField("moment", st.TimestampType()),
        st.StructField("naive", st.TimestampNTZType()),
        st.StructField("list", st.ArrayType(st.TimestampType())),
        st.StructField("map", st.MapType(st.StringType(), st.ArrayType(st.LongType()))),
        st.StructField("inner", st.StructType().add("x", st.LongType()).add("y", st.DateType())),
    ]
)
NOON = dt.datetime(2024, 7, 1, 12, 30, 0, 123456)
DAY = dt.date(2024, 7, 1)
VALUES = (
    True, 1, 2, 3, 2**40, 0.5, 1.25, "ä", b"\x00\xff", Decimal("12.34"), DAY, NOON, NOON, [NOON, None],
    {"a": [1, None], "b": None}, SparkRow(x=7, y=DAY),
)  # fmt: skip


def read(df: Any) -> list[Row]:
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    return list(rows_of(collect_bytes(df.sparkSession.sparkContext, arrow_batches(df)), df.schema, zone))


def test_every_type_arrives_as_python_has_it(spark: Any) -> None:
    df = spark.createDataFrame([VALUES, (None,) * len(VALUES)], EVERY_TYPE).coalesce(1)
    full, empty = read(df)
    assert list(full) == [*VALUES[:-1], Row(x=7, y=DAY)]
    assert list(empty) == [None] * len(VALUES)
    assert full.price == Decimal("12.34")
    assert full.inner.y == DAY


def test_the_type_says_what_the_columns_are(spark: Any) -> None:
    names = EVERY_TYPE.names
    assert dataframe_type(spark.createDataFrame([], EVERY_TYPE)) == Types.ROW_NAMED(
        names,
        [
            Types.BOOLEAN(), Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(),
            Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.BIG_DEC(), Types.SQL_DATE(),
            Types.SQL_TIMESTAMP(), Types.SQL_TIMESTAMP(), Types.LIST(Types.SQL_TIMESTAMP()),
            Types.MAP(Types.STRING(), Types.LIST(Types.LONG())),
            Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.SQL_DATE()]),
        ],
    )  # fmt: skip


def test_times_of_day_arrive(spark: Any) -> None:
    df = spark.sql("SELECT TIME '12:30:00.5' AS t")
    assert dataframe_type(df) == Types.ROW_NAMED(["t"], [Types.SQL_TIME()])
    assert [row.t for row in read(df)] == [dt.time(12, 30, 0, 500000)]


def test_a_type_without_counterpart_is_refused_by_name(spark: Any) -> None:
    df = spark.sql("SELECT named_struct('since', INTERVAL '1' DAY) AS deep")
    with pytest.raises(TypeMismatchError, match=r"Column 'deep\.since' has Spark's type interval day"):
        dataframe_type(df)


def test_a_column_that_is_there_twice_is_refused(spark: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"Column 'id' is there more than once"):
        dataframe_type(spark.range(1).select("id", "id"))


def test_a_spark_stream_is_refused(spark: Any) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ClusterError, match="takes batch DataFrames"):
        DataFrameInput(stream)
    with pytest.raises(TypeMismatchError, match="not list"):
        DataFrameInput([1, 2])  # type: ignore[arg-type]


class OneChunkPerRow:
    """Sends each row to the slot that its value names."""

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def __call__(self, partition: int, rows: Iterator[Row]) -> Iterator[tuple[int, bytes]]:
        for row in rows:
            yield row["id"] % self.slots, b"%d from %d" % (row["id"], partition)


def test_chosen_partitions_are_tasks_of_the_first_stage(spark: Any) -> None:
    given: list[list[bytes]] = []

    def source(hello: PumpHello, chunks: list[bytes]) -> Chunks:
        given.append(chunks)
        return [(TO_DRIVER, chunk) for chunk in chunks] if hello.stage == 1 else [(1, b"from a slot")]

    frame = DataFrameInput(spark.range(8, numPartitions=4))
    assert frame.partitions == 4
    assert frame.type_info == Types.ROW_NAMED(["id"], [Types.LONG()])
    try:
        with fake_slots(SECRET, [source, source]) as slots:
            inputs = [frame.rows_for({1, 3}, OneChunkPerRow(2))]
            chunks = EpochRunner(spark.sparkContext).run(epoch_run(slots, 2), inputs)
    finally:
        frame.close()
    expected = [b"2 from 1", b"3 from 1", b"6 from 3", b"7 from 3", b"from a slot", b"from a slot"]
    assert sorted(chunks) == expected


def test_a_replay_sees_the_same_rows(spark: Any) -> None:
    random = spark.range(4, numPartitions=2).select(f.expr("cast(rand() * 1e9 AS long)").alias("id"))
    frame = DataFrameInput(random)
    runner = EpochRunner(spark.sparkContext)

    def hand_on(hello: PumpHello, chunks: list[bytes]) -> Chunks:
        return [(TO_DRIVER, chunk) for chunk in chunks]

    try:
        with fake_slots(SECRET, [hand_on]) as slots:
            first, second = (
                runner.run(epoch_run(slots, 2, epoch=epoch), [frame.rows_for({0, 1}, OneChunkPerRow(1))])
                for epoch in (1, 2)
            )
    finally:
        frame.close()
    assert len(first) == 4
    assert sorted(first) == sorted(second)


def test_what_was_persisted_before_stays_persisted(spark: Any) -> None:
    mine, theirs = spark.range(3), spark.range(4).persist()
    for df in (mine, theirs):
        DataFrameInput(df).close()
    assert not mine.storageLevel.useMemory
    assert theirs.storageLevel.useMemory
    theirs.unpersist()


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Order:
    id: int
    colour: Colour
    tags: list[str] | None


class Point(NamedTuple):
    x: float
    y: float


@pytest.mark.parametrize(
    ("type_info", "elements", "rows"),
    [
        (Types.LONG(), [1, None], [(1,), (None,)]),
        (Types.TUPLE([Types.STRING(), Types.INT()]), [("a", 1), ("b", 2)], [("a", 1), ("b", 2)]),
        (Types.ROW_NAMED(["a", "b"], [str, int]), [Row(b=1, a="x")], [("x", 1)]),
        (Types.ROW([str, Types.SQL_TIMESTAMP()]), [Row("x", NOON)], [("x", NOON)]),
        (Types.TUPLE([Types.BIG_DEC(), Types.BIG_INT()]), [(Decimal("1.5"), 2**90)], [(Decimal("1.5"), 2**90)]),
        (Types.MAP(str, Types.ROW_NAMED(["x"], [int])), [{"k": Row(x=1)}], [({"k": SparkRow(x=1)},)]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"ab"], [(bytearray(b"ab"),)]),
        (Order, [Order(1, Colour.RED, ["n"]), Order(2, Colour.RED, None)], [(1, "red", ["n"]), (2, "red", None)]),
        (Point, [Point(1.0, 2.0)], [(1.0, 2.0)]),
    ],
)
def test_elements_become_rows_of_a_dataframe(spark: Any, type_info: Any, elements: list[Any], rows: list[Any]) -> None:
    chunks = [bytes([index]) for index in range(len(elements))]
    df = chunks_to_dataframe(spark, chunks, lambda chunk: [elements[chunk[0]]], type_info)
    assert [tuple(row) for row in df.collect()] == rows


def test_no_elements_still_have_columns(spark: Any) -> None:
    df = chunks_to_dataframe(spark, [], lambda chunk: [], Types.ROW_NAMED(["a"], [str]))
    assert df.schema.simpleString() == "struct<a:string>"
    assert df.count() == 0


def test_untyped_elements_are_refused(spark: Any) -> None:
    for untyped in (None, Types.PICKLED_BYTE_ARRAY()):
        with pytest.raises(TypeMismatchError, match="have no columns: give the last operator an output_type"):
            chunks_to_dataframe(spark, [], lambda chunk: [], untyped)


def test_a_value_that_does_not_fit_its_column_is_named(spark: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"Column 'n' of type int: "):
        chunks_to_dataframe(spark, [b"x"], lambda chunk: [Row(n=2**40)], Types.ROW_NAMED(["n"], [Types.INT()]))


def test_a_dataframe_goes_through_a_stream_unchanged(spark: Any) -> None:
    df = spark.createDataFrame([VALUES], EVERY_TYPE)
    rows = read(df)
    back = chunks_to_dataframe(spark, [b"x"], lambda chunk: rows, dataframe_type(df))
    assert [row.asDict(True) for row in back.drop("price").collect()] == [
        row.asDict(True) for row in df.drop("price").collect()
    ]
    price = back.select("price").first()
    assert price is not None
    assert price[0] == Decimal("12.34")


@pytest.mark.parametrize("zone", ["America/New_York", "+02:00", "UTC"])
def test_times_are_those_of_the_session_s_zone_however_deep(spark: Any, zone: str) -> None:
    """Without a zone a time is the session's own; with one, and as an Instant, it is a point in time."""
    naive, instant = NOON.replace(microsecond=0), 1_719_837_000  # 12:30 in UTC
    kinds = [Types.SQL_TIMESTAMP(), Types.SQL_TIMESTAMP(), Types.INSTANT()]
    moments = [naive, naive.replace(tzinfo=dt.UTC), Instant(instant, 0)]
    types = [
        shape
        for kind in kinds
        for shape in (kind, Types.LIST(kind), Types.MAP(Types.STRING(), kind), Types.ROW_NAMED(["x"], [kind]))
    ]
    row = Row(*[value for each in moments for value in (each, [each, None], {"k": each}, Row(x=each))])
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = chunks_to_dataframe(spark, [b"x"], lambda chunk: [row], Types.ROW(types))
        wall = [f.unix_timestamp(each) for n in range(0, 12, 4) for each in (
            f.col(f"f{n}"), f.col(f"f{n + 1}")[0], f.col(f"f{n + 2}")["k"], f.col(f"f{n + 3}.x"),
        )]  # fmt: skip
        told = df.select(*wall).first()
        assert told is not None
        seconds = list(told)
        session = spark.sql("SELECT unix_timestamp(timestamp'2024-07-01 12:30:00')").first()[0]
        assert read(df)[0][0] == naive  # and comes back as it went
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert seconds == [session] * 4 + [instant] * 8
    assert (session == instant) is (zone == "UTC")
