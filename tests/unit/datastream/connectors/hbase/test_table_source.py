"""The ranges of an HBase source, and its reader over a table in memory: every row once, from any position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.hbase import HBaseLookup, HBaseSource
from rekindle.datastream.connectors.hbase.key_ranges import KeyRange, prefix_range
from rekindle.datastream.connectors.hbase.reader import HBaseReader
from rekindle.datastream.connectors.hbase.table_scan import TableScan
from rekindle.errors import ConnectorError, GraphError
from tests.support.waiting import wait_until

keys = st.binary(min_size=1, max_size=3)


@given(st.binary(max_size=2), st.lists(keys), st.lists(keys))
def test_each_row_of_a_range_is_in_one_of_its_parts(start: bytes, cuts: list[bytes], rows: list[bytes]) -> None:
    whole = KeyRange(start, start + b"\xf0")
    parts = whole.cut(cuts)
    for row in rows:
        assert [part.contains(row) for part in parts].count(True) == whole.contains(row)
    assert (parts[0].start, parts[-1].stop) == (whole.start, whole.stop)


@given(keys, st.binary(max_size=4))
def test_a_prefix_is_a_range(prefix: bytes, row: bytes) -> None:
    assert prefix_range(prefix).contains(row) == row.startswith(prefix)


class Table:
    """A table in memory, as `ThriftCalls` and a connection show it."""

    def __init__(self, rows: int) -> None:
        self.rows = [(b"%04d" % number, {b"f:n": b"%d" % number}) for number in range(rows)]
        self.error: Exception | None = None

    def call(self, work: Any, doing: str, table: str) -> Any:
        if self.error is not None:
            raise self.error
        return work(self)

    def table(self, name: str) -> Table:
        return self

    def scan(self, row_start: Any, row_stop: Any, limit: int, **_: Any) -> Iterator[Any]:
        wanted = KeyRange(row_start or b"", row_stop or b"")
        return iter([each for each in self.rows if wanted.contains(each[0])][:limit])

    def close(self) -> None:
        pass


def reader_of(table: Table, splits: list[SourceSplit]) -> HBaseReader[bytes]:
    scan = TableScan("t", rows_per_call=7)
    return HBaseReader(table, scan, lambda row, cells: row, splits, lambda: None)  # type: ignore[arg-type]


def splits_at(*cuts: bytes) -> list[SourceSplit]:
    return [SourceSplit(f"{each.start!r}", (each.start, each.stop, None)) for each in KeyRange().cut(cuts)]


def read(reader: HBaseReader[bytes], most: int = 10_000, batch: int = 5) -> list[bytes]:
    """Rows until the end, or at least this many."""
    records: list[bytes] = []
    while len(records) < most:
        wait_until(reader.is_available, "rows arrive", 10)
        polled = reader.poll(batch)
        if polled is None:
            break
        records += polled
    return records


@pytest.mark.parametrize("most", [0, 3, 7, 20, 35, 99])
@pytest.mark.parametrize("cuts", [(), (b"0010", b"0014", b"0090"), (b"0007", b"9")])
def test_a_reader_goes_on_after_the_last_row_that_it_returned(cuts: tuple[bytes, ...], most: int) -> None:
    table = Table(40)
    first = reader_of(table, splits_at(*cuts))
    records = read(first, most)
    left = first.snapshot_state(1)
    first.close()
    second = reader_of(table, left)
    records += read(second)
    assert second.snapshot_state(2) == []
    second.close()
    assert records == [row for row, _ in table.rows]


def test_an_error_of_the_scan_is_raised_by_poll_after_the_rows_before_it() -> None:
    table = Table(3)
    reader = reader_of(table, splits_at(b"0002"))
    assert read(reader, 3) == [b"0000", b"0001", b"0002"]
    reader.close()
    table.error = ConnectorError("away")
    failing = reader_of(table, splits_at())
    with pytest.raises(ConnectorError, match="away"):
        read(failing)
    failing.close()


def test_a_reader_without_splits_ends_at_once() -> None:
    reader = reader_of(Table(1), [])
    assert reader.poll(5) is None
    reader.close()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: HBaseSource.builder().set_thrift_servers("a").build(), "An HBase source needs a table"),
        (lambda: HBaseSource.builder().set_row_range(b"b", b"a"), "in order, as bytes, not b'b' and b'a'"),
        (lambda: HBaseSource.builder().set_row_prefix(b""), "set_row_prefix()"),
        (lambda: HBaseSource.builder().set_split_keys(["a"]), "set_split_keys() takes row keys, as bytes"),  # type: ignore[list-item]
        (lambda: HBaseSource.builder().set_columns([]), "set_columns() takes columns such as"),
        (lambda: HBaseSource.builder().set_filter(""), "set_filter()"),
        (lambda: HBaseSource.builder().set_decoder(3), "set_decoder()"),  # type: ignore[arg-type]
        (lambda: HBaseSource.builder().set_rows_per_call(0), "1 or more, not 0"),
        (lambda: HBaseLookup.builder().set_thrift_servers("a").set_table("t").build(), "call set_row_key()"),
        (lambda: HBaseLookup.builder().set_row_key(b"r"), "set_row_key() takes a function"),  # type: ignore[arg-type]
        (lambda: HBaseLookup.builder().set_result(3), "set_result()"),  # type: ignore[arg-type]
        (lambda: HBaseLookup.builder().set_connections(0), "1 or more, not 0"),
    ],
)
def test_the_builders_refuse_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(GraphError) as caught:
        make()
    assert sentence in str(caught.value)
