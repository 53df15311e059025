"""The file source: listing, formats, positions, and monitored directories."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import lzma
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rekindle.common import Duration, Instant, Row, Types, WatermarkStrategy
from rekindle.common.serialization import Encoder
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.base import (
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    assign_splits,
)
from rekindle.datastream.connectors.file_system import (
    BulkFormat,
    FileEnumeratorProvider,
    FileFormat,
    FileSource,
    FileSplit,
    FileSplitAssignerProvider,
    StreamFormat,
)
from rekindle.datastream.connectors.files.listing import FoundFile
from rekindle.datastream.connectors.files.source import DEFAULT_REMEMBER, FileReader
from rekindle.datastream.connectors.files.watch import Shard, shard_of
from rekindle.errors import ConnectorError, GraphError, IncompatibleStateError, TypeMismatchError
from rekindle.serde import tagged_dumps, tagged_loads
from rekindle.testing.manual_clock import ManualClock
from tests.support.polled import polled_list

TEXT = StreamFormat.text_line_format()


def source_of(file_format: FileFormat, *paths: Any, split_bytes: int = 1 << 20) -> FileSource[Any]:
    build = (
        FileSource.for_bulk_file_format if isinstance(file_format, BulkFormat) else FileSource.for_record_stream_format
    )
    enumerator = FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes)
    return build(file_format, *map(str, paths)).set_file_enumerator(enumerator).build()  # type: ignore[arg-type]


def drained(reader: SourceReader[Any], batch: int = 3) -> list[Any]:
    records: list[Any] = []
    while polled := polled_list(reader, batch):
        assert len(polled) <= batch
        records.extend(polled)
    reader.close()
    return records


def read_all(source: Source[Any], parallelism: int = 1, batch: int = 3) -> list[Any]:
    dealt = assign_splits(source.create_splits(parallelism), parallelism)
    readers = [source.create_reader(SourceReaderContext(i, parallelism), own) for i, own in enumerate(dealt)]
    return [record for reader in readers for record in drained(reader, batch)]


def read(file_format: FileFormat, *paths: Any, **settings: Any) -> list[Any]:
    return read_all(source_of(file_format, *paths, **settings))


# -- listing ----------------------------------------------------------------------------------------------------------


def test_files_and_directories_below_are_read_by_path_without_hidden_ones(tmp_path: Path) -> None:
    names = ["b.txt", "a/2.txt", "a/1.txt", "a/_temporary/x.txt", ".hidden", "a/.part-0.inprogress.t.1.0", "_SUCCESS"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "empty.txt").touch()
    single = tmp_path / ".named-itself"
    single.write_text("named\n")
    assert read(TEXT, tmp_path, f"file://{single}") == ["named", "a/1.txt", "a/2.txt", "b.txt"]
    assert read(TEXT, tmp_path / "a", tmp_path) == ["a/1.txt", "a/2.txt", "b.txt"]


def test_links_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("a\n")
    (tmp_path / "data" / "up").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "nowhere").symlink_to(tmp_path / "gone")
    assert read(TEXT, tmp_path / "data") == ["a"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/no/such/place", "There is no file or directory /no/such/place"),
        ("s3://bucket/orders", "mount the s3 storage"),
        ("file://host/orders", "names a host, 'host'"),
        ("", "takes the path of a local file"),
    ],
)
def test_paths_that_cannot_be_read_are_refused_with_a_sentence(path: str, sentence: str) -> None:
    with pytest.raises((ConnectorError, GraphError), match=sentence):
        FileSource.for_record_stream_format(TEXT, path).build()


def test_a_bounded_source_reads_what_was_there_when_it_was_built(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    source = source_of(TEXT, tmp_path)
    (tmp_path / "a.txt").open("a").write("appended\n")
    (tmp_path / "b.txt").write_text("later\n")
    assert source.boundedness() is Boundedness.BOUNDED
    assert read_all(source, 2) == ["a"]


def test_a_file_that_is_gone_or_shorter_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("abc\ndef\n")
    source = source_of(TEXT, tmp_path)
    path.write_text("abc\n")
    with pytest.raises(ConnectorError, match=r"a\.txt had 8 bytes when it was found and has 4 now"):
        read_all(source)
    path.unlink()
    with pytest.raises(ConnectorError, match=r"a\.txt is gone"):
        read_all(source)


# -- text -------------------------------------------------------------------------------------------------------------


def test_large_files_are_divided_and_small_rests_are_not(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1000)]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines))
    source = source_of(TEXT, tmp_path, split_bytes=1000)
    splits = source.create_splits(4)
    assert len(splits) == round(path.stat().st_size / 1000)
    assert len({split.split_id for split in splits}) == len(splits)
    assert sorted(read_all(source, 4, batch=64)) == sorted(lines)
    whole = FileSource.for_record_stream_format(TEXT, str(tmp_path))
    whole.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
    whole.set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
    assert len(whole.build().create_splits(4)) == 1


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".gzip", gzip.compress), (".bz2", bz2.compress), (".XZ", lzma.compress)],
)
def test_packed_files_are_unpacked_and_not_divided(tmp_path: Path, suffix: str, pack: Any) -> None:
    lines = [f"line {number}" for number in range(500)]
    (tmp_path / f"a.txt{suffix}").write_bytes(pack("\n".join(lines).encode()))
    source = source_of(TEXT, tmp_path, split_bytes=100)
    assert len(source.create_splits(2)) == 1
    assert read_all(source, 2) == lines


def test_a_packed_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"some lines\n" * 1000)[:-20])
    with pytest.raises(ConnectorError, match=r"compressed file .*a\.txt\.gz is damaged or cut off"):
        read(TEXT, path)


def test_character_sets(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for charset in ("ISO-8859-1", "UTF-16", "utf-8-sig", "cp1252", "gbk"):
        text = "größe\nzwei\n" if charset != "gbk" else "你好\n世界\n"
        path.write_bytes(text.encode(charset))
        assert read(StreamFormat.text_line_format(charset), path) == text.split("\n")[:-1]
    with pytest.raises(GraphError, match="'klingon' is no character set"):
        StreamFormat.text_line_format("klingon")


def test_bytes_that_are_no_text_are_named_with_their_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\n" * 10 + b"not \xff fine\n")
    with pytest.raises(ConnectorError, match=r"a\.txt is not UTF-8 text at offset 54 of the file"):
        read_all(source_of(TEXT, path), batch=4)
    path.write_bytes("fine\n".encode("utf-16-le") + b"\x00\xd8\x00")
    with pytest.raises(ConnectorError, match=r"not UTF-16-LE text at offset 10 of the file"):
        read(StreamFormat.text_line_format("utf-16-le"), path)


def test_the_stream_has_the_formats_type(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(source_of(TEXT, tmp_path), WatermarkStrategy.no_watermarks(), "files")
    assert stream.get_type() == Types.STRING()
    declared = env.from_source(source_of(TEXT, tmp_path), WatermarkStrategy.no_watermarks(), "files", bytes)
    assert declared.get_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())


# -- JSON -------------------------------------------------------------------------------------------------------------


class Word(NamedTuple):
    word: str
    count: int | None  # type: ignore[assignment]  # as a user names it, though tuples have a method of this name


@dataclass
class Order:
    id: int
    at: dt.datetime
    items: list[str]


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


JSON_TYPES: list[tuple[Any, str, Any]] = [
    (None, '{"word":"to","n":[1,null]}', {"word": "to", "n": [1, None]}),
    (Word, '{"word":"to","count":null}', Word("to", None)),
    (Order, '{"id":7,"at":"2024-05-01T10:00:00","items":["a"]}', Order(7, dt.datetime(2024, 5, 1, 10), ["a"])),
    (Point, '{"x":1.5}', Point(1.5)),
    (tuple[str, int], '["to",2]', ("to", 2)),
    (Types.ROW_NAMED(["word", "count"], [str, int]), '{"count":2,"word":"to","more":1}', Row(word="to", count=2)),
    (
        Types.ROW_NAMED(["class", "in"], [Types.LIST(Types.ROW_NAMED(["a"], [int])), Types.MAP(str, Types.BIG_DEC())]),
        '{"class":[{"a":1}],"in":{"k":"1.10"}}',
        Row("class", "in")([Row(a=1)], {"k": Decimal("1.10")}),
    ),
    (
        Types.TUPLE([Types.BIG_INT(), Types.MAP(Types.BIG_INT(), int), Types.MAP(Types.INSTANT(), Types.INSTANT())]),
        '[1180591620717411303424,{"5":1},{"1970-01-01T00:00:01Z":"1970-01-01T00:00:02Z"}]',
        (2**70, {5: 1}, {Instant(1, 0): Instant(2, 0)}),
    ),
]


@pytest.mark.parametrize(("type_info", "line", "expected"), JSON_TYPES)
def test_json_lines_of_a_type(tmp_path: Path, type_info: Any, line: str, expected: Any) -> None:
    (tmp_path / "a.json").write_text(f"{line}\n\n  \r\n{line}\n")
    assert read(StreamFormat.json_lines_format(type_info), tmp_path) == [expected, expected]


def test_json_that_does_not_fit_is_named_with_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"word":"a"}\n\n{"word":1}\n')
    with pytest.raises(ConnectorError, match=r"a\.json: the line at offset 14 is not the JSON .*Expected `str"):
        read(StreamFormat.json_lines_format(Types.ROW_NAMED(["word"], [str])), path)
    path.write_text('{"word":"a"}\n{"word":')
    with pytest.raises(ConnectorError, match="the line at offset 13"):
        read(StreamFormat.json_lines_format(), path)


def test_what_the_json_encoder_writes_is_read_again(tmp_path: Path) -> None:
    kind = Types.ROW_NAMED(["at", "all"], [Types.INSTANT(), Types.LIST(Types.INSTANT())])
    elements = [Row(at=Instant(5, 7), all=[Instant(6, 0), None]), None, Row(at=None, all=None)]
    (tmp_path / "a.json").write_bytes(b"".join(map(Encoder.json_lines_encoder().encode, elements)))
    assert read(StreamFormat.json_lines_format(kind), tmp_path) == elements
    (tmp_path / "a.json").write_text('{"at":"1970-01-01T00:00:01Z"}\n')
    assert read(StreamFormat.json_lines_format(kind), tmp_path) == [Row(at=Instant(1, 0), all=None)]


def test_json_text_is_no_big_int(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('["ff"]\n')
    with pytest.raises(ConnectorError, match="Expected `int"):
        read(StreamFormat.json_lines_format(Types.TUPLE([Types.BIG_INT()])), tmp_path)


# -- CSV --------------------------------------------------------------------------------------------------------------


def test_csv_of_types_with_and_without_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('word,count,price\n"to, be",2,1.5\n\nor,,\n')
    assert read(StreamFormat.csv_format(header=True), path) == [
        {"word": "to, be", "count": "2", "price": "1.5"},
        {"word": "or", "count": "", "price": ""},
    ]
    row = Types.ROW_NAMED(["price", "word"], [float, str])
    assert read(StreamFormat.csv_format(row, header=True), path) == [
        Row(price=1.5, word="to, be"),
        Row(price=None, word="or"),
    ]
    path.write_text("to;2;true;2024-05-01\n")
    kind = tuple[str, int, bool, dt.date]
    assert read(StreamFormat.csv_format(kind, delimiter=";"), path) == [("to", 2, True, dt.date(2024, 5, 1))]
    assert read(StreamFormat.csv_format(delimiter=";"), path) == [["to", "2", "true", "2024-05-01"]]
    path.write_text("a,-\n")
    assert read(StreamFormat.csv_format(Word, null_literal="-"), path) == [Word("a", None)]


def test_csv_with_a_header_is_divided_and_restored_like_lines(tmp_path: Path) -> None:
    rows = [(f"word {number}", number) for number in range(300)]
    (tmp_path / "a.csv").write_text("word,n\n" + "".join(f'"{word}",{number}\n' for word, number in rows))
    source = source_of(
        StreamFormat.csv_format(Types.ROW_NAMED(["word", "n"], [str, int]), header=True), tmp_path, split_bytes=700
    )
    assert len(source.create_splits(3)) > 3
    assert sorted(map(tuple, read_all(source, 3))) == sorted(rows)
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    first = [tuple(row) for _ in range(7) for row in polled_list(reader, 10)]
    rest = drained(source.create_reader(SourceReaderContext(0, 1), reader.snapshot_state(1)))
    assert sorted([*first, *map(tuple, rest)]) == sorted(rows)


def test_csv_cells_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"a,{'x' * 300_000}\n")
    assert read(StreamFormat.csv_format(), tmp_path) == [["a", "x" * 300_000]]


def test_csv_records_over_several_lines_need_to_be_announced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,"one\ntwo"\nb,three\n')
    with pytest.raises(ConnectorError, match=r"a\.csv.*multi_line=True"):
        read(StreamFormat.csv_format(), path)
    several = StreamFormat.csv_format(multi_line=True)
    assert read(several, path) == [["a", "one\ntwo"], ["b", "three"]]
    source = source_of(several, path, split_bytes=4)
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    assert reader.poll(1) == [["a", "one\ntwo"]]
    assert drained(source.create_reader(SourceReaderContext(0, 1), reader.snapshot_state(1))) == [["b", "three"]]


def test_csv_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,1\nb,two\n")
    with pytest.raises(ConnectorError, match=r"a\.csv: a record after offset 0 .*'two'"):
        read(StreamFormat.csv_format(tuple[str, int]), path)
    path.write_text("a,1\nb\n")
    with pytest.raises(ConnectorError, match="1 values where 2 are expected"):
        read(StreamFormat.csv_format(tuple[str, int]), path)
    path.write_text("word\na\n")
    with pytest.raises(ConnectorError, match="has no column 'n': its header is word"):
        read(StreamFormat.csv_format(Types.ROW_NAMED(["n"], [int]), header=True), path)
    with pytest.raises(GraphError, match="cannot read field 'f0'"):
        StreamFormat.csv_format(tuple[list[int], str])
    with pytest.raises(GraphError, match="takes a type with fields"):
        StreamFormat.csv_format(int)
    with pytest.raises(GraphError, match="one character as its delimiter"):
        StreamFormat.csv_format(delimiter="||")


# -- tables -----------------------------------------------------------------------------------------------------------


def table_of(rows: int) -> pa.Table:
    return pa.table(
        {
            "id": list(range(rows)),
            "tags": [[str(n)] for n in range(rows)],
            "place": [{"x": float(n)} for n in range(rows)],
            "at": pa.array([dt.datetime(2024, 5, 1)] * rows, pa.timestamp("ns")),
        }
    )


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_tables_are_rows_with_the_columns_names_and_types(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(table_of(25), path)
        bulk = BulkFormat.parquet_format
    else:
        write_arrow(table_of(25), path)
        bulk = BulkFormat.arrow_format
    source = source_of(bulk(), path)
    rows = read_all(source)
    assert rows[3] == Row(id=3, tags=["3"], place=Row(x=3.0), at=dt.datetime(2024, 5, 1))
    assert [row.id for row in rows] == list(range(25))
    place = Types.ROW_NAMED(["x"], [float])
    names = ["id", "tags", "place", "at"]
    expected = Types.ROW_NAMED(names, [int, Types.LIST(str), place, Types.SQL_TIMESTAMP()])
    assert repr(source.get_produced_type()) == repr(expected)
    assert read(bulk(columns=["id"]), path)[:2] == [Row(id=0), Row(id=1)]
    assert read(bulk(tuple[int, list[str]], columns=["id", "tags"]), path)[2] == (2, ["2"])
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    first = [row.id for _ in range(4) for row in polled_list(reader, 3)]
    rest = drained(source.create_reader(SourceReaderContext(0, 1), reader.snapshot_state(1)))
    assert first + [row.id for row in rest] == list(range(25))


def test_parquet_is_divided_by_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table_of(1000), path, row_group_size=100)
    source = source_of(BulkFormat.parquet_format(columns=["id"]), path, split_bytes=path.stat().st_size // 4)
    splits = source.create_splits(4)
    assert len(splits) == 4
    parts = [drained(source.create_reader(SourceReaderContext(0, 4), [split]), 64) for split in splits]
    assert sum(map(bool, parts)) >= 3
    assert sorted(row.id for part in parts for row in part) == list(range(1000))
    reader = source.create_reader(SourceReaderContext(0, 1), splits[:1])
    first = [row for _ in range(2) for row in polled_list(reader, 70)]
    assert first + drained(source.create_reader(SourceReaderContext(0, 1), reader.snapshot_state(1)), 70) == parts[0]


def test_tables_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("no parquet at all")
    with pytest.raises(ConnectorError, match=r"a\.parquet is damaged, or no file of this format"):
        source_of(BulkFormat.parquet_format(), path)
    pq.write_table(pa.table({"id": [1], "wait": pa.array([1], pa.duration("s"))}), path)
    with pytest.raises(TypeMismatchError, match=r"Column 'wait' of .*duration.*name the `columns`"):
        source_of(BulkFormat.parquet_format(), path)
    with pytest.raises(ConnectorError, match="has no column 'word': it has id, wait"):
        read(BulkFormat.parquet_format(columns=["word"]), path)
    with pytest.raises(GraphError, match="rows have fields"):
        BulkFormat.parquet_format(int)


# -- user-defined formats ---------------------------------------------------------------------------------------------


class Letters(StreamFormat):
    """A format in which every byte is a record."""

    def open(self, split: FileSplit) -> Any:
        return LettersReader(split)


class LettersReader:
    def __init__(self, split: FileSplit) -> None:
        self.text = Path(split.path).read_text()
        self.offset = split.offset or 0

    def read(self, max_records: int) -> list[str]:
        letters = list(self.text[self.offset : self.offset + max_records])
        self.offset += len(letters)
        return letters

    def close(self) -> None:
        pass


def test_a_format_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abcdefg")
    source = source_of(Letters(), tmp_path, split_bytes=2)
    reader = source.create_reader(SourceReaderContext(0, 1), source.create_splits(1))
    assert reader.poll(3) == ["a", "b", "c"]
    assert drained(source.create_reader(SourceReaderContext(0, 1), reader.snapshot_state(1))) == list("defg")


# -- monitored directories --------------------------------------------------------------------------------------------

SECOND_NS = 1_000_000_000


def watching(path: Path, remember: Duration = DEFAULT_REMEMBER) -> FileSource[Any]:
    builder = FileSource.for_record_stream_format(TEXT, str(path))
    return builder.monitor_continuously(Duration.of_seconds(10), remember).build()


def readers_of(
    source: FileSource[Any], dealt: Sequence[list[SourceSplit]], clock: ManualClock
) -> list[FileReader[Any]]:
    return [FileReader(source._format, splits, source._monitoring, clock) for splits in dealt]


def poll_all(readers: Sequence[SourceReader[Any]]) -> list[str]:
    records: list[str] = []
    for reader in readers:
        if reader.is_available():
            while polled := polled_list(reader, 2):
                records.extend(polled)
    return sorted(records)


def through_a_checkpoint(readers: Sequence[SourceReader[Any]], parallelism: int) -> list[list[SourceSplit]]:
    """Pass positions through a checkpoint as the engine does: as bytes, collected, dealt to the subtasks in turn."""
    pooled = [split for reader in readers for split in reader.snapshot_state(1)]
    stored = tagged_dumps([(split.split_id, split.position) for split in pooled])
    return assign_splits([SourceSplit(*each) for each in tagged_loads(stored)], parallelism)


def test_new_files_are_found_once_also_over_restores_and_other_parallelisms(tmp_path: Path) -> None:
    """I8: positions contain the files that were seen."""
    clock = ManualClock()
    source = watching(tmp_path)
    assert source.boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    readers = readers_of(source, assign_splits(source.create_splits(3), 3), clock)
    assert poll_all(readers) == []
    assert not any(reader.is_available() for reader in readers)
    written: list[str] = []
    for round_number, parallelism in enumerate([3, 2, 5, 1, 4]):
        new = [f"{round_number}-{number}" for number in range(4)]
        for name in new:
            (tmp_path / name).write_text(f"{name}\n")
        written += new
        assert poll_all(readers) == []  # the interval is not over yet
        clock.advance(10_000)
        assert poll_all(readers) == new
        readers = readers_of(source, through_a_checkpoint(readers, parallelism), clock)
        clock.advance(10_000)
        assert poll_all(readers) == []


def test_a_file_that_was_found_and_not_read_is_read_after_a_restore(tmp_path: Path) -> None:
    clock = ManualClock()
    source = watching(tmp_path)
    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    (tmp_path / "b.txt").write_text("4\n")
    readers = readers_of(source, assign_splits(source.create_splits(1), 1), clock)
    assert readers[0].is_available()
    before = polled_list(readers[0], 2)
    readers = readers_of(source, through_a_checkpoint(readers, 2), clock)
    assert sorted([*before, *poll_all(readers)]) == ["1", "2", "3", "4"]


def test_a_file_that_waited_elsewhere_and_came_by_rename_is_found(tmp_path: Path) -> None:
    """The file's content is older than files seen before, but its rename is newer."""
    clock = ManualClock()
    (tmp_path / "in").mkdir()
    source = watching(tmp_path / "in", remember=Duration.of_millis(1))
    readers = readers_of(source, assign_splits(source.create_splits(1), 1), clock)
    (tmp_path / "old.txt").write_text("old\n")
    os.utime(tmp_path / "old.txt", (1, 1))
    new = tmp_path / "in" / "new.txt"
    same_shard = (tmp_path / "in" / f"old-{number}.txt" for number in range(10_000))
    old = next(path for path in same_shard if shard_of(str(path), 64) == shard_of(str(new), 64))
    new.write_text("new\n")
    assert poll_all(readers) == ["new"]
    os.rename(tmp_path / "old.txt", old)
    clock.advance(10_000)
    assert poll_all(readers) == ["old"]


def test_what_a_shard_remembers_stays_small() -> None:
    shard = Shard(0, 1)
    for number in range(1000):
        files = [FoundFile(f"/{each}", 1, each * SECOND_NS) for each in range(max(0, number - 50), number + 1)]
        assert [file.path for file in shard.take_new(files, 10 * SECOND_NS)] == [f"/{number}"]
    assert len(shard.seen) == 10
    assert len(tagged_dumps(shard.to_source_split().position)) < 300


def test_a_file_that_is_touched_while_it_is_remembered_is_not_read_again() -> None:
    shard = Shard(0, 1)
    shard.take_new([FoundFile("/a", 1, 0)], 10)
    assert shard.take_new([FoundFile("/a", 1, 8)], 10) == []
    assert [file.path for file in shard.take_new([FoundFile("/a", 1, 8), FoundFile("/b", 1, 12)], 10)] == ["/b"]
    assert shard.take_new([FoundFile("/a", 1, 8), FoundFile("/b", 1, 12)], 10) == []


def test_every_path_has_one_shard() -> None:
    paths = [f"/data/part-{number}" for number in range(2000)]
    by_shard = [sum(shard_of(path, 64) == shard for path in paths) for shard in range(64)]
    assert sum(by_shard) == 2000
    assert min(by_shard) > 0


def test_a_directory_that_is_watched_must_be_there_when_the_job_runs(tmp_path: Path) -> None:
    source = watching(tmp_path / "in")
    splits = assign_splits(source.create_splits(1), 1)
    with pytest.raises(ConnectorError, match=r"There is no file or directory .*in"):
        readers_of(source, splits, ManualClock())[0].is_available()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("made later\n")
    assert readers_of(source, splits, ManualClock())[0].poll(10) == ["made later"]


def test_a_directory_that_goes_away_is_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = watching(tmp_path / "in")
    readers = readers_of(source, assign_splits(source.create_splits(1), 1), ManualClock())
    (tmp_path / "in").rmdir()
    with pytest.raises(ConnectorError, match=r"There is no file or directory .*in"):
        readers[0].is_available()


def test_a_large_directory_is_not_listed_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    source = watching(tmp_path)
    listings: list[float] = []

    def slow(paths: list[str], may_be_none: bool = False) -> list[FoundFile]:
        listings.append(clock.monotonic())
        clock.advance(5_000)
        return []

    monkeypatch.setattr("rekindle.datastream.connectors.files.source.list_files", slow)
    readers = readers_of(source, assign_splits(source.create_splits(1), 1), clock)
    began = clock.monotonic()
    while clock.monotonic() < began + 200:
        readers[0].is_available()
        clock.advance(1_000)
    assert len(listings) == 4  # each listing took 5 s, so the next one starts 50 s later


def test_positions_of_another_source_are_refused(tmp_path: Path) -> None:
    source = watching(tmp_path)
    with pytest.raises(IncompatibleStateError, match="was not written by a FileSource"):
        source.create_reader(SourceReaderContext(0, 1), [SourceSplit("0", (1, 2, 1))])
    with pytest.raises(GraphError, match="1 ms or more"):
        FileSource.for_record_stream_format(TEXT, str(tmp_path)).monitor_continuously(Duration.of_millis(0))
