"""The HBase source and lookup on a real HBase, in jobs that are restarted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.common import Duration, Time, WatermarkStrategy
from rekindle.datastream import AsyncDataStream, StreamExecutionEnvironment
from rekindle.datastream.connectors.hbase import HBaseLookup, HBaseSource
from rekindle.testing.in_process import InProcessJob
from tools.servers.hbase import HBaseServer
from tools.servers.hbase_access import HBaseAccess

Table = Callable[..., str]
ROWS = 200


@pytest.fixture
def filled(hbase: HBaseAccess, table: Table) -> str:
    """A table with 200 rows of two families."""
    name = table("f", "g")
    with hbase.connection().table(name).batch() as batch:
        for number in range(ROWS):
            batch.put(b"%03d" % number, {b"f:n": b"%d" % number, b"g:parity": b"odd" if number % 2 else b"even"})
    return name


def source_of(hbase: HBaseAccess, table: str) -> Any:
    made = HBaseSource.builder().set_thrift_servers(hbase.address).set_table(table).set_rows_per_call(30)
    return made.set_decoder(lambda row, cells: (row.decode(), len(cells)))


def job_of(source: Any, parallelism: int = 2, restore: Any = None) -> InProcessJob:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.enable_checkpointing(1000)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    return InProcessJob.of(stream.map(lambda record: record), max_records=7, restore=restore)


def names(numbers: Any) -> list[str]:
    return [f"{number:03}" for number in numbers]


def test_a_table_is_read_by_its_regions(hbase: HBaseAccess, filled: str) -> None:
    source = source_of(hbase, filled).build()
    assert [split.position for split in source.create_splits(4)] == [(b"", b"", None)], "a small table has one region"
    assert sorted(job_of(source).run()) == [(name, 2) for name in names(range(ROWS))]


def test_each_region_is_a_split(mortal: HBaseServer) -> None:
    name = mortal.create_table("regions", "f")
    table = mortal.connection().table(name)
    wanted = [b"%05d" % number for number in range(1_000)]
    while len(table.regions()) < 2:  # HBase splits a region when a flush has made it large enough
        with table.batch() as batch:
            for row in wanted:
                batch.put(row, {b"f:large": b"x" * 500})
    source = source_of(mortal, name).build()
    splits = source.create_splits(1)
    assert len(splits) > 1
    assert [split.position[1] for split in splits[:-1]] == [split.position[0] for split in splits[1:]]
    assert sorted(job_of(source).run()) == [(row.decode(), 1) for row in wanted]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_restarted_job_reads_each_row_once(hbase: HBaseAccess, filled: str, parallelism: int) -> None:
    source = source_of(hbase, filled).set_split_keys([b"050", b"120", b"121"]).build()
    assert len(source.create_splits(2)) == 4
    job = job_of(source)
    seen: list[Any] = []
    while len(seen) < 60:
        checkpoint = job.checkpoint()
        seen += checkpoint.results
    job.epoch()  # what is read after the checkpoint is read again
    job.kill()
    seen += job_of(source, parallelism, checkpoint).run()
    assert sorted(name for name, _ in seen) == names(range(ROWS))


def test_ranges_prefixes_columns_and_filters_choose_what_is_read(hbase: HBaseAccess, filled: str) -> None:
    def read(made: Any) -> list[Any]:
        return sorted(job_of(made.build()).run())

    def chosen() -> Any:
        return source_of(hbase, filled)

    assert read(chosen().set_row_range(b"010", b"013")) == [(name, 2) for name in names([10, 11, 12])]
    assert read(chosen().set_row_prefix(b"19")) == [(name, 2) for name in names(range(190, 200))]
    assert read(chosen().set_columns([b"f:n"]).set_row_range(stop=b"002")) == [("000", 1), ("001", 1)]
    odd = "SingleColumnValueFilter('g', 'parity', =, 'binary:odd')"
    assert read(chosen().set_filter(odd)) == [(name, 2) for name in names(range(1, ROWS, 2))]


def test_what_a_scan_cannot_find_or_understand_is_told(hbase: HBaseAccess, filled: str) -> None:
    for made, sentence in (
        (source_of(hbase, filled).set_filter("Nonsense("), "correct set_filter()"),
        (source_of(hbase, filled).set_columns([b"q:a"]), f"table '{filled}' has no column family 'q'"),
    ):
        job = job_of(made.build())
        with pytest.raises(Exception) as caught:
            job.run()
        assert sentence in f"{caught.value} {caught.value.__cause__}"
        assert ".java:" not in f"{caught.value} {caught.value.__cause__}"
        job.kill()


def test_a_missing_table_is_told_when_the_job_starts(hbase: HBaseAccess) -> None:
    with pytest.raises(Exception, match="failed to find table 'no-such-table': there is no table 'no-such-table'"):
        job_of(source_of(hbase, "no-such-table").build())


# -- lookup ------------------------------------------------------------------------------------------------------------


def lookup_of(hbase: HBaseAccess, table: str) -> Any:
    made = HBaseLookup.builder().set_thrift_servers(hbase.address).set_table(table)
    made.set_row_key(lambda number: b"%03d" % number).set_columns([b"f:n"])
    return made.set_result(lambda number, cells: [(number, cells.get(b"f:n"))])


def looked_up(lookup: Any, numbers: list[int], parallelism: int = 2) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    stream = env.from_collection(numbers)
    return InProcessJob.of(AsyncDataStream.ordered_wait(stream, lookup, Time.seconds(30), 50)).run()


def test_elements_are_enriched_with_their_rows(hbase: HBaseAccess, filled: str) -> None:
    numbers = [number % 250 for number in range(600)]
    found = looked_up(lookup_of(hbase, filled).set_cache(100, Duration.of_minutes(1)).build(), numbers)
    assert sorted(found, key=str) == sorted(
        ((number, b"%d" % number if number < ROWS else None) for number in numbers), key=str
    )


def test_without_a_cache_a_changed_row_is_seen(hbase: HBaseAccess, filled: str) -> None:
    lookup = lookup_of(hbase, filled).set_cache(0).build()
    assert looked_up(lookup, [5]) == [(5, b"5")]
    hbase.connection().table(filled).put(b"005", {b"f:n": b"new"})
    assert looked_up(lookup, [5]) == [(5, b"new")]


def test_a_lookup_says_what_is_missing(hbase: HBaseAccess, filled: str) -> None:
    for lookup, sentence in (
        (lookup_of(hbase, "no-such-table"), "there is no table 'no-such-table'"),
        (lookup_of(hbase, filled).set_columns([b"q:n"]), "its column families are 'f', 'g'; correct set_columns()"),
        (lookup_of(hbase, filled).set_row_key(str), "is '1': return bytes"),
    ):
        with pytest.raises(Exception) as caught:
            looked_up(lookup.build(), [1])
        told = f"{caught.value} {caught.value.__cause__}"
        assert sentence in told
        assert "\tat " not in told
